"""Which arithmetic leaves ptxas free to fuse a product into a sum, and so to round once instead of twice."""

from __future__ import annotations

from functools import lru_cache

_ROUNDINGS = frozenset(("rn", "rz", "rm", "rp"))


@lru_cache(maxsize=65536)
def is_open(opcode: str) -> bool:
    """Whether it is a multiplication, addition or subtraction that ptxas may fuse with another (PTX ISA, "mul", "add").

    With a rounding in its name ptxas takes it as written.
    """
    base, *modifiers = opcode.split(".")
    return base in ("mul", "add", "sub") and modifiers[-1:] in (["f32"], ["f64"]) and not _ROUNDINGS & set(modifiers)
