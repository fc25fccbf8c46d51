"""The driver tables: the facts that a K80's owner runs into."""

from __future__ import annotations

import pytest

from ssmtool.device.codes import CODES, code_of, describe
from ssmtool.device.drivers import BRANCHES, cuda_of_branch, last_branch, ptx_isa_of_cuda


@pytest.mark.parametrize(("version", "isa"), [(11040, (7, 4)), (11080, (7, 8)), (12000, (8, 0)), (12060, (8, 5)),
                                              (12080, (8, 7)), (13000, (9, 0)), (8000, (6, 0))])  # fmt: skip
def test_a_driver_takes_the_isa_of_its_cuda_release_which_from_12_6_on_has_another_number(
    version: int, isa: tuple[int, int]
) -> None:
    assert ptx_isa_of_cuda(version) == isa


def test_a_driver_newer_than_the_table_is_not_guessed_at() -> None:
    assert ptx_isa_of_cuda(14000) is None
    assert cuda_of_branch(700) is None


def test_r470_is_the_last_for_a_k80_and_its_cuda_is_11_4() -> None:
    assert last_branch((3, 7)) == ("Kepler", 470)
    assert last_branch((9, 0)) is None
    assert cuda_of_branch(470) == cuda_of_branch(471) == (11, 4)


def test_the_table_is_in_order() -> None:
    assert list(BRANCHES) == sorted(BRANCHES)
    assert [isa for _, _, isa in BRANCHES] == sorted(isa for _, _, isa in BRANCHES)


def test_a_code_is_found_again_by_the_text_that_pycuda_keeps() -> None:
    for code, each in CODES.items():
        assert code_of(f"cuSomething failed: {each.text.rstrip('.')}") == code
    assert code_of("something else") == 999


def test_an_unknown_code_is_told_as_it_is() -> None:
    assert describe("cuInit", 12345) == "cuInit failed with error 12345"
    assert describe("cuModuleLoadDataEx", 218, "line 1;\n wrong ").endswith("; the driver says: line 1; wrong")
