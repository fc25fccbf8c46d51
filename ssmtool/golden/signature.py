"""What a kernel's parameters are, for a script that writes a vector: buffers or numbers, their type, read or written.

C types say it best: `const int8_t *` is an input of int8, `long long` a number. Where there is no C source the PTX says
what it can: a parameter is an address where its value, moved and added to but never scaled, reaches a load, a store or
an atomic, and these say which type its elements have. What is a guess is marked, so that the script can say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ssmtool.errors import SsmtoolError
from ssmtool.ptx.isa import defs
from ssmtool.ptx.operands import Address, Register, Symbol, registers_of

if TYPE_CHECKING:
    from ssmtool.ptx import Function
    from ssmtool.ptx.instruction import Instruction

# C types of parameters and elements -> type in a vector. Vectors such as float4 are their elements.
_C_TYPES = {
    "float": "float32", "double": "float64", "__half": "float16", "half": "float16",
    "char": "int8", "signed char": "int8", "int8_t": "int8", "unsigned char": "uint8", "uint8_t": "uint8",
    "uchar": "uint8", "bool": "uint8",
    "short": "int16", "int16_t": "int16", "unsigned short": "uint16", "uint16_t": "uint16", "ushort": "uint16",
    "int": "int32", "int32_t": "int32", "signed": "int32", "unsigned": "uint32", "uint32_t": "uint32",
    "uint": "uint32",
    # 64 bits on Linux; PTX tells a long of 32 bits, which Windows has.
    "long": "int64", "long long": "int64", "int64_t": "int64", "ptrdiff_t": "int64", "ssize_t": "int64",
    "unsigned long": "uint64", "unsigned long long": "uint64", "uint64_t": "uint64", "size_t": "uint64",
}  # fmt: skip
# Types that PTX has of loads and stores. Untyped bits leave open what they are: the guess stands second.
_PTX_TYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "s8": "int8", "u8": "uint8", "s16": "int16",
    "u16": "uint16", "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64",
}  # fmt: skip
_UNTYPED = {"b8": "uint8", "b16": "float16", "b32": "float32", "b64": "float64", "f16x2": "float16"}
_SCALARS = {"u32": "int32", "s32": "int32", "b32": "int32", "u64": "int64", "s64": "int64", "b64": "int64"}
# What carries an address on: it is moved, converted to its state space, chosen, or an offset is added.
_CARRIES = frozenset(("mov", "cvta", "add", "sub", "selp", "mad"))
_ATOMIC = frozenset(("atom", "red"))


@dataclass(frozen=True)
class Parameter:
    """One parameter: a buffer with the type of its elements, or a number. `sure` is False for a guess."""

    name: str
    dtype: str
    buffer: bool = False
    loaded: bool = False
    stored: bool = False
    sure: bool = True


@dataclass(frozen=True)
class CType:
    """A parameter's type in C. `dtype` is None for one that is not known here (a typedef, a structure)."""

    pointer: bool
    const: bool
    dtype: str | None


@dataclass
class _Use:
    """What PTX does with an address."""

    address: bool = False
    loaded: bool = False
    stored: bool = False
    types: list[str] = field(default_factory=list)


def c_type(written: str) -> CType:
    """`const float *__restrict__` as it is written in a parameter list."""
    words = re.sub(r"__restrict__|__restrict|\brestrict\b|\bvolatile\b|__grid_constant__", " ", written)
    head, star, _ = words.replace("[", "*[").partition("*")
    const = bool(re.search(r"\bconst\b", head))
    head = re.sub(r"\bconst\b|\bstruct\b|\bstd::", " ", head)
    names = head.split()
    # `unsigned long int` and `long unsigned` are the same type.
    if len(names) > 1:
        sign = [name for name in names if name in ("unsigned", "signed")]
        rest = [name for name in names if name not in ("unsigned", "signed")]
        rest = [name for name in rest if name != "int"] or (["int"] if not sign else [])
        names = [*(name for name in sign if name == "unsigned" or rest in (["char"], [])), *rest]
    base = " ".join(names)
    vector = re.fullmatch(r"(float|double|u?char|u?short|u?int|u?long|u?longlong)[1234]", base)
    if vector:
        base = {"ulong": "unsigned long", "longlong": "long long", "ulonglong": "unsigned long long"}.get(
            vector[1], vector[1]
        )
    return CType(bool(star), const, _C_TYPES.get(base))


def of_kernel(function: Function, names: Sequence[str], c_types: Sequence[str] = ()) -> list[Parameter]:
    """The kernel's parameters under these names, from its PTX and, where they are known, its C types.

    Raises SsmtoolError for a structure by value, for which a vector has no argument.
    """
    uses = _uses(function)
    found = []
    for position, (name, declared) in enumerate(zip(names, function.params, strict=True)):
        if declared.dims:
            raise SsmtoolError(
                f"{function.name}: {name} is a structure or an array by value ({declared.size} bytes), "
                "and a vector has no argument for one",
                hint="a kernel that takes its members one by one can be verified",
            )
        kind = c_type(c_types[position]) if len(c_types) == len(names) else None
        use = uses[declared.name]
        wide = declared.type in ("u64", "s64", "b64")
        marked = declared.pointer is not None
        if kind.pointer if kind else wide and (use.address or marked):
            found.append(_buffer(name, use, kind))
            continue
        exact = declared.type in ("f32", "f64")
        dtype = _PTX_TYPES[declared.type] if exact and declared.type else _SCALARS.get(declared.type or "")
        sure = exact or (dtype is not None and not wide)
        if kind and (number := _number(kind.dtype)) and dtype and number[-2:] == dtype[-2:]:
            dtype, sure = number, True
        found.append(Parameter(name, dtype or "int32", sure=sure and dtype is not None))
    buffers = [each for each in found if each.buffer]
    if buffers and not any(each.stored for each in buffers):
        # A kernel without any output is none: the first buffer that C lets it write, else the first.
        const = {name for name, written in zip(names, c_types, strict=False) if c_type(written).const}
        first = next((each for each in buffers if each.name not in const), buffers[0])
        found[found.index(first)] = replace(first, stored=True, sure=False)
    return found


def _number(dtype: str | None) -> str | None:
    """The type as that of a number among the arguments, which have at least 32 bits."""
    if dtype is None or dtype == "float16":
        return None
    return {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)


def _buffer(name: str, use: _Use, kind: CType | None) -> Parameter:
    typed = [_PTX_TYPES[each] for each in use.types if each in _PTX_TYPES]
    untyped = [_UNTYPED[each] for each in use.types if each in _UNTYPED]
    told = list(dict.fromkeys(typed or untyped))
    dtype = kind.dtype if kind and kind.dtype else told[0] if told else "float32"
    # Compilers load half as u16.
    sure = bool(kind and kind.dtype) or (bool(typed) and len(told) == 1 and told[0] != "uint16")
    loaded, stored = use.loaded, use.stored
    if not (loaded or stored):
        # The text does not show it, as behind a call: what C allows.
        sure = bool(kind and kind.const)
        loaded, stored = True, not (kind is None or kind.const)
    return Parameter(name, dtype, buffer=True, loaded=loaded, stored=stored, sure=sure)


def _uses(function: Function) -> Mapping[str, _Use]:
    """What becomes of each parameter. Flow is not looked at: a register is an address of all that it ever was."""
    uses = {each.name: _Use() for each in function.params}
    origin: dict[Register, set[str]] = {}
    instructions = list(function.instructions)
    changed = True
    while changed:
        changed = False
        for each in instructions:
            carried = _carried(each, uses, origin)
            for register in defs(each) if carried else ():
                held = origin.setdefault(register, set())
                if not carried <= held:
                    held |= carried
                    changed = True
    # An index that is added to an address is no address: cvta tells those that are, where a compiler writes it.
    sure = {name for each in instructions if each.base == "cvta" for name in _carried(each, uses, origin)}
    for each in instructions:
        _note(each, uses, origin, sure)
    return uses


def _carried(each: Instruction, uses: Mapping[str, _Use], origin: Mapping[Register, set[str]]) -> set[str]:
    """The parameters whose value, plus something, an instruction's result is."""
    if each.base == "ld" and each.space == "param":
        held = [word for word in each.operands[1:] if isinstance(word, Address) and isinstance(word.base, Symbol)]
        return {word.base.name for word in held if isinstance(word.base, Symbol) and word.base.name in uses}
    if each.base not in _CARRIES:
        return set()
    sources = each.operands[3:] if each.base == "mad" else each.operands[1:]
    return {name for word in sources for register in registers_of(word) for name in origin.get(register, ())}


def _note(
    each: Instruction, uses: Mapping[str, _Use], origin: Mapping[Register, set[str]], sure: set[str]
) -> None:  # fmt: skip
    """Add what a load, a store or an atomic does at the addresses that it names."""
    if each.space in ("param", "shared", "local", "const") and not each.base.startswith("cp"):
        return
    addresses = [word for word in each.operands if isinstance(word, Address) and isinstance(word.base, Register)]
    for at, word in enumerate(addresses):
        assert isinstance(word.base, Register)
        names = origin.get(word.base, set())
        for name in (names & sure) or names:
            use = uses[name]
            use.address = True
            # The first of two addresses is where cp.async copies to.
            use.stored |= each.base in ("st", *_ATOMIC) or (len(addresses) > 1 and at == 0)
            use.loaded |= each.base in ("ld", "ldu", *_ATOMIC) or (len(addresses) > 1 and at > 0)
            use.types += [each.types[-1]] if each.types else []
