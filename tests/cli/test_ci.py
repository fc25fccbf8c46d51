"""`ssmtool ci`: each broken link is named in the first line, and what did not run is told."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from ci import project as small

from conftest import ROOT, Ran, Run


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built, with a baseline and a commit."""
    from click.testing import CliRunner

    from ssmtool.cli import main

    folder = small.write(tmp_path_factory.mktemp("small") / "project")
    for words in (("build",), ("audit-ptx", "--update-baseline")):
        done = CliRunner().invoke(main, ["-C", str(folder), *words])
        assert done.exit_code == 0, done.output
    small.commit(folder)
    return folder


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "project"))


def first(ran: Ran) -> str:
    return ran.out.splitlines()[0]


def test_all_is_well_and_what_did_not_run_is_told(run: Run, project: Path) -> None:
    ran = run(project, "ci", "--device", "cpu")
    assert ran.code == 0, ran.out
    assert first(ran).startswith("ok: 1 kernel; build, registry, audit-ptx, verify in ")
    assert "skipped: numbers on a card: --device cpu was asked for" in ran.out
    assert "not applicable: this PTX lacks a kernel of each" in ran.out
    assert "verify: ok (" in ran.err and ran.err.index("build: ok") < ran.err.index("verify: ok")


def test_a_changed_source(run: Run, project: Path) -> None:
    small.edit(project / "k.cu", "1.0f / ", "2.0f / ")
    ran = run(project, "ci", "--device", "cpu")
    assert ran.code == 1
    assert first(ran).startswith("wrong: source -> PTX -> header (build): k.cu")
    assert first(ran).endswith("mend it: ssmtool build")


def test_a_header_edited_by_hand(run: Run, project: Path) -> None:
    small.edit(project / "ptx.h", "ld.global.f32", "ld.global.u32")
    ran = run(project, "ci", "--skip", "verify")
    assert ran.code == 1
    assert first(ran).startswith("wrong: source -> PTX -> header (build): ptx.h: the header was edited by hand")
    assert first(ran).endswith("mend it: ssmtool build")


def test_a_loader_in_another_order(run: Run, product: Path) -> None:
    loader = product / "kernels" / "fc_cuda.c"
    small.edit(
        loader,
        '    "fc_ssm_recurrence",\n    "fc_ssm_conv1d_silu",',
        '    "fc_ssm_conv1d_silu",\n    "fc_ssm_recurrence",',
    )
    ran = run(product, "ci", "--only", "build", "--only", "registry")
    assert ran.code == 1
    assert first(ran).startswith("wrong: header -> loader (registry): kernels/fc_cuda.c:31:5: ssm_names[0]")
    assert "; mend it: " in first(ran)


def test_a_local_array(run: Run, project: Path) -> None:
    small.edit(
        project / "k.cu",
        "x[i] = 1.0f",
        "float a[4] = {x[i], 1.0f, 2.0f, 3.0f};\n    a[n & 3] = x[0];\n    if (i < n)\n        x[i] = a[i & 3] + 1.0f",
    )
    small.edit(project / "k.cu", "if (i < n)\n        float", "float")
    assert run(project, "build").code == 0
    ran = run(project, "ci", "--skip", "verify")
    assert ran.code == 1
    assert first(ran).startswith("wrong: PTX -> resources (audit-ptx): ")
    assert "16 bytes of .local declared, the budget is 0" in first(ran)
    assert "mend it: ssmtool audit-ptx --explain fc_sigmoid" in first(ran)


def test_wrong_numbers(run: Run, project: Path) -> None:
    small.edit(project / "k.cu", "expf(-x[i])", "expf(x[i])")
    assert run(project, "build").code == 0
    ran = run(project, "ci", "--device", "cpu")
    assert ran.code == 1
    assert first(ran).startswith("wrong: launch -> numbers (verify): ")
    assert "mend it: ssmtool verify --device cpu --only sigmoid/" in first(ran)


def test_without_vectors_it_is_not_checked_and_the_others_still_ran(run: Run, project: Path) -> None:
    shutil.rmtree(project / "golden")
    ran = run(project, "ci", "--device", "cpu")
    assert ran.code == 2
    assert first(ran).startswith("not checked: launch -> numbers (verify): step verify: golden: there is no folder")
    assert "mend it: ssmtool golden make" in first(ran)
    assert "audit-ptx: ok" in ran.err


def test_other_people_s_kernels_are_told_to_start_a_vector_and_not_to_make_the_product_s(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(ROOT / "examples" / "vector_kernels", folder)
    shutil.rmtree(folder / "golden")
    ran = run(folder, "ci", "--device", "cpu")
    assert ran.code == 2
    assert first(ran).endswith("mend it: ssmtool golden new vec_axpy --from generated/vector_ptx.h")
    # What decides the verdict is called what the verdict is; a skip alone never changes the code.
    assert "\nnot checked: step verify: golden: there is no folder" in ran.out
    assert "skipped: step verify" not in ran.out
    (folder / "golden").mkdir()
    ran = run(folder, "ci", "--device", "cpu")
    assert ran.code == 2 and "ssmtool golden new vec_axpy" in first(ran)


def test_a_missing_header_is_the_builds_finding(run: Run, project: Path) -> None:
    (project / "ptx.h").unlink()
    ran = run(project, "ci", "--device", "cpu")
    assert ran.code == 1
    assert first(ran) == (
        "wrong: source -> PTX -> header (build): ptx.h: there is no generated header; mend it: ssmtool build"
    )


def test_steps_that_are_left_out_are_counted(run: Run, project: Path) -> None:
    ran = run(project, "ci", "--only", "build")
    assert ran.code == 0
    assert ran.out.count("left out by --only or --skip") >= 3
    assert "3 checks skipped" in first(ran)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--only", "build", "--skip", "build"), "leave no step"),
        (("--require", "sm_37,tpu"), "--require tpu: not one of"),
        (("--base", "nowhere"), "git does not know the revision"),
        (("--base", "--help"), "is not a git revision"),
        (("--html", "no/such/folder/r.html"), "there is no such folder for the report"),
        (("--html", "k.cu"), "is no HTML; it is left as it is"),
    ],
)
def test_bad_usage_is_told_before_the_work(
    run: Run, project: Path, words: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    ran = run(project, "ci", *words)
    assert ran.code == 2
    assert told in ran.err
    assert "build: ok" not in ran.err


def test_a_required_part_that_is_missing_fails_and_says_what_mends_it(run: Run, project: Path) -> None:
    ran = run(project, "ci", "--only", "build", "--require", "nvcc-9.9", "--require", "ptxas", "--format", "json")
    assert ran.code == 1
    found = [each for each in ran.json["findings"] if each["rule"] == "ci/required-missing"]
    missing = next(each for each in found if each["message"].startswith("--require nvcc-9.9: no nvcc 9.9"))
    assert "install CUDA 9.9" in missing["fix"]
    assert set(ran.json["required"]) == {"nvcc-9.9", "ptxas"}


def test_every_format_carries_the_verdict(run: Run, project: Path) -> None:
    small.edit(project / "k.cu", "1.0f / ", "2.0f / ")
    words = ("ci", "--only", "build", "--format")
    outs = {each: run(project, *words, each) for each in ("json", "junit", "markdown", "github", "sarif")}
    assert {ran.code for ran in outs.values()} == {1}
    assert outs["json"].json["steps"][0]["verdict"] == "wrong"
    assert ElementTree.fromstring(outs["junit"].out).find(".//failure") is not None
    assert outs["markdown"].out.startswith("## ssmtool ci: wrong\n")
    assert outs["github"].out.startswith("::error file=")
    assert json.loads(outs["sarif"].out)["runs"][0]["results"]


def test_the_page_shows_what_the_terminal_said(run: Run, project: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    ran = run(project, "ci", "--device", "cpu", "--html", str(page))
    assert ran.code == 0
    text = page.read_text()
    assert first(ran) in text
    assert "sigmoid/n257" in text and 'alt="Control-flow graph of fc_sigmoid' in text
    again = run(project, "ci", "--only", "build", "--html", str(page))
    assert again.code == 0 and first(again) in page.read_text()


def test_json_has_each_kernels_ladder_limits_errors_and_graph(run: Run, project: Path) -> None:
    data = run(project, "ci", "--device", "cpu", "--format", "json").json
    (kernel,) = data["kernels"]
    assert kernel["name"] == "fc_sigmoid" and kernel["verdict"] == "ok"
    assert kernel["ladder"]["loads"] is True
    local = next(each for each in kernel["limits"] if each["number"] == "local_bytes")
    assert (local["value"], local["budget"], local["baseline"], local["change"]) == (0, 0, 0, 0)
    assert {each["name"] for each in kernel["vectors"]} == {"sigmoid/n1", "sigmoid/n257"}
    assert sum(kernel["error_decades"].values()) >= 2
    assert kernel["graph"].startswith("<svg")
    assert len(data["provenance"]["commit"]) == 40
    assert data["provenance"]["uncommitted_changes"] is False


def test_quiet_and_well_says_skips_only(run: Run, project: Path) -> None:
    ran = run(project, "ci", "-q", "--only", "build")
    assert all(line.startswith(("skipped: ", "  mend it: ")) for line in ran.out.splitlines())


def test_since_a_revision_worse_numbers_and_registers(run: Run, project: Path) -> None:
    small.edit(project / "k.cu", "expf(-x[i])", "expf(x[i])")
    assert run(project, "build").code == 0
    ran = run(project, "ci", "--device", "cpu", "--base", "HEAD", "--format", "markdown")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert "worse: fc_sigmoid: numbers were right and are wrong" in lines[2]
    commit = small.git(project, "rev-parse", "HEAD")[:12]
    assert lines[-1] == f"Reproduce: `ssmtool ci --device cpu --base {commit}`"
    assert lines.count("</details>") >= 2 and len(lines) <= 200


def test_since_a_revision_with_the_same_ptx_nothing_is_run_again(run: Run, project: Path) -> None:
    ran = run(project, "ci", "--skip", "verify", "--base", "HEAD")
    assert ran.code == 0
    assert "nothing changed in the PTX of 1 kernel" in ran.out
    assert "numbers of the base" not in ran.out
