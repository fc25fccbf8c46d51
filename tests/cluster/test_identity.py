"""Who may work: the same files, the same libraries as far as they matter."""

from __future__ import annotations

import pytest

from ssmtool.cluster.identity import difference, identity

HERE = {
    "ssmtool": "1.2.0", "files": "a" * 64, "Python": "3.11.7", "numpy": "2.4.6", "llvmlite": "0.50.0",
    "msgspec": "0.19.0", "distributed": "2026.8.0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ssmtool": "1.1.0"}, "its ssmtool is 1.1.0, here it is 1.2.0"),
        ({"files": "b" * 64}, "its files have the hash bbbbbbbbbbbb, here it is aaaaaaaaaaaa"),
        ({"Python": "3.10.4"}, "its Python is 3.10.4, here it is 3.11.7"),
        ({"numpy": "1.26.4"}, "its numpy is 1.26.4"),
        ({"llvmlite": "none"}, "its llvmlite is none"),
        ({"distributed": "2026.7.0"}, "its distributed is 2026.7.0"),
    ],
)
def test_what_is_refused_with_both_versions(changed: dict[str, str], message: str) -> None:
    assert message in (difference(HERE, {**HERE, **changed}) or "")


@pytest.mark.parametrize("changed", [{}, {"Python": "3.11.9"}, {"numpy": "2.4.0"}, {"llvmlite": "0.50.1"}])
def test_what_does_not_matter(changed: dict[str, str]) -> None:
    assert difference(HERE, {**HERE, **changed}) is None


def test_a_process_is_what_it_was_when_it_was_first_asked() -> None:
    found = identity()
    assert found is identity()
    assert set(found) == set(HERE)
    assert len(found["files"]) == 64
