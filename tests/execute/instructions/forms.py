"""Every numeric form as a tiny PTX body, many to a kernel: each loads its operands, runs and stores its result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ssmtool.probe.inputs import CASES, inputs
from ssmtool.probe.variants import Variant, register

HEADER = ".version 7.4\n.target sm_37\n.address_size 64\n"

LANES = "%tid.x"
"""The case number differs from lane to lane: vectors."""
BLOCK = "%ctaid.x"
"""The case number is the same in all lanes: scalars."""


def operands(forms: Sequence[Variant]) -> tuple[dict[tuple[str, int], int], NDArray[np.uint64]]:
    """(row of each kind and position, the rows' cases as 64-bit words)."""
    keys = sorted({(kind, place) for v in forms for place, kind in enumerate(v.operands)})
    return {key: row for row, key in enumerate(keys)}, np.stack([inputs(kind, place) for kind, place in keys])


def operand(kind: str, place: int) -> str:
    """The register that holds the cases of a kind and position."""
    return f"{kind}_{place}"


def body(v: Variant, row: int) -> str:
    """One form and its store, in a scope of its own."""
    text = v.text
    for place, (letter, kind) in enumerate(zip("abc", v.operands, strict=False)):
        text = text.replace("%" + letter, operand(kind, place))
    r = register(v.result)
    lines = [f"{{ .reg .{r} res; mov.{r} res, 0;", "{", text.replace("%d", "res"), "}"]
    return "\n".join([*lines, f"st.global.{r} [%out+{8 * CASES * row}], res; }}"])


def kernel(name: str, forms: Sequence[Variant], rows: dict[tuple[str, int], int], case: str) -> str:
    """An entry that runs every form on the case that the special register `case` names."""
    used = sorted({(kind, place) for v in forms for place, kind in enumerate(v.operands)})
    loads = [
        f".reg .{register(kind)} {operand(kind, place)}; "
        f"ld.global.{register(kind)} {operand(kind, place)}, [%in+{8 * CASES * rows[kind, place]}];"
        for kind, place in used
    ]
    return "\n".join(
        [
            f".visible .entry {name}(.param .u64 in, .param .u64 out) {{",
            ".reg .b64 %in, %out, %off; .reg .b32 %case;",
            f"mov.u32 %case, {case}; mul.wide.u32 %off, %case, 8;",
            "ld.param.u64 %in, [in]; add.u64 %in, %in, %off; ld.param.u64 %out, [out]; add.u64 %out, %out, %off;",
            *loads,
            *[body(v, row) for row, v in enumerate(forms)],
            "ret; }",
        ]
    )


@cache
def single(v: Variant) -> str:
    """A module of one form."""
    rows, _ = operands([v])
    return HEADER + kernel("k", [v], rows, LANES)
