"""A probe on devices that agree, that are a bit off, that refuse forms, that are lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ROOT
from ssmtool import ptx
from ssmtool.device.cpu import CpuDevice, CpuModule
from ssmtool.device.errors import DeviceError, LoadError
from ssmtool.device.interface import Launched, Properties
from ssmtool.probe import kernels
from ssmtool.probe.inputs import CASES, inputs
from ssmtool.probe.reference import Reference, executed, label
from ssmtool.probe.result import FORMAT
from ssmtool.probe.run import SELF_TEST, probe
from ssmtool.probe.trials import CHUNK, SWEEPS, UNITS, Operands, Trial, trials
from ssmtool.probe.variants import Variant, one, variants
from ssmtool.ptx import parse


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSMTOOL_CACHE_DIR", str(tmp_path / "cache"))


class Bent(CpuDevice):
    """A card that is the executor, bent: `change(results)` after each launch, some forms not taken."""

    def __init__(self, change: Callable[[np.ndarray], None] = lambda _: None, refuses: Sequence[str] = ()) -> None:
        super().__init__(check="none")
        self.name = "cuda:0"
        self.properties = Properties("Bent K80", (3, 7), "ctypes", (11, 4), (7, 4))
        self.change = change
        self.refuses = refuses

    def load(
        self, text: Any, path: str | None = None, *, parameters: Mapping[str, Sequence[str]] | None = None
    ) -> CpuModule:
        module = text if isinstance(text, ptx.Module) else parse(text)
        if any(f"{each} " in module.text for each in self.refuses):
            raise LoadError("cuda:0 does not load the PTX")
        loaded = super().load(module, path, parameters=parameters)
        launch = loaded.launch

        def bent(*args: Any, **options: Any) -> Launched:
            done = launch(*args, **options)
            self.change(args[3][1])
            return done

        loaded.launch = bent  # type: ignore[method-assign]
        return loaded


def trial(*forms: Variant, answered: bool = True) -> Trial:
    kinds = {form.operands for form in forms}

    def chunks() -> Any:
        for _ in range(2):
            yield {each: [inputs(kind, place) for place, kind in enumerate(each)] for each in kinds}

    return Trial("edge inputs", forms, 2 * CASES, chunks, answered)


ADD, EX2, MAX = (
    one("add.rn.f32", "f32", "f32", "f32"),
    one("ex2.approx.f32", "f32", "f32"),
    one("max.s16", "s16", "s16", "s16"),
)


def test_the_executor_agrees_with_its_own_arithmetic_and_that_is_no_evidence() -> None:
    (result,) = probe([CpuDevice(check="none")], [trial(ADD, EX2, MAX)])
    assert (result.different, result.problem, result.cases) == ([], None, 3 * 2 * CASES)
    assert result.evidence == SELF_TEST
    assert [form.label for form in result.forms] == ["exact", "unit-model dependent (ex2.approx: H200-exact)", "exact"]


def test_one_ulp_of_one_form_is_found_with_its_input_and_its_kind() -> None:
    def change(results: np.ndarray) -> None:
        results[results[:, 1] == 0x3F800000, 1] += 1

    (result,) = probe([Bent(change)], [trial(ADD, EX2)])
    (form,) = result.different
    ones = form.different
    assert (form.name, form.cases, form.causes) == ("ex2.approx.f32", 2 * CASES, {"1 ulp": ones})
    assert len(form.examples) == 4
    example = form.examples[0]
    assert (example.executor, example.device) == ("0x3f800000", "0x3f800001")
    assert Reference([EX2]).results(0, {("f32",): [np.array([int(example.operands[0], 16)])]})[0] == 0x3F800000


def test_a_form_that_the_card_refuses_costs_its_neighbours_nothing() -> None:
    (result,) = probe([Bent(refuses=["max.s16"])], [trial(ADD, MAX, EX2)])
    assert list(result.failed) == ["max.s16"]
    assert [form.name for form in result.forms] == ["add.rn.f32", "ex2.approx.f32"]
    assert all(form.cases == 2 * CASES and not form.different for form in result.forms)


def test_of_forms_that_the_executor_refuses_the_card_s_answers_are_hashed() -> None:
    unknown = one("tanh.approx.f32", "f32", "f32")
    assert not executed(unknown)
    (result,) = probe([Bent(refuses=["tanh.approx.f32"])], [trial(unknown, answered=False)])
    assert (result.refused, result.unanswered, result.failed) == (["tanh.approx.f32"], {}, {})
    (result,) = probe([Bent()], [trial(ADD, answered=False)])
    assert list(result.unanswered) == ["add.rn.f32"] and len(result.unanswered["add.rn.f32"]) == 32
    assert result.forms == []


def test_a_card_that_is_lost_ends_its_probe_and_not_the_other_s() -> None:
    def lose(_results: np.ndarray) -> None:
        raise DeviceError("cuda:0 is lost", fatal=True)

    lost, whole = probe([Bent(lose), CpuDevice(check="none")], [trial(ADD), trial(EX2)])
    assert (lost.problem, lost.forms) == ("cuda:0 is lost", [])
    assert whole.problem is None and whole.cases == 4 * CASES


def test_the_same_answers_have_the_same_digest_and_the_file_is_small() -> None:
    first, second = (probe([CpuDevice(check="none")], [trial(ADD, MAX)])[0] for _ in range(2))
    assert [form.digest for form in first.forms] == [form.digest for form in second.forms]
    assert first.forms[0].digest != first.forms[1].digest
    data = json.loads(first.file())
    assert (data["format"], data["compared"]) == (FORMAT, {"forms": 2, "cases": 4 * CASES})
    assert set(data["digests"]["edge inputs"]) == {"add.rn.f32", "max.s16"}


def test_the_kernel_reads_every_operand_once_and_leaves_the_cases_past_the_last_alone() -> None:
    forms = [ADD, one("mul.rn.f32", "f32", "f32", "f32"), EX2]
    assert kernels.operand_rows(forms) == {(("f32", "f32"), 0): 0, (("f32", "f32"), 1): 1, (("f32",), 0): 2}
    given = np.full((3, 3), 0x40000000, np.uint64)
    results = np.full((4, 3), 7, np.uint64)
    CpuDevice().load(kernels.module(forms)).launch("forms", 1, 256, [given, results, 3])
    assert results.tolist() == [[0x40800000] * 3] * 3 + [[7] * 3]


def test_every_form_is_tried_and_every_mantissa_of_ex2_from_one_to_two() -> None:
    every = trials()
    edges = [form for each in every if each.title == "edge inputs" for form in each.forms]
    assert sorted(form.name for form in edges) == sorted(form.name for form in variants())
    (whole,) = [each for each in every if each.title == "ex2: every mantissa from 0x3f800000"]
    bits = np.concatenate([operands["f32",][0] for operands in whole.chunks()])
    assert np.array_equal(bits, np.arange(0x3F800000, 0x40000000, dtype=np.uint64))
    assert whole.cases == bits.size
    assert set(SWEEPS) == set(UNITS)


@pytest.mark.parametrize("quick", [False, True])
def test_trials_say_how_many_cases_they_have_and_no_chunk_is_large(quick: bool) -> None:
    titles = set()
    for each in trials(quick=quick):
        if each.title in titles or (not quick and each.cases > 1 << 20 and "0x3f800000" not in each.title):
            continue
        titles.add(each.title)
        sizes = [{len(array) for arrays in operands.values() for array in arrays} for operands in each.chunks()]
        assert all(len(size) == 1 for size in sizes)
        assert sum(max(size) for size in sizes) == each.cases
        assert max(map(max, sizes)) <= CHUNK


def test_labels_leave_contraction_out_since_nothing_follows_the_product() -> None:
    assert label(one("mul.f32", "f32", "f32", "f32")) == "exact"
    assert label(one("rcp.approx.f32", "f32", "f32")).startswith("unit-model dependent")


def test_quick_is_a_small_part_of_all() -> None:
    def weight(chosen: list[Trial]) -> int:
        return sum(each.cases * len(each.forms) for each in chosen)

    assert weight(trials(quick=True)) * 40 < weight(trials())


def test_operands_are_a_fixed_function_of_kind_place_and_case() -> None:
    operands: Operands = next(iter(trial(ADD).chunks()))
    assert [hex(int(each)) for each in operands["f32", "f32"][0][:3]] == [
        hex(int(each)) for each in inputs("f32", 0)[:3]
    ]


def test_the_arithmetic_still_is_what_was_compared_with_the_h200() -> None:
    kept = json.loads((ROOT / "docs/results/probe-nvidia-h200-2026-11-30.json").read_text())["digests"]
    division = [each for each in trials() if each.title == "approximate division"]
    hard = [each for each in trials() if each.title == "special values and the format's edges"][::8]
    for each in [*division, *hard]:
        reference = Reference(each.forms)
        (operands,) = each.chunks()
        for number, form in enumerate(each.forms):
            digest = hashlib.sha256(reference.results(number, operands).astype("<u8").tobytes()).hexdigest()[:32]
            assert digest == kept[each.title][form.name], form.name
