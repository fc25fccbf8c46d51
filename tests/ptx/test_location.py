from __future__ import annotations

from collections.abc import Callable

from ssmtool.ptx import Function, Loc, Module


def test_inlined_calls_lead_to_the_kernel_line(corpus: Callable[[str], Module]) -> None:
    module = corpus("nvcc-13.0-sm75-lineinfo")
    function = module.function("clang_kernel")
    assert function is not None
    assert module.files == {1: "/src/plain.cu"}
    call = Loc(1, 17, 5)
    places = {instruction.loc for instruction in function.instructions}
    # x[i] = cube(x[i]) + square(x[i + 1]): one square is called directly, the other by cube.
    assert Loc(1, 10, 38, "_Z6squaref", call) in places
    assert Loc(1, 10, 38, "_Z6squaref", Loc(1, 11, 38, "_Z4cubef", call)) in places
    assert {loc.outermost.line for loc in places if loc} <= set(range(13, 27))


def test_every_producer_with_line_information_is_understood(corpus: Callable[[str], Module]) -> None:
    stems = ["nvrtc-11.4-sm37-lineinfo", "nvrtc-11.4-sm35-debug", "clang-14-sm37-lineinfo", "clang-14-sm20-debug"]
    stems += ["nvcc-13.0-sm75-debug", "triton-3.9-softmax-sm75", "triton-3.9-matmul-sm80"]
    for stem in stems:
        module = corpus(stem)
        locs = [i.loc for function in module.functions for i in function.instructions]
        known = [loc for loc in locs if loc is not None]
        assert len(known) > 0.9 * len(locs), stem
        assert {loc.file for loc in known} <= set(module.files), stem


def test_sections_are_skipped_and_named(corpus: Callable[[str], Module]) -> None:
    names = [name for name, _, _ in corpus("nvcc-13.0-sm75-debug").sections]
    assert ".debug_info" in names
    assert ".debug_str" in [name for name, _, _ in corpus("nvcc-13.0-sm75-lineinfo").sections]


def test_without_debug_information_there_is_no_place(corpus: Callable[[str], Module]) -> None:
    assert all(i.loc is None for i in corpus("nvrtc-11.4-sm37").functions[0].instructions)


def test_the_last_loc_counts_and_a_chain_never_closes(kernel: Callable[..., Function]) -> None:
    function = kernel(
        ".loc 1 5 1\n.loc 1 6 2, function_name S, inlined_at 1 7 3\nret;\n"
        ".loc 1 7 3, function_name S+99, inlined_at 1 6 2\nret;\n"
        ".loc 1 6 2, function_name S, inlined_at 1 7 3\nret;\n"
    )
    first, second, third = (instruction.loc for instruction in function.instructions)
    assert first == Loc(1, 6, 2, None, Loc(1, 7, 3))
    assert second == Loc(1, 7, 3, None, first)
    assert third is not None
    assert third.outermost.inlined_at is None


def test_names_of_inlined_functions_come_from_the_string_section(kernel: Callable[..., Function]) -> None:
    section = ".section .debug_str\n{\nA:\n.b8 102\n.b8 0\nB: \n.b8 103,111,0\n}\n"
    function = kernel(
        ".loc 1 1 1, function_name B, inlined_at 1 2 1\nret;\n"
        ".loc 1 1 2, function_name .debug_str+0, inlined_at 1 2 1\nret;\n"
        ".loc 1 1 3, function_name B+1, inlined_at 1 2 1\nret;\n"
        ".loc 1 1 4, function_name GONE, inlined_at 1 2 1\nret;",
        module=section,
    )
    assert [i.loc and i.loc.function for i in function.instructions] == ["go", "f", "o", None]
