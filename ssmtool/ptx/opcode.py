"""Opcodes: `ld.global.nc.v4.f32` split once per distinct spelling into base, modifiers, types, space, width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

# Size in bits of each type a PTX opcode or declaration names (PTX ISA 9, "Types"). `pred` is one bit.
TYPE_BITS = {
    "pred": 1,
    "b1": 1,
    "s4": 4,
    "u4": 4,
    "b4": 4,
    "b8": 8,
    "u8": 8,
    "s8": 8,
    "b16": 16,
    "u16": 16,
    "s16": 16,
    "f16": 16,
    "bf16": 16,
    "b32": 32,
    "u32": 32,
    "s32": 32,
    "f32": 32,
    "tf32": 32,
    "f16x2": 32,
    "bf16x2": 32,
    "u16x2": 32,
    "s16x2": 32,
    "b64": 64,
    "u64": 64,
    "s64": 64,
    "f64": 64,
    "f32x2": 64,
    "b128": 128,
    "u8x4": 32,
    "s8x4": 32,
    "b1024": 1024,
    "e4m3": 8,
    "e5m2": 8,
    "e4m3x2": 16,
    "e5m2x2": 16,
    "e4m3x4": 32,
    "e5m2x4": 32,
    "e2m3": 6,
    "e3m2": 6,
    "e2m1": 4,
    "ue8m0": 8,
    "e2m3x2": 16,
    "e3m2x2": 16,
    "e2m1x2": 8,
    "e2m3x4": 32,
    "e3m2x4": 32,
    "e2m1x4": 16,
    "ue8m0x2": 16,
    "s2f6x2": 16,
    "b4x16": 64,
    "b4x16_p64": 64,
    "b6x16_p32": 96,
    "b6p2x16": 128,
    "b8x16": 128,
    "texref": 64,
    "samplerref": 64,
    "surfref": 64,
}

_SPACES = frozenset(("reg", "sreg", "const", "global", "local", "param", "shared", "tex"))
_VECTORS = {"v2": 2, "v4": 4, "v8": 8, "v16": 16}


@dataclass(frozen=True, slots=True)
class Opcode:
    """One opcode spelling.

    `types` are the type modifiers in order (destination first). `space` is the state space without its
    sub-qualifier (`shared` for `shared::cta`), None for generic addressing or where none is meant. `vector` is the
    number of elements of `.v2/.v4/.v8`, else 1.
    """

    text: str
    base: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    space: str | None
    vector: int

    @property
    def type(self) -> str | None:
        """The first type, which is the destination's; None for untyped instructions."""
        return self.types[0] if self.types else None

    def has(self, modifier: str) -> bool:
        """Whether that modifier is present, without its dot."""
        return modifier in self.modifiers


@lru_cache(maxsize=65536)
def split_opcode(text: str) -> Opcode:
    """Split an opcode's text; equal spellings give the same object."""
    base, *modifiers = text.split(".")
    space = None
    vector = 1
    for modifier in modifiers:
        if space is None and modifier.partition("::")[0] in _SPACES:
            space = modifier.partition("::")[0]
        elif modifier in _VECTORS:
            vector = _VECTORS[modifier]
    types = tuple(modifier for modifier in modifiers if modifier in TYPE_BITS)
    return Opcode(text, base, tuple(modifiers), types, space, vector)
