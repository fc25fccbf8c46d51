from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ssmtool.ptx import Module, PtxSyntaxError, parse

HEAD = ".version 7.4\n.target sm_37\n.address_size 64\n"
GOOD = HEAD + ".visible .entry k(.param .u64 p)\n{\n\t.reg .b32 %r<3>;\n\tmov.u32 %r1, 1;\n\tret;\n}\n"


def count_statements(text: str) -> Counter[str]:
    """An oracle that shares nothing with the parser: statements as a reader would mark them, line by line."""
    text = re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", text))
    bodies: list[str] = []
    depth = 0
    keep: list[str] = []
    in_function = False
    for line in text.split("\n"):
        if re.match(r"\s*(\.visible |\.weak |\.extern )*\.(entry|func)\b", line):
            in_function = True
        if re.match(r"\s*\.section\b", line):
            in_function = False
        depth += line.count("{") - line.count("}")
        if in_function and (depth or line.strip().endswith("}")):
            keep.append(re.sub(r"^\s*\.(loc|file)\b.*", "", line))
        if depth == 0 and keep:
            bodies.append("\n".join(keep))
            keep = []
    counts: Counter[str] = Counter()
    for body in bodies:
        for statement in body.split(";"):
            # The opcode is the last word that stands at the statement's own beginning, after braces, labels, guard.
            words = re.sub(r"^(?:\s|[{}]|[\w$]+\s*:(?!:)|@!?[%\w$]+)+", "", statement).split()
            if words and not words[0].startswith((".", ")", "(", "}")):
                counts[words[0]] += 1
    return counts


def test_every_corpus_file_is_known_through_and_through(corpus_file: Path) -> None:
    module = parse(corpus_file.read_bytes(), str(corpus_file))
    assert module.unknown == []
    assert module.require_entries()
    for function in module.functions:
        function.check()
        assert function.instructions[-1].line > function.line


def test_opcode_counts_are_those_of_a_line_reader(corpus_file: Path) -> None:
    assert parse(corpus_file.read_text()).histogram() == count_statements(corpus_file.read_text())


def test_spans_and_positions_give_the_instruction_back(corpus_file: Path) -> None:
    module = parse(corpus_file.read_text())
    for function in module.functions:
        assert function.text == module.text[slice(*function.span)]
        previous = function.span[0]
        for instruction in function.instructions:
            start, end = instruction.span
            assert previous < start < end <= function.span[1]
            assert module.text[start:end] == instruction.text
            assert instruction.text.endswith(";")
            assert re.match(rf"(@!?[%\w$]+\s+)?{re.escape(instruction.opcode.text)}(?![\w.])", instruction.text)
            assert module.source.offset(instruction.line, instruction.column) == start
            previous = end


def test_crlf_gives_the_same_instructions_on_the_same_lines(corpus_file: Path) -> None:
    text = corpus_file.read_text()
    plain, crlf = parse(text), parse(text.replace("\n", "\r\n"))
    assert crlf.histogram() == plain.histogram()
    for one, other in zip(plain.functions, crlf.functions, strict=True):
        assert [(i.line, i.operands) for i in one.instructions] == [(i.line, i.operands) for i in other.instructions]


def test_one_statement_a_line_is_only_a_habit() -> None:
    squeezed = parse(GOOD.replace("\n", " ").replace("\t", " "))
    assert squeezed.histogram() == Counter({"mov.u32": 1, "ret": 1})
    assert (squeezed.version, squeezed.target, squeezed.address_size) == ((7, 4), "sm_37", 64)


def test_header_facts_of_each_producer(corpus: Callable[[str], Module]) -> None:
    facts = {
        "nvrtc-11.4-sm37": ((7, 4), "sm_37", 5, 9),
        "clang-14-sm20-debug": ((3, 2), "sm_20", 1, 4),
        "triton-3.9-matmul-sm100": ((9, 4), "sm_100a", 1, 1),
        "numba-cuda-0.30-sm75": ((8, 8), "sm_75", 1, 1),
        "llvmlite-0.50-sm35": ((3, 2), "sm_35", 1, 1),
    }
    for stem, expected in facts.items():
        module = corpus(stem)
        assert (module.version, module.target, len(module.entries), len(module.functions)) == expected
    assert "debug" in corpus("nvrtc-11.4-sm35-debug").target_options


def test_variables_of_the_module(corpus: Callable[[str], Module]) -> None:
    module = corpus("nvrtc-11.4-sm37")
    sizes = {variable.name: (variable.space, variable.size, variable.alignment) for variable in module.variables}
    assert sizes["table"] == ("const", 20, 4)
    assert sizes["counter"] == ("global", 4, 4)
    assert sizes["words"] == ("global", 16, 8)
    assert sizes["dynamic"][:2] == ("shared", 0)
    dynamic = module.variable("dynamic")
    assert dynamic is not None
    assert dynamic.linkage == "extern"


def test_launch_directives_and_clusters(corpus: Callable[[str], Module]) -> None:
    bounded = corpus("nvcc-13.0-sm75").function("vectors")
    assert bounded is not None
    maxntid, blocks = bounded.directive("maxntid"), bounded.directive("minnctapersm")
    assert maxntid is not None
    assert maxntid.numbers[0] == 256
    assert blocks is not None
    assert blocks.numbers == (2,)
    hopper = corpus("nvcc-13.0-sm90a-tma-wgmma").functions[0]
    assert {directive.name for directive in hopper.directives} >= {"explicitcluster", "reqnctapercluster"}


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, 1, "empty"),
        (" \n\t\r\n", 1, 1, "empty"),
        ("// only a comment\n", 1, 1, "empty"),
        ("hello world\n", 1, 1, "expected a PTX directive, found 'hello'"),
        ("int main() { return 0; }", 1, 1, "'int'"),
        (".target sm_37\n", 1, 1, "starts with .version"),
        (".version seven\n", 1, 1, "MAJOR.MINOR"),
        (".version 7.4\n", 1, 13, "no .target"),
        (GOOD + GOOD, 10, 1, "two PTX modules"),
        (GOOD.replace("}\n", ""), 5, 1, "never closed"),
        (GOOD + "}\n", 10, 1, "unmatched '}'"),
        (GOOD.replace("ret;", "ret"), 8, 2, "'ret' has no ';'"),
        (GOOD.replace("1;", "1"), 7, 16, "';' is missing"),
        (GOOD.replace("mov.u32 %r1, 1;", "mov.u32 %r1, 1 ld.local.f32 %r1, [%r2];"), 7, 16, "';' is missing"),
        (GOOD.replace("mov.u32 %r1, 1;", "mov.u32 {%r1, %r2;"), 5, 1, "never closed"),
        (GOOD.replace("mov.u32 %r1, 1;", "mov.u32 %r1}, 1;"), 7, 2, "has no ';'"),
        (GOOD.replace("mov.u32", "MOV.U32"), 7, 2, "expected an instruction, found 'MOV.U32'"),
        (GOOD.replace("mov.u32", "mov..u32"), 7, 2, "expected an instruction, found 'mov..u32'"),
        (GOOD.replace("mov.u32 %r1, 1;", "@%p1 ;"), 7, 7, "expected an instruction"),
        (GOOD.replace("p)", "p"), 4, 18, "never closed"),
        (GOOD.replace(" k(", " ("), 4, 32, "expected the name"),
        (GOOD.replace("{", "", 1), 6, 2, "expected the '{'"),
        (GOOD + ".global .b8 x[4]", 10, 1, "no ';'"),
        (GOOD + ".visible .entry", 10, 1, "cut off"),
        (GOOD + ".section .debug_str {\n.b8 1\n", 10, 21, "never closed"),
        (GOOD + "/* not closed", 10, 1, "a comment that starts here is never closed"),
        (GOOD.replace("ret;", '.pragma "nounroll;'), 8, 10, "a string that starts here is never closed"),
        (GOOD.replace("mov.u32 %r1, 1;", "mov.u32 %r1, 1 \u00d7 2;"), 7, 17, "not part of PTX"),
        (GOOD.replace("mov", "mo\x00v"), 7, 4, "binary data"),
        (GOOD.replace("\n}", "\n.visible .entry j()\n{\n ret;\n}") + "}\n", 9, 1, "'}' is missing"),
        (GOOD + ".func f() { .local .b8 x[; ret; }", 10, 25, "in this declaration"),
    ],
)
def test_bad_text_is_an_error_with_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(PtxSyntaxError, match=re.escape(says)) as caught:
        for function in parse(text, "bad.ptx").functions:
            function.check()
    assert (caught.value.line, caught.value.column) == (line, column), caught.value
    assert caught.value.path == "bad.ptx"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(100), "cubin"),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00" + bytes(8), "fat binary"),
        (b"BC\xc0\xde" + bytes(8), "bitcode"),
        (b"\x1f\x8b\x08" + bytes(8), "gzip"),
        (GOOD.encode("utf-16"), "UTF-16"),
        (bytes(64), "binary data"),
        (GOOD.encode() + b"\xff\xfe", "not part of PTX"),
    ],
)
def test_binary_is_named_for_what_it_is(data: bytes, says: str) -> None:
    with pytest.raises(PtxSyntaxError, match=says) as caught:
        parse(data)
    assert caught.value.line is not None


def test_a_cubin_read_as_text_is_still_named() -> None:
    with pytest.raises(PtxSyntaxError, match="cubin"):
        parse((b"\x7fELF\x02\x01\x01" + bytes(9)).decode("latin-1"))


def test_a_name_in_latin_1_in_a_comment_does_not_stop_the_reading() -> None:
    assert parse(b"// caf\xe9\n" + GOOD.encode()).require_entries()


def test_no_entry_is_an_error_only_for_those_who_need_one() -> None:
    module = parse(HEAD + ".visible .func f()\n{\n\tret;\n}\n")
    assert [function.name for function in module.functions] == ["f"]
    with pytest.raises(PtxSyntaxError, match=r"no \.entry in this PTX \(1 \.func\)"):
        module.require_entries()
    with pytest.raises(PtxSyntaxError, match=r"no \.func either"):
        parse(HEAD).require_entries()


def test_what_is_unknown_is_kept_verbatim_and_reported() -> None:
    text = GOOD.replace("\tret;", "\t.newdirective 1, 2\n\tfrob.u32 %r1, %r2; // new\n\t.other 5;\n\tret;")
    text += ".futuristic a, b;\n.block x { .b8 1; }\n.line_only 7\n"
    module = parse(text)
    assert [(item.line, item.column, item.text) for item in module.unknown] == [
        (8, 2, ".newdirective 1, 2"),
        (10, 2, ".other 5"),
        (13, 1, ".futuristic a, b"),
        (14, 1, ".block x { .b8 1; }"),
        (15, 1, ".line_only 7"),
        (9, 2, "frob.u32 %r1, %r2"),
    ]
    assert module.histogram()["frob.u32"] == 1, "an unknown instruction is counted all the same"
    assert module.histogram()["ret"] == 1


def test_less_usual_directives_are_known() -> None:
    text = HEAD + (
        '.pragma "enable_smem_spilling";\n'
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
        ".weak .func f() .noreturn\n{\n\ttrap;\n}\n"
        ".func .attribute(.unified(12, 34)) (.reg .u32 out) old (.reg .u32 in)\n{\n\tmov.u32 out, in;\n\tret;\n}\n"
        ".alias g, old;\n"
        ".common .global .align 8 .b8 shared_by_all[16];\n"
        ".global .texref tex; .global .samplerref smp = { addr_mode_0 = clamp_to_edge };\n"
        ".visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 map[128])\n"
        '.maxntid 128, 2, 1 .minnctapersm 3\n.maxnreg 40 .reqnctapercluster 2 .pragma "x;y";\n{\n\tret;\n}\n'
        "@@DWARF .section .debug_info\n"
    )
    module = parse(text)
    assert module.unknown == []
    assert [header.name for header in module.declarations] == ["vprintf"]
    assert module.function("g") is module.function("old")
    old, kernel = module.function("old"), module.function("k")
    assert old is not None
    assert kernel is not None
    assert (old.returns[0].space, old.params[0].name) == ("reg", "in")
    assert old.instructions[0].operands == (old.parser.resolve("out", 0), old.parser.resolve("in", 0))
    assert {directive.name: directive.arguments for directive in kernel.directives} == {
        "maxntid": ("128", "2", "1"),
        "minnctapersm": ("3",),
        "maxnreg": ("40",),
        "reqnctapercluster": ("2",),
        "pragma": ('"x;y"',),
    }
    pointer = kernel.params[0].pointer
    assert pointer is not None
    assert (pointer.space, pointer.align) == ("global", 16)
    assert (kernel.params[1].size, kernel.params[1].alignment) == (128, 64)


def test_comments_and_strings_hide_nothing_and_add_nothing() -> None:
    text = GOOD.replace(
        "\tret;",
        '\t// ld.local.f32 %f1, [%r1]; {\n\t/* st.local.f32 [%r1], %f1; }\n */\n\t.pragma "a;{}//b";\n\tret;',
    )
    module = parse(text)
    assert module.histogram() == Counter({"mov.u32": 1, "ret": 1})
    assert module.functions[0].instructions[-1].line == 12


def test_a_line_of_a_megabyte_is_read_in_no_time() -> None:
    many = "add.u32 %r1, %r1, 1; " * 50_000
    module = parse(GOOD.replace("mov.u32 %r1, 1;", many))
    assert module.histogram()["add.u32"] == 50_000
    last = module.functions[0].instructions[49_999]
    assert (last.line, last.column) == (7, 2 + 21 * 49_999)


def test_functions_closed_in_any_column_are_kept_apart() -> None:
    tail = ".func a() { ret; }\n.func b() { {\nret;\n}\n }\n"
    tail += ".func c()\n  {\n  exit;\n  }\n.func d()\n{\ntrap;\n}\n.func e() { }"
    module = parse(GOOD + tail)
    found = {function.name: function.opcodes for function in module.functions}
    assert found == {"k": ["mov.u32", "ret"], "a": ["ret"], "b": ["ret"], "c": ["exit"], "d": ["trap"], "e": []}
    assert [function.text.count("}") for function in module.functions] == [1, 1, 2, 1, 1, 1]


def test_many_one_line_functions_take_linear_time() -> None:
    module = parse(HEAD + "".join(f".func f{i}() {{ ret; }}\n" for i in range(20_000)) + ".func g()\n{\n}\n")
    assert len(module.functions) == 20_001


@pytest.mark.parametrize("blank", ["\n", " ", "\t\r\n", "/* c */\n"])
def test_a_megabyte_of_blanks_inside_a_statement(blank: str) -> None:
    blanks = blank * (1_000_000 // len(blank))
    module = parse(GOOD.replace(", 1;", f",{blanks}1{blanks};"))
    module.functions[0].check()
    assert module.histogram() == Counter({"mov.u32": 1, "ret": 1})


@pytest.mark.parametrize("filler", ["x" * 1_000_000, "{" * 100_000, "(" * 100_000, "1" * 1_000_000, "@" * 100_000])
def test_a_megabyte_of_nonsense_is_an_error_and_takes_no_time(filler: str) -> None:
    with pytest.raises(PtxSyntaxError):
        for function in parse(GOOD.replace("%r1, 1", "%r1, " + filler + " +")).functions:
            function.check()
