"""Instruction forms as PTX: one entry that applies several forms to one row of operands for each thread."""

from __future__ import annotations

from collections.abc import Sequence

from ssmtool.probe.variants import Variant, register

ENTRY = "forms"
THREADS = 256
HEADER = ".version 7.4\n.target sm_37\n.address_size 64\n"

Operands = tuple[str, ...]


def operand_rows(forms: Sequence[Variant]) -> dict[tuple[Operands, int], int]:
    """Which 64-bit word of a case holds operand `position` of the forms that take these operand kinds."""
    rows: dict[tuple[Operands, int], int] = {}
    for form in forms:
        for position in range(len(form.operands)):
            rows.setdefault((form.operands, position), len(rows))
    return rows


def module(forms: Sequence[Variant]) -> str:
    """PTX with the entry `forms`(operands, results, cases).

    Case i reads the words of its row at operands + i * 8 * rows, and writes form j's result, zero-extended to 64 bits,
    at results + (i * forms + j) * 8. Cases past the last are left out.
    """
    rows = operand_rows(forms)
    lines = [
        HEADER,
        f".visible .entry {ENTRY}(.param .u64 operands, .param .u64 results, .param .u32 cases) {{",
        ".reg .pred past; .reg .b32 i, n, t; .reg .b64 in, out, off, zero;",
        "mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, n, t;",
        "ld.param.u32 n, [cases]; setp.ge.u32 past, i, n; @past ret;",
        f"ld.param.u64 in, [operands]; mul.wide.u32 off, i, {8 * len(rows)}; add.u64 in, in, off;",
        f"ld.param.u64 out, [results]; mul.wide.u32 off, i, {8 * len(forms)}; add.u64 out, out, off; mov.b64 zero, 0;",
    ]
    for number, form in enumerate(forms):
        lines += _one(form, rows, 8 * number)
    return "\n".join([*lines, "ret; }", ""])


def _one(form: Variant, rows: dict[tuple[Operands, int], int], place: int) -> list[str]:
    text = form.text
    lines = ["{"]
    for position, (name, kind) in enumerate(zip("abc", form.operands, strict=False)):
        size = register(kind)
        at = 8 * rows[form.operands, position]
        lines.append(f".reg .{size} o{name}; ld.global.{size} o{name}, [in+{at}];")
        text = text.replace(f"%{name}", f"o{name}")
    size = register(form.result)
    # Forms that merge into their destination read it: it starts at zero.
    lines.append(f".reg .{size} res; mov.{size} res, 0;")
    lines += ["{", text.replace("%d", "res"), "}"]
    lines += [f"st.global.b64 [out+{place}], zero;"] if size != "b64" else []
    return [*lines, f"st.global.{size} [out+{place}], res;", "}"]
