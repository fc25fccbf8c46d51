"""`ssmtool registry` as its users run it, on the product and on projects of other shapes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conftest import Run, snapshot
from ssmtool.build.entries import record_entries
from ssmtool.cli import main
from ssmtool.header import CompilerRecord, HeaderModule, ModuleRecord, render_header, sha256
from ssmtool.report.console import console

LOADER = "kernels/fc_cuda.c"
SIGMOID = '    "fc_sigmoid",\n'


@pytest.fixture(autouse=True)
def _own_console() -> None:
    """The console keeps the stdout it was made with; click's runner gives every command a new one."""
    if hasattr(console, "cache_clear"):
        console.cache_clear()


def edit(path: Path, old: str, new: str) -> bytes:
    """Replace the first `old`; the bytes from before."""
    before = path.read_bytes()
    assert old.encode() in before
    path.write_bytes(before.replace(old.encode(), new.encode(), 1))
    return before


def header_module(constant: str, source: str, names: list[str]) -> HeaderModule:
    entries = "".join(f".visible .entry {name}(\n)\n{{\n\tret;\n}}\n" for name in names)
    ptx = f".version 7.4\n.target sm_37\n.address_size 64\n{entries}"
    record = ModuleRecord(
        constant=constant,
        source=source,
        source_sha256="0" * 64,
        includes={},
        flags=(),
        compiler=CompilerRecord("nvrtc", "11.4.152"),
        ptx_isa="7.4",
        target="sm_37",
        entries=record_entries(ptx, {}),
        ptx_sha256=sha256(ptx),
    )
    return HeaderModule(record, ptx)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A project with two modules in one loader, and a third without a loader."""
    names = {"one": ["a", "b"], "two": ["c", "d"], "three": ["e"]}
    for module, kernels in names.items():
        text = "".join(f'extern "C" __global__ void {name}(int x) {{}}\n' for name in kernels)
        (tmp_path / f"{module}.cu").write_text(text)
    modules = tuple(header_module(f"PTX_{name.upper()}", f"{name}.cu", kernels) for name, kernels in names.items())
    (tmp_path / "ptx.h").write_bytes(render_header("ptx.h", modules))
    (tmp_path / "load.cpp").write_bytes(
        b'static const char *one[] = {"a", "b"};\r\nstatic const char *two[] = {"c", "d"};\r\n'
        b"bool start() { return load(one, 2) && load(two, 2); }\r\n"
    )
    settings = 'header = "ptx.h"\n'
    for module in names:
        settings += f'[[module]]\nsource = "{module}.cu"\nconstant = "PTX_{module.upper()}"\n'
        if module != "three":
            settings += f'[module.loader]\npath = "load.cpp"\narray = "{module}"\nfunction = "load"\n'
    (tmp_path / "ssmtool.toml").write_text(settings)
    return tmp_path


def test_the_product_climbs_all_rungs(product: Path, run: Run) -> None:
    before = snapshot(product)
    ran = run(product, "registry", "--fix")
    assert ran.code == 0
    assert ran.out.rstrip().endswith("ok: ssm_gated_delta: 15 of 15 kernels load")
    assert ran.out.count("yes") == 30
    assert snapshot(product) == before


def test_a_deleted_name_is_restored_to_the_byte(product: Path, run: Run) -> None:
    before = edit(product / LOADER, SIGMOID, "")
    ran = run(product, "registry")
    assert ran.code == 1
    assert "registry/symbol-without-name" in ran.out
    assert "fc_sigmoid" in ran.out
    assert "mend it: ssmtool registry --fix" in ran.out
    fixed = run(product, "registry", "--fix")
    assert fixed.code == 0
    assert f"{LOADER}: fc_sigmoid added at index 3" in fixed.out
    assert (product / LOADER).read_bytes() == before


def test_a_loader_with_crlf_keeps_it(product: Path, run: Run) -> None:
    path = product / LOADER
    before = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(before.replace(SIGMOID.replace("\n", "\r\n").encode(), b"", 1))
    assert run(product, "registry", "--fix").code == 0
    assert path.read_bytes() == before


def test_a_sixteenth_kernel_is_walked_through_three_steps(product: Path, run: Run) -> None:
    with (product / "kernels/ssm_gated_delta.cu").open("a") as source:
        source.write('extern "C" __global__ void fc_new(float *x) { x[0] = 0.0f; }\n')
    before = snapshot(product)
    ran = run(product, "registry", "--fix")
    assert ran.code == 1
    assert "step 1 of 3, defined in the source: done" in ran.out
    assert "mend it: ssmtool build" in ran.out
    assert "raises the count on line" in ran.out
    assert snapshot(product) == before, "a name the header lacks would stop the loader"


def test_json_carries_verdict_ladder_and_simulation(product: Path, run: Run) -> None:
    edit(product / LOADER, SIGMOID, "")
    data = run(product, "registry", "--format", "json").json
    assert (data["verdict"], data["exit_code"]) == ("wrong", 1)
    (module,) = data["modules"]
    assert module["simulation"]["message"]
    row = next(row for row in module["kernels"] if row["kernel"] == "fc_sigmoid")
    assert row["ptx_index"] == 3
    assert row["loader_index"] is None
    assert row["loads"] is False
    assert module["loader"]["count"]["value"] == 15
    fixed = run(product, "registry", "--fix", "--format", "json").json
    assert fixed["fixes"] == [{"path": LOADER, "edits": ["fc_sigmoid added at index 3"]}]
    assert fixed["verdict"] == "ok"


def test_quiet_is_silent_when_all_is_well(product: Path) -> None:
    result = CliRunner().invoke(main, ["-q", "-C", str(product), "registry"])
    assert (result.exit_code, result.output) == (0, "")


def test_each_module_has_its_ladder_and_a_missing_loader_is_no_pass(two: Path, run: Run) -> None:
    ran = run(two, "registry")
    assert ran.code == 0
    for module in ("one", "two", "three"):
        assert f"{module}.cu -> ptx.h: PTX_{module.upper()}" in ran.out
    assert "skipped: registry of three: the settings name no loader" in ran.out
    assert ran.out.rstrip().endswith("three: 1 kernel, no loader checked; 1 skipped")


def test_two_modules_of_one_loader_are_fixed_in_one_write(two: Path, run: Run) -> None:
    path = two / "load.cpp"
    before = path.read_bytes()
    path.write_bytes(before.replace(b'"a", "b"', b'"a"').replace(b'"c", "d"', b'"c"').replace(b"one, 2", b"one, 1"))
    ran = run(two, "registry", "--fix")
    assert ran.code == 0
    assert path.read_bytes() == before


def test_a_refused_fix_is_said_and_exits_1(two: Path, run: Run) -> None:
    edit(two / "load.cpp", '"a", "b"', '"b", "a"')
    before = snapshot(two)
    ran = run(two, "registry", "--fix")
    assert ran.code == 1
    assert "registry/wrong-order" in ran.out
    assert "skipped: fix of load.cpp: left as it is: " in ran.out
    assert snapshot(two) == before


def test_a_loader_that_fix_would_refuse_is_not_sent_to_it(product: Path, run: Run) -> None:
    # The name goes, and what is left of its place is under an #if that flags decide.
    edit(product / LOADER, SIGMOID, "")
    edit(product / LOADER, '    "fc_ssm_decay_gate",\n', '#if WITH_IT\n    "fc_ssm_decay_gate",\n#endif\n')
    ran = run(product, "registry", "--format", "json")
    assert ran.code == 1
    (finding,) = [each for each in ran.json["findings"] if each["rule"] == "registry/symbol-without-name"]
    assert finding["fix"].startswith(f"edit {LOADER} by hand; ssmtool registry --fix would leave it as it is: ")
    before = snapshot(product)
    assert "left as it is" in run(product, "registry", "--fix").out
    assert snapshot(product) == before


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("static const char *one[]", "static const char *uno[]", 2, "has no array one"),
        ("static const char *two[]", "static const char *one[]", 2, "2 arrays named one"),
        ("load(one, 2)", "load(one, 2) && load(one, 2)", 2, "2 times"),
        ("load(one, 2)", "start_all()", 2, "calls load, but not with one"),
        ('"a", "b"', "first, second", 2, "not a plain string"),
        ('"a"', '"a\0"', 2, "NUL byte"),
    ],
)
def test_a_loader_that_cannot_be_read_is_one_error_and_stays(
    two: Path, run: Run, old: str, new: str, code: int, message: str
) -> None:
    edit(two / "load.cpp", old, new)
    before = snapshot(two)
    for arguments in (["registry"], ["registry", "--fix"]):
        ran = run(two, *arguments)
        assert ran.code == code
        assert ran.err.startswith("error: load.cpp")
        assert message in ran.err
        assert ran.err.count("error:") == 1
        assert ran.out == ""
    machine = run(two, "registry", "--format", "json")
    assert message in machine.json["error"]["message"]
    assert machine.json["exit_code"] == machine.code == code
    assert snapshot(two) == before


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("load.cpp", None, 2, "load.cpp: no such file"),
        ("one.cu", None, 2, "one.cu: no such file"),
        ("ptx.h", None, 2, "ptx.h: no such file"),
        ("ptx.h", b"int x;", 2, "provenance block is missing"),
        ("one.cu", b"", 1, "defines no __global__ function"),
        ("one.cu", "int x;".encode("utf-16"), 2, "UTF-16"),
        ("load.cpp", "int x;".encode("utf-16"), 2, "UTF-16"),
        ("ssmtool.toml", b'header = "ptx.h"\n', 2, "the settings name no"),
    ],
)
def test_a_missing_or_wrong_file_is_one_error(
    two: Path, run: Run, name: str, content: bytes | None, code: int, message: str
) -> None:
    path = two / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    before = snapshot(two)
    ran = run(two, "registry", "--fix")
    assert ran.code == code
    assert message in ran.err
    assert ran.err.count("error:") == 1
    assert snapshot(two) == before


def test_no_settings_cannot_be_checked(tmp_path: Path, run: Run) -> None:
    ran = run(tmp_path, "registry")
    assert ran.code == 2
    assert "ssmtool init" in ran.err


def test_a_full_disk_leaves_the_loader(two: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(two / "load.cpp", '"a", "b"', '"a"')
    before = snapshot(two)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ssmtool.files.os.fsync", full)
    ran = run(two, "registry", "--fix")
    assert ran.code == 2
    assert "No space left on device; nothing was changed" in ran.err
    assert snapshot(two) == before


def test_the_table_fits_pipes_and_help_shows_examples(two: Path) -> None:
    command = [sys.executable, "-m", "ssmtool", "-C", str(two), "registry"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "\x1b" not in done.stdout
    assert "kernel" in done.stdout
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "Check that source, PTX, header and loader agree on the kernels." in shown
    assert "ssmtool registry --fix" in shown
    assert json.loads(subprocess.run([*command, "--format", "json"], capture_output=True, check=True).stdout)


def test_a_read_only_loader_is_left_alone_and_named(two: Path, run: Run) -> None:
    path = two / "load.cpp"
    edit(path, '"a", "b"', '"a"')
    path.chmod(0o444)
    before = snapshot(two)
    ran = run(two, "registry", "--fix")
    assert ran.code == 2
    assert ran.err.startswith("error: load.cpp: is read-only")
    assert "chmod u+w load.cpp" in ran.err
    assert snapshot(two) == before
    assert run(two, "registry").code == 1, "what is wrong is still told"
    path.chmod(0o644)
    assert run(two, "registry", "--fix").code == 0


def test_a_kernel_of_an_included_file_is_in_the_ladder(two: Path, run: Run) -> None:
    (two / "one.cu").write_text('#include "more_kernels.cuh"\nextern "C" __global__ void b(int x) {}\n')
    (two / "more_kernels.cuh").write_text('\n\nextern "C" __global__ void a(int x) {}\n')
    ran = run(two, "registry", "--format", "json")
    assert ran.code == 0
    rows = {row["kernel"]: row for row in ran.json["modules"][0]["kernels"]}
    assert (rows["a"]["source_path"], rows["a"]["source_line"]) == ("more_kernels.cuh", 3)
    assert rows["a"]["note"] == "in more_kernels.cuh"
    assert (rows["b"]["source_path"], rows["b"]["note"]) == ("one.cu", "")
    (two / "more_kernels.cuh").write_text("")
    gone = run(two, "registry")
    assert gone.code == 1, "with every file read, a symbol that none of them defines is an old one"
    assert "registry/symbol-without-source" in gone.out


@pytest.mark.parametrize("text", ["", "// nothing\n", "#include <stdint.h>\nint x;\n"])
def test_a_source_without_kernels_is_a_wrong_product(two: Path, run: Run, text: str) -> None:
    (two / "three.cu").write_text(text)
    names = {"one": ["a", "b"], "two": ["c", "d"]}
    modules = tuple(header_module(f"PTX_{name.upper()}", f"{name}.cu", kernels) for name, kernels in names.items())
    (two / "ptx.h").write_bytes(render_header("ptx.h", modules))
    for command in (["registry"], ["build", "--check"]):
        ran = run(two, *command)
        assert ran.code == 1, command
        assert "three.cu: defines no __global__ function" in ran.err


CROSSED = """\
#include <cuda.h>
#include "ptx.h"
static const char *one[] = {"a", "b"};
static const char *two[] = {"c", "d"};
static int load(CUmodule m, const char **names, int n);
int start(void)
{
    CUmodule m, n;
    if (cuModuleLoadData(&m, PTX_ONE) || cuModuleLoadData(&n, PTX_TWO)) return -1;
    return load(m, one, 2) || load(n, two, 2);
}
"""


@pytest.mark.parametrize("sent", [("m, one", "m, two", "n, two", "n, one"), ("&m,", "&?,", "&n,", "&m,", "&?,", "&n,")])
def test_modules_that_changed_places_are_told_whichever_end_was_swapped(
    two: Path, run: Run, sent: tuple[str, ...]
) -> None:
    (two / "load.cpp").write_text(CROSSED)
    assert run(two, "registry").code == 0
    text = CROSSED
    for old, new in zip(sent[::2], sent[1::2], strict=True):
        text = text.replace(old, new)
    (two / "load.cpp").write_text(text)
    for command in ("registry", "build --check"):
        ran = run(two, *command.split())
        assert ran.code == 1
        assert "registry/wrong-constant" in ran.out
        told = " ".join(ran.out.split())
        assert "one (line 10) is looked up in the module loaded from PTX_TWO; its kernels are in PTX_ONE" in told
        assert "PTX_TWO is the PTX of two.cu: it has no a, the loader stops there" in told
    ladder = json.loads(run(two, "registry", "--format", "json").out)["modules"]
    assert [row["loads"] for module in ladder[:2] for row in module["kernels"]] == [False] * 4
    before = snapshot(two)
    run(two, "registry", "--fix")
    assert snapshot(two) == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("&n, PTX_TWO", "&n, PTX_TOW", "it loads PTX_TOW, which no module of the settings makes"),
        ("cuModuleLoadData(&n, PTX_TWO)", "0 /* cuModuleLoadData(&n, PTX_TWO) */", "it loads PTX_ONE"),
        ("&n, PTX_TWO", '&n, "PTX_TWO"', "PTX_TWO, the PTX of two.cu, is never mentioned"),
        ("    return load", "#if 0\n    PTX_TWO;\n#endif\n    return load", ""),
    ],
)
def test_a_constant_that_the_code_never_names_is_told(two: Path, run: Run, old: str, new: str, words: str) -> None:
    text = CROSSED.replace(old, new)
    (two / "load.cpp").write_text(text if words else text.replace("&n, PTX_TWO)", "&n, text)"))
    ran = run(two, "registry")
    assert ran.code == 1
    assert ran.out.count("[registry/constant-not-loaded]") == 1
    assert words in " ".join(ran.out.split())
    assert "no launch reaches its kernels" in ran.out


def test_a_loader_that_is_handed_its_ptx_by_others_is_not_accused(two: Path, run: Run) -> None:
    text = CROSSED.replace('#include "ptx.h"\n', "").replace("PTX_ONE", "first").replace("PTX_TWO", "second")
    (two / "load.cpp").write_text(text.replace("start(void)", "start(const char *first, const char *second)"))
    assert run(two, "registry").code == 0


@pytest.mark.parametrize("header", ['#define FIRST PTX_ONE\n#include "sys.h"\n', "extern const char PTX_ONE[];\n"])
def test_a_constant_that_a_header_of_the_loaders_header_names_is_found(two: Path, run: Run, header: str) -> None:
    (two / "outer.h").write_text('#include "gpu.h"\n#include "outer.h"\n')
    (two / "gpu.h").write_text(header)
    (two / "load.cpp").write_text('#include "outer.h"\n' + CROSSED.replace("PTX_ONE", "FIRST"))
    assert run(two, "registry").code == 0


@pytest.mark.parametrize("header", [b"\xff\xfeA\0", b"", b"#define LOAD(n) load(PTX_##n)\n", b'#include "load.cpp"\n'])
def test_a_header_that_tells_nothing_accuses_nobody(two: Path, run: Run, header: bytes) -> None:
    (two / "gpu.h").write_bytes(header)
    (two / "load.cpp").write_text('#include "gpu.h"\n' + CROSSED)
    assert run(two, "registry").code == 0


def test_one_array_of_two_modules_is_one_finding_and_no_circle(two: Path, run: Run) -> None:
    settings = two / "ssmtool.toml"
    settings.write_text(settings.read_text().replace('array = "two"', 'array = "one"'))
    (two / "load.cpp").write_text('const char *one[] = {"a", "b", "c", "d"};\nint start() { return load(one, 4); }\n')
    before = snapshot(two)
    ran = run(two, "registry", "--fix")
    assert ran.code == 1
    assert ran.out.count("error:") == 1
    assert "one is the array of 2 modules, one.cu and two.cu: split it [registry/shared-array]" in ran.out
    assert "ssmtool registry --fix" not in ran.out
    assert "ssmtool build" not in ran.out
    assert snapshot(two) == before


def test_the_only_name_of_an_array_is_respelt_in_its_place(two: Path, run: Run) -> None:
    (two / "one.cu").write_text('extern "C" __global__ void scaled_rows(int x) {}\n')
    modules = (header_module("PTX_ONE", "one.cu", ["scaled_rows"]), header_module("PTX_TWO", "two.cu", ["c", "d"]))
    modules = (*modules, header_module("PTX_THREE", "three.cu", ["e"]))
    (two / "ptx.h").write_bytes(render_header("ptx.h", modules))
    edit(two / "load.cpp", '{"a", "b"}', '{"dq"}')
    edit(two / "load.cpp", "load(one, 2)", "load(one, 1)")
    assert run(two, "registry").code == 1
    ran = run(two, "registry", "--fix")
    assert ran.code == 0
    assert "dq becomes scaled_rows" in ran.out
    assert b'*one[] = {"scaled_rows"};\r\n' in (two / "load.cpp").read_bytes()


@pytest.mark.parametrize(
    "rows", ['{"a", &f}, {"b", &g}', '{"b", &g}, {"a", &f}, {0}', '{.n = "a", .f = &f}, {&g, "b"}']
)
def test_a_table_of_structs_is_checked_by_its_names_and_never_edited(two: Path, run: Run, rows: str) -> None:
    table = f"struct k {{ const char *n; void *f; }};\nstruct k one[] = {{{rows}}};\n".replace('{&g, "b"}', '{"b", &g}')
    text = table + 'const char *two[] = {"c", "d"};\nint start() { return load(one, 2) || load(two, 2); }\n'
    (two / "load.cpp").write_text(text)
    assert run(two, "registry").code == 0
    (two / "load.cpp").write_text(text.replace('"b"', '"bb"'))
    ran = run(two, "registry", "--fix")
    assert ran.code == 1
    assert "registry/name-without-symbol" in ran.out
    assert "the rows of one hold more than names, so they are edited by hand" in ran.out
    assert (two / "load.cpp").read_text() == text.replace('"b"', '"bb"')


def test_names_of_another_module_are_not_called_removed_and_are_not_deleted(two: Path, run: Run) -> None:
    edit(two / "load.cpp", '{"a", "b"}', '{"a", "b", "c"}')
    edit(two / "load.cpp", "load(one, 2)", "load(one, 3)")
    before = snapshot(two)
    ran = run(two, "registry", "--fix")
    assert ran.code == 1
    told = " ".join(ran.out.split())
    assert "one[2] is c, and the module has no such kernel: it is a kernel of two.cu, whose PTX is another" in told
    assert "mend it: give the kernels of two.cu an array and a loading call of their own" in told
    assert "left as it is: c is a kernel of two.cu: split one by hand" in told
    assert snapshot(two) == before
