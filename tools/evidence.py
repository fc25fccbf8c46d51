"""Write the evidence matrix in docs/numerics.md: operation x device x how proved.

    python tools/evidence.py

Forms and labels come from the executor, the cards' columns from the files in docs/results, and the tests are looked up
by name, so that nothing is claimed that has not been run. A test holds the page to what this gives.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tools")]

from execute.instructions.others import FAMILIES, Family  # noqa: E402
from forms import family_of, refusal  # noqa: E402

from ssmtool.execute.numerics.evidence import Level  # noqa: E402
from ssmtool.probe.body import forms_of  # noqa: E402
from ssmtool.probe.variants import Variant, variants  # noqa: E402
from ssmtool.ptx import isa  # noqa: E402

PAGE = ROOT / "docs/numerics.md"
RESULTS = ROOT / "docs/results"
BEGIN, END = "<!-- made by tools/evidence.py -->\n", "<!-- end of what tools/evidence.py makes -->"
UNITS = ("ex2", "rcp", "rsqrt", "sqrt", "lg2", "sin", "cos")
_NUMERICS = "tests/execute/numerics"


@dataclass(frozen=True)
class Proof:
    """What stands behind a row without a card: the oracle, and the tests (`file::function`) that hold it."""

    oracle: str
    tests: tuple[str, ...]


_MPFR = Proof(
    "MPFR (gmpy2), four roundings, both ends of the format",
    (f"{_NUMERICS}/test_ieee.py::test_every_rounding_is_mpfr_s",),
)
_PRODUCTS = Proof(
    f"{_MPFR.oracle}; f32 also exact integers, 10^6 pairs a rounding",
    (*_MPFR.tests, f"{_NUMERICS}/test_ieee.py::test_f32_products_and_quotients_by_the_million"),
)
_INTERPRETER = Proof(
    "a Python interpreter on random kernels (add, sub, mul, div, rem, min, max, logic, shifts)",
    ("tests/execute/test_divergence.py::test_random_kernels_leave_the_bits_that_threads_one_by_one_leave",),
)
_UNIT = Proof(
    "a second model, in NumPy, on every 9973rd input",
    (
        f"{_NUMERICS}/test_units.py::test_every_mantissa_of_a_binade_is_the_card_s",
        f"{_NUMERICS}/test_units.py::test_llvm_and_numpy_models_agree_between_the_measured_points",
    ),
)
# Row -> proof on a CPU beside the card's answers, which `test_silicon.py` holds for every row of arithmetic.
PROOFS: dict[str, Proof] = {
    "`add`, `sub` f32": _MPFR,
    "`mul` f32": _PRODUCTS,
    "`fma`, `mad` f32": Proof(
        f"{_MPFR.oracle}, sums that cancel",
        (*_MPFR.tests, f"{_NUMERICS}/test_ieee.py::test_fma_is_not_done_through_double"),
    ),
    "`div` f32, rounded": _PRODUCTS,
    "`rcp`, `sqrt` f32, rounded": Proof("MPFR: sqrt, and rcp as a quotient of 1", _MPFR.tests),
    "`add`, `sub` f64": _MPFR,
    "`mul` f64": _MPFR,
    "`fma`, `mad` f64": Proof(
        f"{_MPFR.oracle}, sums that cancel",
        (*_MPFR.tests, f"{_NUMERICS}/test_ieee.py::test_f64_fma_sees_a_remainder_that_two_roundings_hide"),
    ),
    "`div` f64, rounded": _MPFR,
    "`rcp`, `sqrt` f64, rounded": Proof("MPFR: sqrt, and rcp as a quotient of 1", _MPFR.tests),
    **{f"`{unit}.approx` f32": _UNIT for unit in UNITS},
    "`div.approx`, `div.full` f32": Proof(
        "", (f"{_NUMERICS}/test_units.py::test_approximate_division_scales_as_the_compiler_does",)
    ),
    "`rcp`, `rsqrt` `.approx` f64": Proof("", (f"{_NUMERICS}/test_units.py::test_f64_units_see_the_high_word_only",)),
    "conversion": Proof(
        "exact integers, Python's `Fraction`, NumPy's f16 (all 65536 halves)",
        (
            f"{_NUMERICS}/test_convert.py::test_integers_to_f32_by_integer_arithmetic",
            f"{_NUMERICS}/test_convert.py::test_floats_to_integers_round_then_clamp",
            f"{_NUMERICS}/test_convert.py::test_narrowing_to_half_rounds_once_in_every_mode",
        ),
    ),
    "integer arithmetic": _INTERPRETER,
    "bits, logic and shifts": Proof(
        "the ISA's loops in Python (bfe, bfi, fns, prmt, shifts)",
        (
            f"{_NUMERICS}/test_bits.py::test_bfe_fields_past_the_top_or_empty",
            f"{_NUMERICS}/test_bits.py::test_fns_searches_both_ways_from_the_base",
            f"{_NUMERICS}/test_bits.py::test_prmt_nibbles_pick_bytes_or_repeat_signs",
        ),
    ),
}
SILICON = (
    f"{_NUMERICS}/test_silicon.py::test_every_executed_form_gives_the_silicon_s_bits",
    "tests/execute/instructions/test_forms.py::test_every_form_has_the_silicon_s_bits_in_a_kernel",
)
STRESSED = (
    f"{_NUMERICS}/test_silicon.py::test_optimised_float_forms_keep_the_bits_on_special_values_and_at_the_format_s_edges"
)


def row_of(variant: Variant) -> str:
    """The row of an arithmetic form."""
    base, *words = variant.name.replace(" ", ".").split(".")
    kind = words[-1] if words else ""
    family = family_of(variant)
    if family == "approximate units":
        if base == "div":
            return "`div.approx`, `div.full` f32"
        return f"`{base}.approx` f32" if kind == "f32" else "`rcp`, `rsqrt` `.approx` f64"
    if not family.startswith("IEEE"):
        return family
    for names in (("add", "sub"), ("mul",), ("fma", "mad"), ("min", "max"), ("abs", "neg")):
        if base in names:
            return f"{', '.join(f'`{name}`' for name in names)} {kind}"
    return f"`div` {kind}, rounded" if base == "div" else f"`rcp`, `sqrt` {kind}, rounded"


def label(forms: Iterable[Variant]) -> str:
    """The executor's labels of a row's forms."""
    levels = {form.evidence.level for variant in forms for form in forms_of(variant)}
    if Level.UNIT_MODEL in levels:
        return "modelled"
    return "exact; without a rounding: contraction" if Level.CONTRACTION in levels else "exact"


def probes() -> list[dict[str, Any]]:
    """Every probe result that is here, of cards alone."""
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("probe-*.json"))]
    return [each for each in found if each["evidence"] == "answers of a card"]


def sweeps() -> list[dict[str, Any]]:
    """Every comparison of the units on all inputs (tools/numerics/every_input.py)."""
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("units-*.json"))]
    return [each for each in found if each["every_input"] and each["evidence"] == "answers of a card"]


def compared(probe: dict[str, Any], names: set[str]) -> str:
    """What one card answered about these forms."""
    results = binades = 0
    each_form: set[int] = set()
    for trial, digests in probe["digests"].items():
        total = probe["trials"][trial]
        cases = total["cases"] // total["forms"]
        met = names & digests.keys()
        results += cases * len(met)
        if met and "every mantissa" in trial:
            binades += 1
        elif met:
            each_form.add(cases)
    different = sum(each["different"] for each in probe["different"] if each["name"] in names)
    failed = len(names & probe["failed"].keys())
    if not results:
        return "not run"
    told = f"probe: {results:,} results, {different or 'none'} differ{'s' if different == 1 else ''}"
    told += f", {failed} forms failed" if failed else ""
    return told + (f", {binades} whole binades among them" if binades else "")


def in_kernels(family: Family) -> list[str]:
    """Base instructions of a family that the product's 15 kernels hold, which ran on the H200 as on the executor."""
    from ssmtool.header import read_header

    (first, *_) = read_header(ROOT / "generated/fc_cuda_ptx.h").modules
    words = set(re.findall(r"(?m)^\s*(?:@!?%\w+\s+)?([a-z]\w*)[.\w:]*[\s;]", first.ptx))
    earlier = FAMILIES[: FAMILIES.index(family)]
    return sorted((_named(family) - set().union(*map(_named, earlier))) & words)


def _named(family: Family) -> set[str]:
    """Base instructions that a family's forms hold."""
    texts = " ".join(family.forms).replace(";", " ").split()
    return {info.name for word in texts if (info := isa.info(word))}


def swept(sweep: dict[str, Any], names: set[str]) -> str:
    """What a card answered on all 2^32 inputs of these forms; empty where it was not asked."""
    found = [form for name, form in sweep["forms"].items() if name in names]
    if not found or any(form["inputs"] != 1 << 32 for form in found):
        return ""
    different = sum(form["different"] for form in found)
    return f"**all 2^32 inputs**, {len(found)} forms: {different or 'none'} differ{'s' if different == 1 else ''}"


def cell(probe: dict[str, Any], names: set[str]) -> str:
    """A card's cell: every input where that was run, and the probe."""
    of_card = [each for each in sweeps() if each["model"] == probe["model"]]
    return "; ".join(filter(None, [*(swept(each, names) for each in of_card), compared(probe, names)]))


class Notes:
    """Tests by number, as they are first named: their names are too long for a table."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def cell(self, tests: Iterable[str]) -> str:
        """The numbers of some tests."""
        return ", ".join(str(self._number(each)) for each in tests)

    def _number(self, test: str) -> int:
        if test not in self.tests:
            self.tests.append(test)
        return self.tests.index(test) + 1

    def lines(self) -> list[str]:
        """The list that the numbers point to."""
        places = (test.partition("::") for test in self.tests)
        return [f"{number}. `{file}`: `{name}`" for number, (file, _, name) in enumerate(places, 1)]


def missing_tests() -> list[str]:
    """Tests that a row names and that are not in their file."""
    every = {test for proof in PROOFS.values() for test in proof.tests} | {*SILICON, STRESSED}
    return [
        each
        for each in sorted(every)
        if not re.search(rf"(?m)^def {each.partition('::')[2]}\(", (ROOT / each.partition("::")[0]).read_text())
    ]


def heads() -> list[str]:
    """One column for each card that was probed, and one for the K80 until it is among them."""
    cards = [f"{each['model']}, driver of CUDA {each['driver']}, {each['date']}" for each in probes()]
    return cards if any(each["target"] == "sm_37" for each in probes()) else [*cards, "Tesla K80"]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def matrix() -> str:
    """Both tables."""
    rows: dict[str, list[Variant]] = {}
    for variant in variants():
        if refusal(variant) is None:
            rows.setdefault(row_of(variant), []).append(variant)
    unused = PROOFS.keys() - rows.keys()
    assert not unused, f"no form is in {unused}"
    columns, notes = heads(), Notes()
    always = notes.cell((*SILICON, STRESSED))
    lines = [
        "### Arithmetic",
        "",
        _row(["operation", "forms", "label", *columns, "oracle on the CPU", "tests"]),
        _row(["---"] * (5 + len(columns))),
    ]
    order = sorted(rows, key=lambda row: (list(PROOFS).index(row) if row in PROOFS else len(PROOFS), row))
    for row in order:
        forms = rows[row]
        proof = PROOFS.get(row, Proof("", ()))
        names = {form.name for form in forms}
        cards = [cell(probe, names) for probe in probes()]
        cards += ["not run"] * (len(columns) - len(cards))
        lines.append(
            _row([row, str(len(forms)), label(forms), *cards, proof.oracle or "none", notes.cell(proof.tests)])
        )
    lines += [
        "",
        "A result is one answer of one form to one input, compared bit by bit. Tests by number:",
        "",
        *notes.lines(),
        "",
        f"{always} are for every row: they hold each form to answers of the H200 that are kept in the repository, 256",
        "inputs each, as arithmetic and within a kernel, and the float forms on 16384 more.",
        "",
        "### Everything else",
        "",
        "No card was asked about these form by form. Those that are named ran on the H200 within the product's 15",
        "kernels, bit for bit as on the executor ([results](results/2026-11-30-h200.md)).",
        "",
        _row(["operation", "forms", *columns, "oracle on the CPU", "tests"]),
        _row(["---"] * (4 + len(columns))),
    ]
    for family in FAMILIES:
        held = in_kernels(family)
        ran = f"within kernels: {', '.join(f'`{name}`' for name in held)}" if held else "not run"
        lines.append(
            _row(
                [
                    family.name,
                    str(len(family.forms)),
                    *[ran if probe["model"] == "NVIDIA H200" else "not run" for probe in probes()],
                    *["not run"] * (len(columns) - len(probes())),
                    family.oracle,
                    ", ".join(f"`{name}`" for name in family.test.split(", ")),
                ]
            )
        )
    return "\n".join([*lines, ""])


def page() -> str:
    """The page with the matrix as it is now."""
    text = PAGE.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{matrix()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
