"""The header: what C compilers read out of it is the PTX, and what ssmtool reads out of it is what it wrote."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssmtool.errors import ProductError
from ssmtool.header import (
    CompilerRecord,
    EntryRecord,
    HeaderModule,
    ModuleRecord,
    NoProvenanceError,
    read_header,
    render_header,
    sha256,
)

PTX = """.version 7.4
.target sm_37
.address_size 64
.visible .entry copy(
\t.param .u64 copy_param_0
)
{
\t.reg .b64 \t%rd<3>;
\tld.param.u64 \t%rd1, [copy_param_0];
$L__BB0_1:
\t.pragma "nounroll";
\tret;
}
"""


def module(constant: str = "FC_PTX_COPY", ptx: str = PTX, source: str = "kernels/copy.cu") -> HeaderModule:
    record = ModuleRecord(
        constant=constant,
        source=source,
        source_sha256=sha256("source"),
        includes={"kernels/tree.cuh": sha256("include")},
        flags=("-DFAST=1",),
        compiler=CompilerRecord("nvrtc", "11.4.152"),
        ptx_isa="7.4",
        target="sm_37",
        entries=(EntryRecord("copy", "u64 out", "0123456789ab"),),
        ptx_sha256=sha256(ptx),
    )
    return HeaderModule(record, ptx)


def write(folder: Path, *modules: HeaderModule) -> Path:
    path = folder / "fc_cuda_ptx.h"
    path.write_bytes(render_header(path.name, modules))
    return path


def compilers() -> list[str]:
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    assert found, "neither gcc nor clang is installed, so no C compiler read the header"
    return found


def compiled_text(folder: Path, header: Path, constant: str, *flags: str, compiler: str) -> str:
    """What a C program sees in the constant."""
    source = folder / "main.c"
    source.write_text(
        f'#include "{header.name}"\n#include <stdio.h>\nint main(void) {{ return fputs({constant}, stdout) == EOF; }}\n'
    )
    program = folder / "main"
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    subprocess.run([compiler, *warnings, *flags, str(source), "-o", str(program)], check=True, cwd=folder)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def test_reading_gives_back_what_was_rendered(tmp_path: Path) -> None:
    modules = (module(), module("FC_PTX_OTHER", source="b.cu"))
    header = read_header(write(tmp_path, *modules))
    assert header.modules == modules
    assert header.module("FC_PTX_OTHER") == modules[1]
    assert header.module("FC_PTX_NONE") is None


@given(st.text(st.sampled_from('\\"?\n\t aé;{}@%$/*'), min_size=1).map(lambda text: text.replace("\r", "") + "\n"))
def test_any_text_survives_the_escapes(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = write(tmp_path_factory.mktemp("header"), module(ptx=text))
    assert read_header(path).modules[0].ptx == text


@pytest.mark.parametrize("flags", [(), ("-DFC_PTX_SPLIT_LITERALS",)])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_compilers_read_the_same_text_beyond_the_literal_limit_of_msvc(
    tmp_path: Path, compiler: str, flags: tuple[str, ...]
) -> None:
    if compiler not in compilers():
        pytest.skip(f"{compiler} is not installed: it was not checked that it compiles the header")
    # Trigraphs, quotes and backslashes are what a careless writer of literals loses.
    long = PTX + '// "??/" \\ "quoted" ??=\n' * 6000
    path = write(tmp_path, module(ptx=long))
    assert compiled_text(tmp_path, path, "FC_PTX_COPY", *flags, compiler=compiler) == long


def test_no_literal_passes_what_msvc_accepts(tmp_path: Path) -> None:
    text = write(tmp_path, module(ptx=PTX * 1200)).read_text()
    sizes = [int(size) for size in re.findall(r"char part\d+\[(\d+)\];", text)]
    assert sum(sizes) == len(PTX * 1200) + 1 > 3 * 65_535
    assert max(sizes) <= 65_535
    assert text.count("FC_PTX_COPY_NEXT\n") == len(sizes)  # one #define, one between each two parts


def test_a_checkout_with_crlf_is_the_same_header(tmp_path: Path) -> None:
    path = write(tmp_path, module())
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_header(path).modules == (module(),)


def test_a_path_that_looks_like_a_comment_end_stays_inside_the_comment(tmp_path: Path) -> None:
    given_module = module(source="a*/b/*c.cu")
    path = write(tmp_path, given_module)
    assert read_header(path).modules == (given_module,)
    assert compiled_text(tmp_path, path, "FC_PTX_COPY", compiler=compilers()[0]) == PTX


def test_a_header_of_other_make_says_that_it_cannot_be_told(tmp_path: Path) -> None:
    path = tmp_path / "old.h"
    path.write_text('static const char FC_PTX_COPY[] = ".version 7.4\\n";\n')
    with pytest.raises(NoProvenanceError, match="provenance block is missing") as caught:
        read_header(path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("part", [0.1, 0.3])
def test_a_header_cut_inside_its_provenance_cannot_be_told(tmp_path: Path, part: float) -> None:
    path = write(tmp_path, module())
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(NoProvenanceError, match="cut off"):
        read_header(path)


def test_a_header_cut_inside_its_literals_is_wrong_with_a_line(tmp_path: Path) -> None:
    path = write(tmp_path, module())
    text = path.read_text()
    path.write_text(text[: text.index("nounroll")])
    with pytest.raises(ProductError, match="FC_PTX_COPY is cut off") as caught:
        read_header(path)
    assert caught.value.exit_code == 1
    assert caught.value.line is not None


def test_damaged_json_and_a_newer_format_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, module())
    text = path.read_text()
    path.write_text(text.replace('"format":1', '"format":2'))
    with pytest.raises(NoProvenanceError, match="has format 2"):
        read_header(path)
    path.write_text(text.replace('"format":1', '"format":'))
    with pytest.raises(NoProvenanceError, match="is damaged"):
        read_header(path)
