"""`ssmtool verify`: the header's PTX, exit codes, formats, what is said aloud."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from conftest import ROOT, Run, snapshot

CASES = ("sigmoid/n1", "sigmoid/n257", "decay-gate/h1-n1")


@pytest.fixture
def project(product: Path) -> Path:
    """The product with a few small vectors."""
    for name in CASES:
        target = product / "golden" / f"{name}.npz"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "golden" / f"{name}.npz", target)
    return product


def damage(project: Path, old: str, new: str, entry: str = "fc_sigmoid") -> None:
    """Edit one kernel of the header by hand."""
    header = project / "generated" / "fc_cuda_ptx.h"
    text = header.read_text()
    start = text.index(f".entry {entry}(")
    assert old in text[start:]
    header.write_text(text[:start] + text[start:].replace(old, new, 1))


VERIFY = ("verify", "--device", "cpu", "--relations", "none")


def test_all_is_well(run: Run, project: Path) -> None:
    before = snapshot(project)
    ran = run(project, *VERIFY)
    assert ran.code == 0
    assert "fc_sigmoid" in ran.out
    assert "ok: 3 cases of 3 kernels on cpu" in ran.out
    assert "checked for races, unwritten memory and bounds" in ran.out
    assert snapshot(project) == before


def test_it_is_the_header_that_is_verified_and_a_stale_one_is_said(run: Run, project: Path) -> None:
    source = project / "kernels" / "ssm_gated_delta.cu"
    source.write_text(source.read_text().replace("expf(-x)", "expf(x)"))
    ran = run(project, *VERIFY)
    assert ran.code == 0
    assert "warning" in ran.out
    assert "verified is the PTX in the header" in ran.out
    assert "verify/stale-header" in ran.out


def test_a_wrong_kernel_is_1_and_names_the_element(run: Run, project: Path) -> None:
    damage(project, "neg.f32", "mov.f32")
    ran = run(project, *VERIFY)
    assert ran.code == 1
    assert "WRONG" in ran.out
    assert "x[i=0]" in ran.out
    assert "the sign of x lost" in ran.out


def test_a_hostile_file_is_2_and_the_others_run(run: Run, project: Path) -> None:
    (project / "golden" / "bad.npz").write_bytes(b"PK\3\4 not a zip")
    ran = run(project, *VERIFY, "--format", "json")
    assert ran.code == 2
    statuses = {each["name"]: each["status"] for each in ran.json["extra"]["results"]}
    assert statuses == {**dict.fromkeys(CASES, "ok"), "golden/bad.npz": "not checked"}
    assert ran.json["verdict"] == "unchecked"


def test_a_wrong_kernel_outweighs_a_hostile_file(run: Run, project: Path) -> None:
    (project / "golden" / "bad.npz").write_bytes(b"")
    damage(project, "neg.f32", "mov.f32")
    assert run(project, *VERIFY).code == 1


def test_last_failed_runs_what_failed_until_it_passes(run: Run, project: Path) -> None:
    good = (project / "generated" / "fc_cuda_ptx.h").read_bytes()
    damage(project, "neg.f32", "mov.f32")
    assert run(project, *VERIFY).code == 1
    ran = run(project, *VERIFY, "--last-failed", "--format", "json")
    assert {each["name"] for each in ran.json["extra"]["results"]} == {"sigmoid/n1", "sigmoid/n257"}
    (project / "generated" / "fc_cuda_ptx.h").write_bytes(good)
    assert run(project, *VERIFY, "--last-failed").code == 0
    assert "everything runs" in run(project, *VERIFY, "--last-failed").err


def test_a_name_that_is_gone_does_not_keep_last_failed_from_running(run: Run, project: Path) -> None:
    bad = project / "golden" / "bad.npz"
    bad.write_bytes(b"")
    assert run(project, *VERIFY).code == 2
    bad.unlink()
    ran = run(project, *VERIFY, "--last-failed")
    assert ran.code == 0
    assert "everything runs" in ran.err


def test_a_saved_failure_fails_again_with_the_command_that_is_told(run: Run, project: Path, tmp_path: Path) -> None:
    damage(project, "neg.f32", "mov.f32")
    folder = tmp_path / "failures"
    run(project, *VERIFY, "--only", "sigmoid/n1", "--save-failure", str(folder))
    vector, module = folder / "sigmoid-n1-cpu.npz", folder / "module.ptx"
    assert run(project, "verify", "--device", "cpu", str(vector), "--ptx", str(module)).code == 1
    assert (
        run(project, "verify", "--device", "cpu", str(vector), "--ptx", str(ROOT / "generated/fc_cuda_ptx.h")).code == 0
    )


def test_a_vector_and_a_ptx_need_no_project(run: Run, tmp_path: Path) -> None:
    ran = run(
        tmp_path, "verify", "--device", "cpu", "--ptx", str(ROOT / "generated/fc_cuda_ptx.h"),
        str(ROOT / "golden/sigmoid/n1.npz"),
    )  # fmt: skip
    assert ran.code == 0
    assert "1 case of 1 kernel" in ran.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--only", "no-such-*"], "no case, relation or kernel fits"),
        (["--ptx", "nowhere.ptx"], "no such file"),
        (["--device", "gpu"], "--device gpu"),
        (["--device", "cpu", "--require", "sm_37"], "names the executor alone"),
        (["--require", "K80"], "expected a compute capability"),
        (["--rounds", "0"], "--rounds"),
        ([""], "no file"),
        (["nowhere.npz"], "no such file"),
    ],
)
def test_bad_usage_is_2_with_the_reason(run: Run, project: Path, options: list[str], says: str) -> None:
    ran = run(project, "verify", *options)
    assert ran.code == 2
    assert says in ran.out + ran.err


def test_a_card_that_is_required_and_not_there_is_2_and_loud(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ssmtool.device.select as select
    from ssmtool.device import NoDeviceError

    def none(*_arguments: object) -> object:
        raise NoDeviceError("no CUDA driver on this machine")

    monkeypatch.setattr(select, "open_binding", none)
    ran = run(project, "verify", "--device", "cuda", "--require", "sm_37")
    assert ran.code == 2
    assert "no CUDA driver on this machine" in ran.err
    ran = run(project, "verify", "--only", "sigmoid/n1")
    assert ran.code == 0
    assert "on the CPU, since there is no GPU" in ran.err


def test_no_vectors_is_2_with_the_command_that_makes_them(run: Run, product: Path) -> None:
    ran = run(product, *VERIFY)
    assert ran.code == 2
    assert "ssmtool golden make" in ran.err


def test_relations_alone_need_no_vectors(run: Run, product: Path) -> None:
    ran = run(product, "verify", "--device", "cpu", "--relations", "only", "--only", "R9/sigmoid", "--rounds", "2")
    assert ran.code == 0
    assert "1 relation in 2 rounds" in ran.out


def test_quick_says_what_it_leaves_out(run: Run, project: Path) -> None:
    ran = run(project, *VERIFY, "--quick")
    assert ran.code == 0
    assert "checked for bounds" in ran.out


@pytest.mark.parametrize("form", ["junit", "markdown", "github", "sarif"])
def test_every_format_carries_a_failure(run: Run, project: Path, form: str) -> None:
    damage(project, "neg.f32", "mov.f32")
    ran = run(project, *VERIFY, "--only", "sigmoid/n1", "--format", form)
    assert ran.code == 1
    assert "sigmoid/n1" in ran.out
    if form == "junit":
        assert ElementTree.fromstring(ran.out.encode()).get("failures") == "1"


def test_quiet_prints_only_what_is_wrong(run: Run, project: Path) -> None:
    assert run(project, "-q", *VERIFY).out == ""
    damage(project, "neg.f32", "mov.f32")
    assert "verify/mismatch" in run(project, "-q", *VERIFY).out


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Another's project, with a vector for one of its three kernels."""
    folder = tmp_path / "theirs"
    shutil.copytree(ROOT / "examples" / "vector_kernels", folder)
    for name in ("vec_softmax", "vec_rms_norm"):
        shutil.rmtree(folder / "golden" / name)
    return folder


def test_kernels_that_nothing_launches_are_told_when_it_runs_whole(run: Run, theirs: Path) -> None:
    ran = run(theirs, "verify", "--device", "cpu")
    assert ran.code == 0
    assert "skipped: numbers of vec_rms_norm, vec_softmax: no vector and no relation launches them" in ran.out
    # Relations of other kernels are nobody's business here.
    assert "R1" not in ran.out
    told = run(theirs, "verify", "--device", "cpu", "--format", "json").json["skips"]
    assert [each["check"] for each in told] == ["numbers of vec_rms_norm, vec_softmax"]
    assert "numbers of" not in run(theirs, "verify", "--device", "cpu", "--only", "vec_axpy/*").out


def test_relations_only_of_anothers_kernels_is_an_error_that_says_why(run: Run, theirs: Path) -> None:
    ran = run(theirs, "verify", "--device", "cpu", "--relations", "only")
    assert ran.code == 2
    assert "generated/vector_ptx.h: R1 to R12 are relations between the product's kernels" in ran.err


def test_vectors_of_kernels_that_are_not_there_are_one_line_with_a_mend_that_mends(run: Run, theirs: Path) -> None:
    shutil.copytree(ROOT / "golden/sigmoid", theirs / "golden/sigmoid")
    shutil.copytree(ROOT / "golden/decay-gate", theirs / "golden/decay-gate")
    ran = run(theirs, "verify", "--device", "cpu")
    assert ran.code == 2
    assert ran.out.count("not checked: ") == 2 and "fc_sigmoid" not in ran.err  # the one line, and the last
    assert "mend it: rm -r golden/decay-gate golden/sigmoid" in ran.out
    for name in ("sigmoid", "decay-gate"):
        shutil.rmtree(theirs / "golden" / name)
    assert run(theirs, "verify", "--device", "cpu").code == 0
