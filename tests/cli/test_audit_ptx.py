"""The command as a user meets it: inputs, exit codes, formats, limits."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).parents[1] / "audit" / "corpus"
HISTORY = str(AUDIT / "history.ptx")
Run = Callable[..., Any]

SMALL = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k() { .local .align 4 .b8 __local_depot0[8]; .reg .b64 %rd<3>; .reg .b32 %r<3>;
mov.u64 %rd1, __local_depot0; st.local.u32 [%rd1], %r1; ret; }
"""


@pytest.fixture
def product(product: Path) -> Path:
    """The product, whose budgets on registers and frames only a ptxas can check."""
    from ssmtool.toolchain.ptxas import select_ptxas

    # It raises where there is none: `make test` brings one, so its absence is a broken set-up and no reason to skip.
    select_ptxas("sm_37", (7, 4))
    return product


def settings(product: Path, extra: str) -> None:
    path = product / "pyproject.toml"
    path.write_text(path.read_text() + extra)


def test_the_product_is_clean(product: Path, run: Run) -> None:
    found = run(product, "audit-ptx")
    assert found.code == 0, found.out + found.err
    assert "15 kernels; 0 declare local memory, 0 may execute local traffic" in found.out


def test_declared_against_executed_in_one_sentence(tmp_path: Path, run: Run) -> None:
    found = run(tmp_path, "audit-ptx", HISTORY, "--assume", "fast.param_5=4")
    assert found.code == 0
    assert "fast: declared 12 bytes, executed path 0 ld.local + 0 st.local (param_5 = 4)" in found.out


def test_parameter_by_its_c_name_from_the_header(product: Path, run: Run) -> None:
    found = run(product, "audit-ptx", "--assume", "fc_ssm_conv1d_silu_seq.conv_kernel=4")
    assert "executed path 0 ld.local + 0 st.local (conv_kernel = 4)" in found.out


def test_assumption_about_nothing_is_an_error(product: Path, run: Run) -> None:
    found = run(product, "audit-ptx", "--assume", "fc_ssm_conv1d_silu_seq.kernel=4")
    assert found.code == 2
    assert "has no parameter kernel; it has: qkv, weight" in found.err


def test_budget_that_is_met_and_one_that_is_not(product: Path, run: Run) -> None:
    settings(product, '\n[[tool.ssmtool.budget]]\nkernel = "fc_*"\nlocal_bytes = 0\nexecuted_local = 0\n')
    assert run(product, "audit-ptx").code == 0
    (product / "bad.ptx").write_text(SMALL.replace("entry k", "entry fc_bad"))
    found = run(product, "audit-ptx", str(product / "bad.ptx"), "--format", "json")
    assert found.code == 1
    rules = {finding["rule"] for finding in found.json["findings"]}
    assert {"audit/over-budget-local-bytes", "audit/over-budget-executed-local"} <= rules


def test_budget_on_registers_comes_from_ptxas(product: Path, run: Run) -> None:
    settings(product, '\n[[tool.ssmtool.budget]]\nkernel = "fc_sigmoid"\nregisters = 1\n')
    found = run(product, "audit-ptx", "--format", "json")
    assert found.code == 1
    assert [finding["rule"] for finding in found.json["findings"]] == ["audit/over-budget-registers"]


def test_budget_that_no_ptxas_can_check_is_never_a_pass(
    product: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssmtool.toolchain.model import ToolchainError

    def none(*_: object) -> None:
        raise ToolchainError("no ptxas here")

    monkeypatch.setattr("ssmtool.audit.resources.select_ptxas", none)
    found = run(product, "audit-ptx")
    assert (found.code, "budgets on registers, frame_bytes, spill_bytes" in found.out) == (2, True), found.out


def test_budget_for_no_kernel_is_not_a_pass(product: Path, run: Run) -> None:
    settings(product, '\n[[tool.ssmtool.budget]]\nkernel = "fc_gone_*"\nlocal_bytes = 0\n')
    found = run(product, "audit-ptx")
    assert found.code == 2
    assert "no kernel has such a name" in found.out


def test_misspelt_budget_is_an_error(product: Path, run: Run) -> None:
    settings(product, '\n[[tool.ssmtool.budget]]\nkernel = "fc_*"\nlocal_byte = 0\n')
    assert run(product, "audit-ptx").code == 2


def test_settings_assume_for_every_run(product: Path, run: Run) -> None:
    path = product / "pyproject.toml"
    assert '"fc_ssm_conv1d_silu*.conv_kernel" = 4' in path.read_text()
    assert run(product, "audit-ptx").out.count("(conv_kernel = 4)") == 3
    # They speak of the project's kernels, not of every file.
    assert run(product, "audit-ptx", HISTORY).code == 0


def worsen(product: Path) -> None:
    """Put a local array into the header's first kernel, and keep the provenance as it is."""
    header = product / "generated" / "fc_cuda_ptx.h"
    array = "\t.local .align 4 .b8 __local_depot0[16];\\n"
    text = header.read_text()
    assert "\t.reg .pred" in text
    header.write_text(text.replace("\t.reg .pred", f"{array}\t.reg .pred", 1))


def test_ratchet(product: Path, run: Run) -> None:
    baseline = product / "generated" / "audit-baseline.json"
    baseline.unlink(missing_ok=True)
    assert "there is no generated/audit-baseline.json yet" in run(product, "audit-ptx").out
    assert run(product, "audit-ptx", "--update-baseline").code == 0
    before = baseline.read_bytes()
    assert len(json.loads(before)["kernels"]) == 15
    assert run(product, "audit-ptx").code == 0
    data = json.loads(before)
    data["kernels"]["fc_sigmoid"]["local_bytes"] = 8
    baseline.write_text(json.dumps(data))
    better = run(product, "audit-ptx")
    assert better.code == 0
    assert "better than the baseline: bytes of .local declared: 8 -> 0" in better.out
    assert "ssmtool audit-ptx --update-baseline" in better.out
    run(product, "audit-ptx", "--update-baseline")
    assert baseline.read_bytes() == before
    worsen(product)
    worse = run(product, "audit-ptx", "--format", "json")
    assert worse.code == 1
    assert "audit/baseline-worse" in {finding["rule"] for finding in worse.json["findings"]}


def test_damaged_baseline_is_an_error(product: Path, run: Run) -> None:
    (product / "generated" / "audit-baseline.json").write_text("{")
    found = run(product, "audit-ptx")
    assert found.code == 1
    assert "is no baseline" in found.err


def test_baseline_under_other_assumptions_is_skipped_aloud(product: Path, run: Run) -> None:
    (product / "generated" / "audit-baseline.json").unlink(missing_ok=True)
    run(product, "audit-ptx", "--update-baseline")
    found = run(product, "audit-ptx", "--assume", "fc_ssm_conv1d_silu_seq.conv_kernel=3")
    assert "accepted with conv_kernel = 4, now conv_kernel = 3" in found.out


@pytest.mark.parametrize("output", ["json", "sarif", "junit", "markdown", "github"])
def test_every_format_carries_the_findings(tmp_path: Path, run: Run, output: str) -> None:
    found = run(tmp_path, "audit-ptx", HISTORY, "--format", output)
    assert found.code == 0
    assert "local memory on a path that may be executed" in found.out.replace("&#45;", "-")
    if output in ("json", "sarif"):
        json.loads(found.out)
    if output == "junit":
        ET.fromstring(found.out)


def test_json_has_every_access_with_its_place(tmp_path: Path, run: Run) -> None:
    found = run(tmp_path, "audit-ptx", HISTORY, "--format", "json", "--assume", "fast.param_5=3").json
    kernel = next(each for each in found["extra"]["kernels"] if each["name"] == "fast")
    assert kernel["local"] == {
        "declared_bytes": 12,
        "static_loads": 40,
        "static_stores": 21,
        "path_loads": 6,
        "path_stores": 3,
    }
    executed = [access for access in kernel["path"]["accesses"] if access["executed"]]
    assert len(executed) == 9
    assert all(access["source"].startswith("tests/audit/corpus/history.cu:") for access in executed)


@pytest.mark.parametrize(
    ("name", "data", "code", "words"),
    [
        ("empty.ptx", b"", 1, "empty"),
        ("cut.ptx", SMALL.encode()[:-20], 1, "never closed"),
        ("cubin.ptx", b"\x7fELF\x02\x01\x01", 1, "cubin"),
        ("binary.ptx", b".version 7.4\n\x00\x01", 1, "binary"),
        ("none.ptx", b".version 7.4\n.target sm_37\n.address_size 64\n", 1, "no .entry"),
        ("brace.ptx", SMALL.encode() + b"}", 1, "unmatched"),
        ("plain.h", b"int x;\n", 1, ""),
        ("missing.ptx", None, 2, "no such file"),
    ],
)
def test_bad_input_is_an_error_with_a_place(
    tmp_path: Path, run: Run, name: str, data: bytes | None, code: int, words: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    found = run(tmp_path, "audit-ptx", str(path))
    assert (found.code, words in found.err) == (code, True), found.err


def test_crlf_reads_as_lf(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "dos.ptx"
    path.write_bytes(SMALL.replace("\n", "\r\n").encode())
    assert "declared 8 bytes, executed path 0 ld.local + 1 st.local" in run(tmp_path, "audit-ptx", str(path)).out


def test_unknown_instruction_is_a_warning_with_line_and_column(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "new.ptx"
    path.write_text(SMALL.replace("ret;", "\n  frobnicate.b32 %r1, %r2;\nret;"))
    (finding,) = [
        each
        for each in run(tmp_path, "audit-ptx", str(path), "--format", "json").json["findings"]
        if each["rule"] == "audit/unknown-ptx"
    ]
    assert (finding["severity"], finding["line"], finding["column"]) == ("warning", 6, 3)


def test_ptx_in_any_c_source_and_in_a_folder(tmp_path: Path, run: Run) -> None:
    literal = "\n".join(f'"{line}\\n"' for line in SMALL.splitlines())
    (tmp_path / "mine.c").write_text(f"static const char *text =\n{literal};\nint x;\n")
    (tmp_path / "other.c").write_text("int y;\n")
    (tmp_path / "more.ptx").write_text(SMALL.replace("entry k", "entry l"))
    found = run(tmp_path, "audit-ptx", str(tmp_path / "mine.c"), "--format", "json").json
    (finding,) = found["findings"]
    assert finding["line"] == 6  # the C line that holds the store, not the PTX line
    both = run(tmp_path, "audit-ptx", str(tmp_path), "--format", "json").json
    assert [kernel["name"] for kernel in both["extra"]["kernels"]] == ["k", "l"]


def test_folder_without_kernels_is_an_error(tmp_path: Path, run: Run) -> None:
    (tmp_path / "x.c").write_text("int x;\n")
    assert run(tmp_path, "audit-ptx", str(tmp_path)).code == 1


def test_standard_input(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from ssmtool.cli import main

    result = CliRunner().invoke(main, ["-C", str(tmp_path), "audit-ptx", "-"], input=SMALL)
    assert result.exit_code == 0
    assert "declared 8 bytes" in result.stdout


def test_compare_says_what_changed_and_why(tmp_path: Path, run: Run) -> None:
    old, new = tmp_path / "old.ptx", tmp_path / "new.ptx"
    old.write_text(
        SMALL.replace("st.local.u32 [%rd1], %r1; ", "").replace(".local .align 4 .b8 __local_depot0[8];", "")
    )
    old.write_text(old.read_text().replace("mov.u64 %rd1, __local_depot0;", ""))
    new.write_text(SMALL + SMALL.split("64\n", 1)[1].replace("entry k", "entry l"))
    found = run(tmp_path, "audit-ptx", str(new), "--compare", str(old), "--format", "json").json
    table = next(each for each in found["extra"]["tables"] if each["title"] == "Before and after")
    rows = {row[0]: row for row in table["rows"]}
    assert rows["k"][2:5] == ["0 -> 8", "0 -> 1", "changed"]
    assert "an array is now indexed at run time or its address is taken" in rows["k"][5]
    assert rows["l"][4] == "new"


def test_compare_with_a_git_revision(tmp_path: Path, run: Run) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
            check=True,
            capture_output=True,
        )

    path = tmp_path / "k.ptx"
    path.write_text(SMALL)
    git("init", "-q")
    git("add", "k.ptx")
    git("commit", "-q", "-m", "one")
    path.write_text(SMALL.replace("[8]", "[32]"))
    found = run(tmp_path, "audit-ptx", str(path), "--compare", "git:HEAD")
    assert found.code == 0, found.err
    assert "8 -> 32" in found.out
    for revision in ("git:nowhere", "git:--output=x"):
        assert run(tmp_path, "audit-ptx", str(path), "--compare", revision).code == 2


def test_explain_marks_dead_lines_and_counts(product: Path, run: Run) -> None:
    found = run(product, "audit-ptx", "--explain", "fc_ssm_recurrence_seq")
    assert found.code == 0
    assert "loop control" in found.out
    found = run(product, "audit-ptx", "--explain", "fc_ssm_conv1d_silu_seq", "--assume", "*_seq.conv_kernel=4")
    assert "assumed: conv_kernel = 4" in found.out
    assert "  dead  " in found.out
    assert run(product, "audit-ptx", "--explain", "nothing").code == 2


def test_graph_is_well_formed_whatever_the_kernel_is_called(tmp_path: Path, run: Run) -> None:
    picture = tmp_path / "graph.svg"
    found = run(
        tmp_path, "audit-ptx", HISTORY, "--graph", str(picture), "--kernel", "fast", "--assume", "fast.param_5=4"
    )
    assert found.code == 0
    root = ET.parse(picture).getroot()
    space = "{http://www.w3.org/2000/svg}"
    kinds = [rect.get("class") for rect in root.iter(f"{space}rect")]
    assert kinds.count("dead") > 0
    assert kinds.count("local") == 0
    run(tmp_path, "audit-ptx", HISTORY, "--graph", str(picture), "--kernel", "fast", "--assume", "fast.param_5=3")
    kinds = [rect.get("class") for rect in ET.parse(picture).getroot().iter(f"{space}rect")]
    assert kinds.count("local") > 0
    assert run(tmp_path, "audit-ptx", HISTORY, "--graph", str(picture)).code == 2


def test_cost_tables_and_skips_with_launch_shapes_from_settings_and_command_line(product: Path, run: Run) -> None:
    # In one run: to walk every kernel takes seconds.
    for kernel in ("fc_sigmoid", "fc_ssm_gated_norm"):
        settings(product, f'\n[[tool.ssmtool.launch]]\nkernel = "{kernel}"\ngrid = 4\nblock = [64, 2]\n')
    found = run(
        product,
        "audit-ptx",
        "--cost",
        "--launch",
        "fc_sigmoid=2/32",
        "--assume",
        "fc_sigmoid.n=512",
        "--format",
        "json",
    )
    assert found.code == 0
    costs = {each["kernel"]: each for each in found.json["extra"]["cost"]["kernels"]}
    assert sum(costs["fc_ssm_recurrence_seq"]["position_slots"].values()) == 715
    # Softplus branches on data: that is said, and not counted as nothing.
    assert {skip["check"] for skip in found.json["skips"]} >= {"cost of fc_ssm_decay_gate"}
    norm, sigmoid = costs["fc_ssm_gated_norm"], costs["fc_sigmoid"]
    assert (norm["grid"], norm["block"], norm["warps"]) == ([4, 1, 1], [64, 2, 1], 4)
    assert (sigmoid["grid"], sigmoid["block"], sigmoid["warps"]) == ([2, 1, 1], [32, 1, 1], 1)
    assert sigmoid["assumed"]["n"] == 512


def test_resources_show_three_tiers_and_occupancy_for_the_launch_shapes(product: Path, run: Run) -> None:
    ran = run(product, "audit-ptx", "--resources")
    assert ran.code == 0
    assert "ptxas 11.8.89" in ran.out
    assert "Occupancy of one GK210 multiprocessor" in ran.out
    assert "driver (" in ran.out


def test_a_comment_ended_by_a_lone_cr_does_not_swallow_the_next_kernel(tmp_path: Path, run: Run) -> None:
    clean = SMALL.replace("entry k", "entry a").replace("st.local.u32 [%rd1], %r1; ", "")
    path = tmp_path / "mac.ptx"
    path.write_bytes(f"{clean}// next\n{SMALL.split('64' + chr(10), 1)[1]}".replace("\n", "\r").encode())
    found = run(tmp_path, "audit-ptx", str(path), "--format", "json").json
    assert [kernel["name"] for kernel in found["extra"]["kernels"]] == ["a", "k"]
    assert found["findings"][0]["line"] == 8


def test_two_entries_of_one_name_never_hide_each_other(tmp_path: Path, run: Run) -> None:
    clean = SMALL.replace("st.local.u32 [%rd1], %r1; ", "")
    path, other = tmp_path / "twice.ptx", tmp_path / "other.ptx"
    path.write_text(clean + SMALL.split("64\n", 1)[1])
    found = run(tmp_path, "audit-ptx", str(path), "--format", "json")
    assert found.code == 1
    assert {each["rule"] for each in found.json["findings"]} == {"audit/duplicate-entry", "audit/local-traffic"}
    # In two files they may stand; each is compared with its own.
    path.write_text(clean)
    other.write_text(SMALL)
    both = run(tmp_path, "audit-ptx", str(path), str(other), "--compare", str(path), "--format", "json")
    assert both.code == 0
    table = next(each for each in both.json["extra"]["tables"] if each["title"] == "Before and after")
    assert [row[4] for row in table["rows"]] == ["same", "new"]


def test_a_file_named_twice_is_audited_once(tmp_path: Path, run: Run) -> None:
    (tmp_path / "k.ptx").write_text(SMALL)
    (tmp_path / "again.ptx").symlink_to("k.ptx")
    found = run(tmp_path, "audit-ptx", str(tmp_path / "k.ptx"), str(tmp_path / "again.ptx"))
    assert "1 kernel;" in found.out


def test_registers_of_kernels_of_one_name_are_each_files_own(product: Path, run: Run) -> None:
    settings(product, '\n[[tool.ssmtool.budget]]\nkernel = "spilled"\nspill_bytes = 0\n')
    (product / "a.ptx").write_text(SMALL.replace("entry k", "entry spilled"))
    (product / "b.ptx").write_bytes((AUDIT / "tiers.ptx").read_bytes())
    found = run(product, "audit-ptx", str(product / "a.ptx"), str(product / "b.ptx"), "--format", "json")
    over = [each["path"] for each in found.json["findings"] if each["rule"] == "audit/over-budget-spill-bytes"]
    assert over == ["b.ptx"]


def test_a_baseline_that_lacks_a_number_or_has_another_is_never_silent(product: Path, run: Run) -> None:
    run(product, "audit-ptx", "--update-baseline")
    baseline = product / "generated" / "audit-baseline.json"
    data = json.loads(baseline.read_text())
    del data["kernels"]["fc_sigmoid"]["local_bytes"]
    baseline.write_text(json.dumps(data))
    assert "the baseline has no local_bytes: not compared" in run(product, "audit-ptx").out
    data["kernels"]["fc_sigmoid"]["locl_bytes"] = 0
    baseline.write_text(json.dumps(data))
    found = run(product, "audit-ptx")
    assert (found.code, "no number is called locl_bytes" in found.err) == (1, True)
    baseline.unlink()
    baseline.symlink_to("gone.json")
    assert run(product, "audit-ptx").code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--compare", "git:"], "is not a git revision"),
        (["--compare", "git:HEAD:x"], "is not a git revision"),
        (["--assume", "k.p=" + "9" * 5000], "a value of 5000 digits fits no parameter"),
        (["--assume", "k.p=\uff11"], "is not of the form"),
        (["--graph", "/dev/zero", "--kernel", "k"], "is a pipe or a device"),
        (["--launch", "kk=1/32"], "no entry is named kk; did you mean k?"),
        (["--launch", "k=1/2000"], "block size x is 2000"),
    ],
)
def test_wrong_options_are_one_line_and_exit_code_2(tmp_path: Path, run: Run, arguments: list[str], words: str) -> None:
    (tmp_path / "k.ptx").write_text(SMALL)
    found = run(tmp_path, "audit-ptx", str(tmp_path / "k.ptx"), *arguments)
    assert (found.code, words in found.err) == (2, True), found.err


def test_standard_input_that_is_closed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from ssmtool.audit.inputs import read_input
    from ssmtool.errors import SsmtoolError

    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SsmtoolError, match="standard input is closed"):
        read_input("-")


def test_launch_shapes_of_the_settings_speak_of_the_projects_kernels(product: Path, run: Run) -> None:
    settings(product, '\n[[tool.ssmtool.launch]]\nkernel = "fc_sigmoid"\ngrid = 4\nblock = [64, 2]\n')
    (product / "k.ptx").write_text(SMALL)
    assert run(product, "audit-ptx", str(product / "k.ptx"), "--cost").code == 0
    settings(product, '\n[[tool.ssmtool.launch]]\nkernel = "fc_sigmid"\ngrid = 4\nblock = 64\n')
    assert run(product, "audit-ptx").code == 2


def test_long_names_are_cut_in_tables_and_whole_in_commands_and_data(tmp_path: Path, run: Run) -> None:
    name = "_ZN" + "x" * 100 + "tail_of_it"
    path = tmp_path / "a file.ptx"
    path.write_text(SMALL.replace("entry k", f"entry {name}"))
    found = run(tmp_path, "audit-ptx", str(path))
    assert "xxx...tail_of_it: declared 8 bytes" in found.out
    assert f"ssmtool audit-ptx '{path}' --explain '_ZN{'x' * 32}*tail_of_it'" in found.out.replace("\n     ", "")
    assert run(tmp_path, "audit-ptx", str(path), "--explain", f"_ZN{'x' * 32}*tail_of_it").code == 0
    # Alike when cut: then they are not.
    other = name.replace("xtail", "ytail")
    path.write_text(path.read_text() + SMALL.split("64\n", 1)[1].replace("entry k", f"entry {other}"))
    assert f"{other}: declared" in run(tmp_path, "audit-ptx", str(path)).out
    # A pattern says which, where one fits.
    assert run(tmp_path, "audit-ptx", str(path), "--explain", "*ytail*").code == 0
    both = run(tmp_path, "audit-ptx", str(path), "--explain", "_ZN*")
    assert (both.code, "fits 2 entries" in both.err) == (2, True)
