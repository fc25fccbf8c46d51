"""How positions are split into launches."""

from __future__ import annotations

from ssmtool.fuzz.choices import Choices


def cuts(choices: Choices, n: int) -> list[int]:
    """Lengths of at most three chunks whose sum is n; one chunk is the simplest. A chunk may be empty."""
    sizes: list[int] = []
    for number in range(choices.integer("further chunks", 0, 2)):
        sizes.append(choices.integer(f"chunk {number}", 0, n - sum(sizes)))
    return [n - sum(sizes), *sizes]
