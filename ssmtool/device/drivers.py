"""Which driver takes which PTX, and which cards a driver still knows.

Sources: CUDA Toolkit release notes, table "CUDA Toolkit and Corresponding Driver Versions"; PTX ISA, "Release Notes".
"""

from __future__ import annotations

from dataclasses import dataclass

# (driver branch on Linux, CUDA release of its libcuda, newest PTX ISA its compiler takes). A driver of another branch
# counts as the newest one here that is not newer. From CUDA 12.6 on the ISA no longer follows the release's number.
BRANCHES: tuple[tuple[int, tuple[int, int], tuple[int, int]], ...] = (
    (384, (9, 0), (6, 0)),
    (390, (9, 1), (6, 1)),
    (396, (9, 2), (6, 2)),
    (410, (10, 0), (6, 3)),
    (418, (10, 1), (6, 4)),
    (440, (10, 2), (6, 5)),
    (450, (11, 0), (7, 0)),
    (455, (11, 1), (7, 1)),
    (460, (11, 2), (7, 2)),
    (465, (11, 3), (7, 3)),
    (470, (11, 4), (7, 4)),
    (495, (11, 5), (7, 5)),
    (510, (11, 6), (7, 6)),
    (515, (11, 7), (7, 7)),
    (520, (11, 8), (7, 8)),
    (525, (12, 0), (8, 0)),
    (530, (12, 1), (8, 1)),
    (535, (12, 2), (8, 2)),
    (545, (12, 3), (8, 3)),
    (550, (12, 4), (8, 4)),
    (555, (12, 5), (8, 5)),
    (560, (12, 6), (8, 5)),
    (565, (12, 7), (8, 6)),
    (570, (12, 8), (8, 7)),
    (575, (12, 9), (8, 8)),
    (580, (13, 0), (9, 0)),
)

# (compute capability below which it holds, family, last driver branch)
_LAST_BRANCH: tuple[tuple[tuple[int, int], str, int], ...] = (
    ((3, 0), "Fermi", 390),
    ((5, 0), "Kepler", 470),
    ((7, 5), "Maxwell, Pascal and Volta", 580),
)

# PCI device ids of NVIDIA cards of compute capability 3.7 and their kin: what is plugged in, whatever the driver sees.
KEPLER_TESLA = {
    0x102D: "Tesla K80",
    0x1021: "Tesla K20Xm",
    0x1022: "Tesla K20c",
    0x1023: "Tesla K40m",
    0x1024: "Tesla K40c",
    0x1026: "Tesla K20s",
    0x1028: "Tesla K20m",
    0x1029: "Tesla K40s",
    0x102A: "Tesla K40t",
    0x102E: "Tesla K40d",
}


@dataclass(frozen=True)
class Kepler:
    """The last driver that knows compute capability 3.x."""

    branch: int = 470
    cuda: tuple[int, int] = (11, 4)
    ptx_isa: tuple[int, int] = (7, 4)


KEPLER = Kepler()


def ptx_isa_of_cuda(version: int) -> tuple[int, int] | None:
    """The newest PTX ISA of a driver, from `cuDriverGetVersion`'s number (11040). None for one newer than the table."""
    cuda = cuda_release(version)
    if cuda > BRANCHES[-1][1]:
        return None
    return max((isa for _, release, isa in BRANCHES if release <= cuda), default=(6, 0))


def cuda_release(version: int) -> tuple[int, int]:
    """(11, 4) of 11040."""
    return version // 1000, version % 1000 // 10


def cuda_of_branch(branch: int) -> tuple[int, int] | None:
    """The CUDA release of a driver branch (470 -> 11.4); None for one outside the table."""
    if branch < BRANCHES[0][0] or branch > BRANCHES[-1][0] + 9:
        return None
    return max(release for each, release, _ in BRANCHES if each <= branch)


def last_branch(capability: tuple[int, int]) -> tuple[str, int] | None:
    """(family, last driver branch) of a card that drivers have stopped knowing, or None."""
    return next(((family, branch) for below, family, branch in _LAST_BRANCH if capability < below), None)


def dotted(pair: tuple[int, int]) -> str:
    """`7.4`."""
    return f"{pair[0]}.{pair[1]}"
