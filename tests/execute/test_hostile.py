"""PTX and arguments made to break the executor: one clear error, or the right answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssmtool.errors import SsmtoolError
from ssmtool.execute import Module
from ssmtool.execute.errors import LaunchError

HEAD = ".version 7.4\n.target sm_37\n.address_size 64\n"


def kernel(body: str, declared: str = "", before: str = "") -> Module:
    return Module(
        f"{HEAD}{before}\n.visible .entry k(.param .u64 y)\n{{\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;\n"
        f"{declared}\nld.param.u64 %d0, [y];\n{body}\nret;\n}}\n"
    )


STORE = "st.global.u32 [%d0], 7;"


def test_local_memory_of_a_thread_has_a_limit() -> None:
    room = np.zeros(1, np.uint32)
    kernel(f"st.local.u32 [l], 1; {STORE}", ".local .align 4 .b8 l[524288];").launch("k", 1, 1, [room])
    assert room[0] == 7
    for size in (524289, 1 << 33):
        module = kernel("st.local.u32 [l], 1;", f".local .align 4 .b8 l[{size}];")
        with pytest.raises(LaunchError, match="of local memory a thread; sm_37 allows 524288"):
            module.launch("k", 1, 1, [room])


def test_variables_that_no_machine_can_hold() -> None:
    with pytest.raises(LaunchError, match=r"no memory for the .* bytes of the module's variables"):
        kernel(STORE, before=".global .align 4 .b8 g[99999999999999];")


def test_a_large_variable_without_a_value_takes_no_memory() -> None:
    module = kernel("mov.u64 %d1, g; st.global.u32 [%d1], 7;", before=".global .align 4 .b8 g[2147483648];")
    module.launch("k", 1, 1, [None])
    assert module.variable("g")[0] == 7


def test_an_undeclared_register_is_told_at_its_own_line() -> None:
    module = kernel("\n\nadd.u32 %r1, %q, 1;")
    with pytest.raises(SsmtoolError, match="register %q is not declared in k") as caught:
        module.compile("k", 32)
    assert caught.value.line == 12


def test_thousands_of_registers_do_not_take_quadratic_time() -> None:
    # Each is a slot of the entry block; to search that block for each took 1 s at 5000 and 100 s at 50000.
    count = 5000
    lines = "\n".join(f"add.u32 %x{k + 1}, %x{k}, %ctaid.x;" for k in range(count))
    module = kernel(f"mov.u32 %x0, 1;\n{lines}\nst.global.u32 [%d0], %x{count};", f".reg .b32 %x<{count + 1}>;")
    room = np.zeros(1, np.uint32)
    module.launch("k", 2, 1, [room], threads=1)
    assert room[0] == 1 + count


BAD: list[tuple[dict[str, Any], str]] = [
    ({"budget": "many"}, "budget is 'many'"),
    ({"budget": True}, "budget is True"),
    ({"budget": 1.5}, "budget is 1.5"),
    ({"threads": 1.5}, "threads is 1.5"),
    ({"shapes": ["y"]}, "shapes is a dict"),
    ({"reachable": np.zeros(3, np.float32)}, "reachable is a list of arrays"),
    ({"reachable": [3]}, "a int is no NumPy array"),
    ({"args": {None: 1}}, "None is neither a parameter's name nor its number"),
    ({"entry": None}, "an entry's name is a str"),
]


@pytest.mark.parametrize(("change", "said"), BAD, ids=[said for _, said in BAD])
def test_arguments_of_a_wrong_kind_are_told(change: dict[str, Any], said: str) -> None:
    words = {"entry": "k", "grid": 1, "block": 1, "args": [np.zeros(1, np.uint32)], **change}
    with pytest.raises(LaunchError) as caught:
        kernel(STORE).launch(**words)
    assert said in str(caught.value)


def test_numbers_of_numpy_and_a_budget_beyond_64_bits_are_taken() -> None:
    room = np.zeros(1, np.uint32)
    kernel(STORE).launch("k", 1, 1, [room], threads=np.int64(2), budget=1 << 70)  # type: ignore[arg-type]
    assert room[0] == 7


def test_one_name_of_an_uninitialised_buffer_is_not_taken_for_letters() -> None:
    text = f"{HEAD}.visible .entry k(.param .u64 out) {{ ret; }}"
    Module(text).launch("k", 1, 1, [np.zeros(1, np.uint32)], uninitialised="out")


@pytest.mark.parametrize("thing", [None, 3, ["text"]])
def test_what_is_no_text_is_no_module(thing: Any) -> None:
    with pytest.raises(LaunchError, match="PTX is text, bytes or a parsed module"):
        Module(thing)


def test_an_unknown_directive_is_refused_by_name_and_line_unless_it_is_another_kernels() -> None:
    """It may change what the code means; nothing has run then."""
    kernel = ".visible .entry {}(.param .u64 p)\n{{\n.reg .b64 %d;\n{}\nld.param.u64 %d, [p];\nret;\n}}\n"
    head = ".version 7.4\n.target sm_37\n.address_size 64\n"
    inside = Module(head + kernel.format("good", "") + kernel.format("bad", ".frobnicate 3;"))
    assert inside.launch("good", 1, 1, [None]).ok
    with pytest.raises(SsmtoolError, match=r"unknown directive: \.frobnicate 3") as caught:
        inside.launch("bad", 1, 1, [None])
    assert caught.value.line == 14
    with pytest.raises(SsmtoolError, match=r"unknown directive: \.odd 7"):
        Module(head + ".odd 7\n" + kernel.format("good", "")).launch("good", 1, 1, [None])
