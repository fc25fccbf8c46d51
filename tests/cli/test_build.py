"""`ssmtool build` as its users run it: exit codes, messages, and files that stay as they were when it fails."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from conftest import Run, snapshot
from ssmtool.cli import main

HEADER = "generated/fc_cuda_ptx.h"
SOURCE = "kernels/ssm_gated_delta.cu"
LOADER = "kernels/fc_cuda.c"
SIXTEENTH = '\nextern "C" __global__ void fc_ssm_extra(float *x)\n{\n    x[threadIdx.x] = 0.0f;\n}\n'


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_build_of_the_product_changes_nothing_and_shows_every_kernel(product: Path, run: Run) -> None:
    before = snapshot(product)
    ran = run(product, "build")
    assert ran.code == 0
    assert "15 kernels, NVRTC 11.4.152, PTX 7.4, sm_37" in ran.out
    assert f"{HEADER} unchanged" in ran.out
    assert ran.out.count("fc_") >= 15
    assert snapshot(product) == before


def test_check_is_fresh_with_no_compiler_in_reach(product: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSMTOOL_TOOLCHAIN_DIR", str(product / "none"))
    monkeypatch.setenv("PATH", "/nonexistent")
    ran = run(product, "build", "--check")
    assert ran.code == 0
    assert ran.out == f"ok: {HEADER} is fresh; 15 kernels\n"


def test_check_of_a_source_one_byte_longer_fails_and_names_the_command(product: Path, run: Run) -> None:
    append(product / SOURCE, " ")
    before = snapshot(product)
    ran = run(product, "build", "--check")
    assert ran.code == 1
    assert "changed since the header was made" in ran.out
    assert "mend it: ssmtool build" in ran.out
    assert snapshot(product) == before


def test_check_fails_on_a_loader_that_lost_a_name(product: Path, run: Run) -> None:
    loader = product / LOADER
    loader.write_text(loader.read_text().replace('    "fc_sigmoid",\n', "", 1))
    ran = run(product, "build", "--check")
    assert ran.code == 1
    assert "fc_sigmoid" in ran.out
    assert "ssmtool registry --fix" in ran.out


def test_a_sixteenth_kernel_is_walked_through_all_three_steps(product: Path, run: Run) -> None:
    append(product / SOURCE, SIXTEENTH)
    stale = run(product, "registry")
    assert stale.code == 1
    assert "fc_ssm_extra" in stale.out
    assert "ssmtool build" in stale.out
    built = run(product, "build")
    assert "added: fc_ssm_extra" in built.out
    assert f"wrote {LOADER}" in built.out
    text = (product / LOADER).read_text()
    assert '"fc_ssm_qknorm_gqa_nx",\n    "fc_ssm_extra",\n};' in text
    assert "ssm_names, 16," in text
    assert run(product, "build", "--check").code == 0


def delete_kernel(product: Path, name: str) -> None:
    source = product / SOURCE
    text = source.read_text()
    start = text.index(f'extern "C" __global__ void {name}(')
    end = text.index("\n}\n", start) + 3
    source.write_text(text[:start] + text[end:])


def test_a_build_never_shifts_the_index_of_a_kernel_that_stays(product: Path, run: Run) -> None:
    delete_kernel(product, "fc_sigmoid")
    loader = (product / LOADER).read_bytes()
    ran = run(product, "build")
    assert ran.code == 1
    assert (product / LOADER).read_bytes() == loader
    assert "fc_sigmoid: removed" in ran.out
    assert "fc_ssm_decay_gate: 4 -> 3" in ran.out
    assert "ssmtool registry --fix" in ran.out


def test_a_loader_whose_second_list_disagrees_is_never_ok(product: Path, run: Run) -> None:
    delete_kernel(product, "fc_sigmoid")
    run(product, "build")
    ran = run(product, "registry", "--fix")
    assert ran.code == 1
    assert "FC_KERNELS has fc_sigmoid" in ran.out
    assert run(product, "build", "--check").code == 1


def test_a_source_that_no_module_names_is_told(product: Path, run: Run) -> None:
    (product / "kernels/third.cu").write_text('extern "C" __global__ void third(float *x) { x[0] = 1; }\n')
    ran = run(product, "build", "--check")
    assert "kernels/third.cu: mentions __global__ and is in no [[module]]" in ran.out


def test_a_kernel_that_lost_its_linkage_is_told_before_the_build_breaks_it(product: Path, run: Run) -> None:
    source = product / SOURCE
    source.write_text(
        source.read_text().replace('extern "C" __global__ void fc_sigmoid', "__global__ void fc_sigmoid", 1)
    )
    ran = run(product, "registry")
    assert "warning" in ran.out
    assert "registry/no-extern-c" in ran.out


@pytest.mark.parametrize(
    ("victim", "words"),
    [
        (LOADER, "is the setting `header` too"),
        (SOURCE, "is the setting `header` too"),
        ("pyproject.toml", "ssmtool did not write it"),
        ("kernels/../kernels/fc_cuda.h", "ssmtool did not write it"),
    ],
)
def test_a_header_path_that_is_a_file_of_the_users_is_refused(product: Path, run: Run, victim: str, words: str) -> None:
    settings = product / "pyproject.toml"
    settings.write_text(settings.read_text().replace(f'header = "{HEADER}"', f'header = "{victim}"'))
    before = snapshot(product)
    ran = run(product, "build")
    assert ran.code == 2
    assert words in ran.err
    assert snapshot(product) == before


def test_a_count_that_cannot_be_told_is_no_pass(product: Path, run: Run) -> None:
    loader = product / LOADER
    loader.write_text(loader.read_text().replace("ssm_names, 15,", "ssm_names, UNKNOWN,", 1))
    assert run(product, "registry").code == 2


def test_no_sync_leaves_the_loader_and_says_what_is_inert(product: Path, run: Run) -> None:
    append(product / SOURCE, SIXTEENTH)
    loader = (product / LOADER).read_bytes()
    ran = run(product, "build", "--no-sync")
    assert ran.code == 1
    assert (product / LOADER).read_bytes() == loader
    assert "fc_ssm_extra" in ran.out


def test_a_loader_that_cannot_be_written_puts_the_header_back(
    product: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssmtool.build import rebuild
    from ssmtool.errors import SsmtoolError

    append(product / SOURCE, SIXTEENTH)
    before = snapshot(product)
    real = rebuild.write_atomic

    def refuses_loaders(path: Path, data: bytes) -> bool:
        if path.suffix == ".c":
            raise SsmtoolError("cannot be written", path=path)
        return real(path, data)

    monkeypatch.setattr(rebuild, "write_atomic", refuses_loaders)
    assert run(product, "build").code == 2
    assert snapshot(product) == before


def test_diff_writes_nothing_and_shows_the_kernel(product: Path, run: Run) -> None:
    source = product / SOURCE
    source.write_text(source.read_text() + SIXTEENTH)
    before = snapshot(product)
    ran = run(product, "build", "--diff")
    assert "added: fc_ssm_extra" in ran.out
    assert "+.visible .entry fc_ssm_extra(" in ran.out
    assert "would change" in ran.out
    assert snapshot(product) == before


def test_diff_shows_what_would_change_in_the_loader(product: Path, run: Run) -> None:
    append(product / SOURCE, SIXTEENTH)
    before = snapshot(product)
    ran = run(product, "build", "--diff")
    assert f"would change {LOADER}: fc_ssm_extra added at index 15" in ran.out
    assert '+    "fc_ssm_extra",' in ran.out.splitlines()
    assert snapshot(product) == before
    loaders = run(product, "build", "--diff", "--format", "json").json["loaders"]
    assert loaders == [
        {"path": LOADER, "edits": ["fc_ssm_extra added at index 15", *loaders[0]["edits"][1:]], "left_as_it_is": []}
    ]
    assert "would change kernels" not in run(product, "build", "--diff", "--no-sync").out


def test_diff_says_why_a_loader_would_be_left_alone(product: Path, run: Run) -> None:
    append(product / SOURCE, SIXTEENTH)
    loader = product / LOADER
    loader.write_text(loader.read_text().replace('    "fc_sigmoid",\n', '#if WITH_IT\n    "fc_sigmoid",\n#endif\n', 1))
    assert f"would leave {LOADER} as it is: " in run(product, "build", "--diff").out


@pytest.mark.parametrize("output_format", ["sarif", "junit", "markdown", "github"])
@pytest.mark.parametrize("arguments", [["build", "--check"], ["build"], ["registry"]], ids=" ".join)
def test_every_command_reports_in_every_format(
    product: Path, run: Run, output_format: str, arguments: list[str]
) -> None:
    (product / LOADER).write_text((product / LOADER).read_text().replace('    "fc_sigmoid",\n', "", 1))
    ran = run(product, *arguments, *(["--no-sync"] if arguments == ["build"] else []), "--format", output_format)
    assert (ran.code, ran.err) == (1, "")
    text = ran.out.replace("&#45;", "-").replace("&#95;", "_")
    assert "fc_sigmoid" in text
    if output_format == "markdown":
        assert "| counted | loads |" in text
    if output_format == "sarif":
        assert json.loads(ran.out)["runs"][0]["results"]
    if output_format == "junit":
        ElementTree.fromstring(ran.out)


def test_a_long_compiler_log_is_capped_for_people_and_whole_in_json(product: Path, run: Run) -> None:
    lines = "".join(f"    int unused{number} = nothing{number};\n" for number in range(90))
    (product / SOURCE).write_text(f'extern "C" __global__ void k(float *x)\n{{\n{lines}}}\n')
    ran = run(product, "build")
    assert ran.code == 1
    assert "lines left out here; --format json has them all" in ran.err
    assert len(ran.err.splitlines()) < 60
    whole = run(product, "build", "--format", "json").json["error"]["message"]
    assert "nothing60" in whole
    assert "nothing60" not in ran.err


def test_check_rebuild_compares_the_ptx_itself(product: Path, run: Run) -> None:
    assert run(product, "build", "--check", "--rebuild").code == 0
    append(product / SOURCE, SIXTEENTH)
    before = snapshot(product)
    ran = run(product, "build", "--check", "--rebuild")
    assert ran.code == 1
    assert "header/rebuild-differs" in ran.out
    assert "fc_ssm_extra (added)" in ran.out
    assert snapshot(product) == before


def test_json_carries_verdict_state_and_ladder(product: Path, run: Run) -> None:
    checked = run(product, "build", "--check", "--format", "json").json
    assert (checked["verdict"], checked["exit_code"]) == ("ok", 0)
    assert checked["modules"] == [{"source": SOURCE, "constant": "FC_PTX_SSM_GATED_DELTA", "state": "fresh"}]
    built = run(product, "build", "--format", "json").json
    assert built["compiler"] == {"kind": "nvrtc", "version": "11.4.152"}
    assert len(built["registry"][0]["kernels"]) == 15
    assert built["written"] == []


def test_an_error_is_json_too_when_json_was_asked_for(product: Path, run: Run) -> None:
    (product / SOURCE).write_text("")
    ran = run(product, "build", "--format", "json")
    assert ran.code == 1
    assert ran.json["verdict"] == "wrong"
    assert ran.json["error"]["path"] == SOURCE


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", 1, "is empty"),
        ('extern "C" __global__ void k(float *x) { x[0] = ; }\n', 1, f"{SOURCE}:1"),
        ("static __device__ int i;\n", 1, "no kernel"),
        (None, 2, "no such file"),
    ],
)
def test_a_source_that_does_not_build_leaves_every_file(
    product: Path, run: Run, text: str | None, code: int, words: str
) -> None:
    if text is None:
        (product / SOURCE).unlink()
    else:
        (product / SOURCE).write_text(text)
    before = snapshot(product)
    ran = run(product, "build")
    assert ran.code == code
    assert words in ran.err + ran.out
    assert snapshot(product) == before


def test_no_compiler_is_exit_2_and_names_what_brings_one(
    product: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSMTOOL_TOOLCHAIN_DIR", str(product / "none"))
    before = snapshot(product)
    ran = run(product, "build")
    assert ran.code == 2
    assert "ssmtool toolchain install" in ran.err
    assert snapshot(product) == before


@pytest.mark.parametrize("kind", ["missing", "twice"])
def test_a_loader_whose_array_is_not_certain_stops_the_build_before_anything_is_written(
    product: Path, run: Run, kind: str
) -> None:
    loader = product / LOADER
    text = loader.read_text()
    if kind == "missing":
        loader.write_text(text.replace("ssm_names[] =", "other_names[] =", 1))
    else:
        loader.write_text(text + '\nstatic const char *const ssm_names[] = {"again"};\n')
    append(product / SOURCE, SIXTEENTH)
    before = snapshot(product)
    ran = run(product, "build")
    assert ran.code in (1, 2)
    assert "ssm_names" in ran.err
    assert snapshot(product) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to read-only folders, so the refusal was not checked")
def test_a_read_only_folder_is_exit_2(product: Path, run: Run) -> None:
    append(product / SOURCE, SIXTEENTH)
    (product / "generated").chmod(0o555)
    ran = run(product, "build")
    (product / "generated").chmod(0o755)
    assert ran.code == 2
    assert "nothing was changed" in ran.err


def test_a_header_path_that_cannot_be_written_is_exit_2_and_the_loader_stays(product: Path, run: Run) -> None:
    append(product / SOURCE, SIXTEENTH)
    (product / HEADER).unlink()
    (product / HEADER).mkdir()
    loader = (product / LOADER).read_bytes()
    ran = run(product, "build")
    assert ran.code == 2
    assert (product / LOADER).read_bytes() == loader


def test_an_interrupt_while_writing_leaves_header_and_loader(
    product: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(product / SOURCE, SIXTEENTH)
    before = snapshot(product)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: os.kill(os.getpid(), signal.SIGINT))
    ran = run(product, "build")
    assert ran.code == 130
    assert snapshot(product) == before


def test_a_broken_nvcc_in_the_settings_is_not_passed_over(product: Path, run: Run) -> None:
    settings = product / "pyproject.toml"
    settings.write_text(settings.read_text().replace('target = "sm_37"', 'target = "sm_37"\nnvcc = "/none/nvcc"', 1))
    ran = run(product, "build")
    assert ran.code == 2
    assert "the setting `nvcc` names no working nvcc" in ran.err


def test_options_that_exclude_each_other_are_refused(product: Path, run: Run) -> None:
    assert run(product, "build", "--rebuild").code == 2
    assert run(product, "build", "--check", "--diff").code == 2
    assert run(product, "build", "--check", "--compiler", "nvcc").code == 2
    assert run(product, "build", "--compiler", "icc").code == 2


def test_it_works_from_a_folder_below(product: Path, run: Run) -> None:
    assert run(product / "kernels", "build", "--check").code == 0


def test_quiet_prints_nothing_when_all_is_well(product: Path) -> None:
    result = CliRunner().invoke(main, ["-C", str(product), "--quiet", "build"])
    assert (result.exit_code, result.output) == (0, "")
