"""Whatever is done to real PTX, the answer is a model or a PtxSyntaxError with a place, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ssmtool.ptx import ControlFlowGraph, PtxSyntaxError, extract, parse
from ssmtool.ptx.dataflow import Liveness, ReachingDefinitions
from ssmtool.ptx.initialisers import initial_value

CORPUS = Path(__file__).parent / "corpus"
TEXTS = [
    (CORPUS / f"{stem}.ptx").read_text()
    for stem in ("nvcc-13.0-sm75-lineinfo", "nvcc-13.0-sm90a-tma-wgmma", "clang-14-sm37", "llvmlite-0.50-sm90")
]
PIECES = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "@",
    "@%p1 ",
    ":",
    ".",
    '"',
    "/*",
    "//",
    "*/",
    "\\",
    "\r\n",
    "\n",
    "-",
    "+",
    "%",
    "<",
    ">",
    "|",
    "!",
    "_",
    "0f",
    "0x",
    "9",
    "99999999999999999999999",
    "::",
    ".loc 1 2 3",
    ".reg .b32 x;",
    "ret;",
    ".entry",
    ".section .x {",
    "L:",
    "ld.local.f32",
    "\x00",
    "\u00e9",
    "generic(",
    "?",
    "=",
    "\t",
]


def use_everything(text: str) -> None:
    """Touch every lazy part of the model."""
    module = parse(text, "fuzz.ptx")
    _ = module.histogram()
    for variable in module.variables:
        if variable.size < 1 << 20:
            initial_value(module.source, variable)
    for function in module.functions:
        _ = function.registers, function.local_bytes, function.labels, function.text
        for instruction in function.instructions:
            assert module.text[slice(*instruction.span)] == instruction.text
            _ = instruction.operands, instruction.predicate, instruction.loc, instruction.line, repr(instruction)
        graph = ControlFlowGraph(function)
        _ = graph.immediate_post_dominators, graph.loops, Liveness(graph).pressure(), ReachingDefinitions(graph)


def holds(text: str) -> None:
    """The property: it works, or it is an error with a place inside the text."""
    try:
        use_everything(text)
    except PtxSyntaxError as error:
        lines = re.split(r"\r\n|\r|\n", text)  # a lone CR ends a line too, as on old Macs
        assert error.line is not None
        assert error.column is not None
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.floats(0, 1))
def test_truncation(text: str, where: float) -> None:
    holds(text[: int(where * len(text))])


def test_a_place_after_a_lone_carriage_return_is_on_the_next_line() -> None:
    holds(".version 7.4\n.target sm_37\n\r{")


@settings(max_examples=300)
@given(
    st.sampled_from(TEXTS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=4),
)
def test_mutation(text: str, edits: list[tuple[float, int, str]]) -> None:
    for where, removed, put in edits:
        at = int(where * len(text))
        text = text[:at] + put + text[at + removed :]
    holds(text)


@settings(max_examples=150)
@given(st.text(max_size=60))
def test_text_of_any_kind(text: str) -> None:
    holds(text)
    holds(".version 7.4\n.target sm_37\n" + text)
    holds(".version 7.4\n.target sm_37\n.entry k() {\n" + text + "}")
    holds(".version 7.4\n.target sm_37\n.entry k() {\nmov.b32 " + text + ";}")


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_bytes_of_any_kind(data: bytes) -> None:
    try:
        parse((b".version 7.4\n.target sm_37\n" if data[:1] > b"\x7f" else b"") + data)
    except PtxSyntaxError as error:
        assert error.line is not None


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from(
            [
                '"',
                "\\",
                "\n",
                "{",
                "}",
                "=",
                "x",
                "0x41,",
                'R"(',
                ')"',
                "'",
                "#define A ",
                ";",
                "//",
                "/*",
                "*/",
                '".version 7.4\\n"',
                " ",
            ]
        ),
        max_size=25,
    )
)
def test_c_source_of_any_kind(pieces: list[str]) -> None:
    try:
        for found in extract("".join(pieces)):
            assert len(found.host_lines) in (0, found.text.count("\n") + 1)
    except PtxSyntaxError as error:
        assert error.line is not None


def test_no_statement_lost_from_real_code_goes_unseen() -> None:
    """Taking out any one `;` either fails or, where it stood alone, changes no count."""
    text = TEXTS[2]
    counts = parse(text).histogram()
    for at in (index for index, char in enumerate(text) if char == ";"):
        cut = text[:at] + text[at + 1 :]
        try:
            module = parse(cut)
            for function in module.functions:
                function.check()
        except PtxSyntaxError:
            continue
        assert module.histogram() == counts, cut[max(0, at - 60) : at + 60]
