from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssmtool.ptx import PtxSyntaxError, extract, parse

PTX = '.version 7.4\n.target sm_37\n.address_size 64\n\n.visible .entry k()\n{\n\t.pragma "nounroll";\n\tret;\n}\n'


def literal(text: str) -> str:
    """A C string literal, in C's terms."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def by_lines(text: str, between: str = "\n    ") -> str:
    return between.join(literal(line) for line in text.splitlines(keepends=True))


def test_plain_ptx_is_itself() -> None:
    for text in (PTX, "// made by\n/* a\ncompiler */\n" + PTX, "\ufeff" + PTX):
        (found,) = extract(text.encode(), "a.ptx")
        assert found.name is None
        assert found.text == text.removeprefix("\ufeff")
        assert found.where(5) == "a.ptx:5"


def test_a_header_names_its_constant_and_its_lines() -> None:
    header = "#pragma once\n/* a header */\nstatic const char FC_PTX_K[] =\n    " + by_lines(PTX) + ";\n"
    (found,) = extract(header, "k.h")
    assert (found.name, found.text) == ("FC_PTX_K", PTX)
    lines = header.split("\n")
    for number, line in enumerate(PTX.splitlines(), 1):
        assert lines[found.host_line(number) - 1].strip().removesuffix(";") == literal(line + "\n")
    assert found.where(8) == "k.h:11"


def test_several_constants_macros_and_conditionals_between() -> None:
    header = (
        'const char *other = "not ptx .version";\n'
        "#define FC_PTX_NEXT\n"
        "const char *const ONE[] = {" + by_lines(PTX, " FC_PTX_NEXT\n") + "};\n"
        "extern const char TWO[SIZE] __attribute__((aligned(8))) = // comment\n"
        + by_lines(PTX.replace("k()", "j()"), "\n#ifdef X\n#endif\n /* c */ ")
        + ';\nvoid f(void) { load("x"); }\n'
    )
    assert [(item.name, item.text) for item in extract(header)] == [("ONE", PTX), ("TWO", PTX.replace("k()", "j()"))]


def test_continued_lines_raw_strings_defines_and_wide_prefixes() -> None:
    continued = PTX.replace('"', '\\"').replace("\n", "\\n\\\n")
    source = (
        f'const char A[] = "\\\n{continued}";\n'
        f'constexpr auto B = R"PTX({PTX})PTX";\n'
        "#define C \\\n" + by_lines(PTX, " \\\n") + "\n"
        'auto D = u8"' + literal(PTX)[1:] + ";\n"
        'struct s E = { .name = "k", .ptx = ' + by_lines(PTX) + " };\n"
    )
    found = {item.name: item for item in extract(source, "x.cpp")}
    assert {name: item.text for name, item in found.items()} == dict.fromkeys(("A", "B", "C", "D", "ptx"), PTX)
    lines = source.split("\n")
    for name in "ABC":
        assert "entry k" in lines[found[name].host_line(5) - 1]
        assert "nounroll" in lines[found[name].host_line(7) - 1]


def test_crlf_files_with_continuations() -> None:
    text = ('const char A[] = "' + PTX.replace('"', '\\"').replace("\n", "\\n\\\n") + '";\n').replace("\n", "\r\n")
    (found,) = extract(text)
    assert found.text == PTX


def test_escapes_of_every_kind() -> None:
    written = r'const char A[] = ".version 7.4\n// \x41\102\u0043\?\e\0" "1\\";'
    (found,) = extract(written)
    assert found.text == ".version 7.4\n// ABC?\x1b\x001\\"


@pytest.mark.parametrize("style", ["0x{:02x}", "{}", "0{:o}", "0x{:02X}u"])
def test_byte_arrays(style: str) -> None:
    rows = [PTX.encode()[at : at + 12] for at in range(0, len(PTX), 12)]
    body = ",\n  ".join(", ".join(style.format(byte) for byte in row) for row in rows)
    source = (
        f"unsigned char k_ptx[] = {{\n  {body}, 0x00\n}};\nunsigned int k_ptx_len = {len(PTX)};\nint n[] = {{1,2}};\n"
    )
    (found,) = extract(source, "k.c")
    assert (found.name, found.text) == ("k_ptx", PTX)
    assert found.host_line(1) == 2
    assert found.host_line(8) == 2 + PTX.index("\tret") // 12


def test_character_arrays() -> None:
    source = "char k[] = {" + ", ".join(f"'{literal(char)[1:-1]}'" for char in PTX).replace('\\"', '"') + ", '\\0'};"
    assert [item.text for item in extract(source)] == [PTX]


def test_xxd_makes_what_is_read_back(tmp_path: Path) -> None:
    if shutil.which("xxd") is None:
        pytest.skip("no xxd here: its real output was not checked, only arrays of its form")
    (tmp_path / "k.ptx").write_text(PTX)
    made = subprocess.run(["xxd", "-i", "k.ptx"], cwd=tmp_path, check=True, capture_output=True).stdout
    assert [(item.name, item.text) for item in extract(made)] == [("k_ptx", PTX)]


def test_a_compiler_reads_the_same_text(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: escapes were not checked against one")
    odd = PTX + "// \x01\x7f \\ ? \t end\n"
    source = (
        "#include <stdio.h>\nstatic const char A[] = "
        + by_lines(odd).replace("\x01", '\\1" "').replace("\x7f", '\\x7f" "')
        + ";\nint main(void) { return fwrite(A, 1, sizeof A - 1, stdout) == 0; }\n"
    )
    (tmp_path / "a.c").write_text(source)
    subprocess.run([compiler, "-w", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    printed = subprocess.run([tmp_path / "a"], check=True, capture_output=True).stdout
    assert printed.decode() == odd == extract(source)[0].text


def test_a_constant_that_is_commented_out_does_not_count() -> None:
    source = f"// const char *A = {literal(PTX)};\n/* char B[] = {literal(PTX)}; */\nchar C[] = {literal(PTX)};"
    assert [item.name for item in extract(source)] == ["C"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "empty"),
        ("int x;\n", 1, "no PTX in this file"),
        ('const char A[] = ".entry k() { ret; }";', 1, "no PTX in this file"),
        ('int x;\nconst char A[] = ".version 7.4\\n;\n', 2, "a string that starts here is never closed"),
        ("int x;\n\n/* no end", 3, "a comment that starts here is never closed"),
    ],
)
def test_what_holds_no_ptx_is_an_error(text: str, line: int, says: str) -> None:
    with pytest.raises(PtxSyntaxError, match=says) as caught:
        extract(text, "x.h")
    assert caught.value.line == line


def test_the_checked_in_header() -> None:
    header = Path(__file__).parent.parent.parent / "generated" / "fc_cuda_ptx.h"
    constants = extract(header.read_bytes(), "fc_cuda_ptx.h")
    assert [found.name for found in constants] == ["FC_PTX_SSM_GATED_DELTA", "FC_PTX_SSM_GATED_DELTA_FAST"]
    lines = header.read_text().split("\n")
    for found, kernels in zip(constants, (15, 3), strict=True):
        entries = parse(found.text).require_entries()
        assert len(entries) == kernels
        for entry in entries:
            assert f".entry {entry.name}(" in lines[found.host_line(entry.line) - 1]
            assert entry.local_bytes == 0


def test_a_megabyte_of_comments_takes_no_time() -> None:
    filler = "/* a comment */ extern int f(int); // more\n" * 25_000
    (found,) = extract(filler + f"char A[] = {literal(PTX)};\n", "big.h")
    assert found.where(1) == "big.h:25001"


def test_a_cubin_is_named() -> None:
    with pytest.raises(PtxSyntaxError, match="cubin"):
        extract(b"\x7fELF\x02\x01" + bytes(50), "x.cubin")


def test_line_numbers_survive_for_every_line_of_a_real_file(corpus_file: Path) -> None:
    text = corpus_file.read_text()
    header = "// top\nconst char A[] =\n" + by_lines(text, "\n") + ";\n"
    (found,) = extract(header, "a.h")
    assert found.text == text
    assert [found.host_line(n) for n in range(1, text.count("\n") + 1)] == list(range(3, 3 + text.count("\n")))
    assert parse(found.text).histogram() == parse(text).histogram()


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="\x00"), max_size=80))
def test_any_text_written_as_a_literal_comes_back(tail: str) -> None:
    text = ".version 7.4\n" + tail
    written = "".join(char if char.isalnum() or char in " .," else f"\\{ord(char):03o}" for char in text)
    assert [item.text for item in extract(f'char A[] = "{written}";')] == [text]
