"""Memory laid out: which variable lies where."""

from __future__ import annotations

from execute.programs import flat

from ssmtool.execute.program.flat import Place
from ssmtool.ptx.operands import Address


def test_shared_and_local_variables_are_laid_out_aligned_and_dynamic_memory_comes_last() -> None:
    head = ".shared .align 4 .b8 a[5]; .shared .align 8 .b64 b; .local .align 4 .b8 c[7]; .local .align 16 .b8 d[3];"
    body = "mov.u32 %r1, rest; mov.u32 %r2, b; mov.u32 %r3, a; mov.u64 %rd5, c; mov.u64 %rd6, d;"
    body += "ld.shared.u32 %r4, [rest+8];"
    code = flat(body, head=head, module=".extern .shared .align 32 .b8 rest[];\n")
    moves = [op.operands for op in code.instructions if op.base == "mov"]
    places = {getattr(to, "name", ""): place for to, place in moves}
    found = {name: (place.space, place.offset) for name, place in places.items() if isinstance(place, Place)}
    assert found["%r2"] == ("shared", 0)
    assert found["%r3"] == ("shared", 8)
    assert found["%r1"] == ("shared", 32)
    assert (found["%rd5"], found["%rd6"]) == (("local", 0), ("local", 16))
    assert (code.shared_bytes, code.dynamic_alignment, code.local_bytes) == (13, 32, 32)
    load = next(op for op in code.instructions if op.opcode.text == "ld.shared.u32")
    assert isinstance(load.operands[1], Address)
    assert isinstance(load.operands[1].base, Place)
    assert (load.operands[1].base.offset, load.operands[1].offset) == (32, 8)


def test_module_variables_are_noted_once() -> None:
    module = ".global .u32 g; .const .u32 c; .global .u32 unused;\n"
    assert flat("mov.u64 %rd5, g; mov.u64 %rd6, g; ld.const.u32 %r1, [c];", module=module).symbols == ["g", "c"]
