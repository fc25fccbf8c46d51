"""A block's shape, and what it says of the special registers of its threads."""

from __future__ import annotations

from dataclasses import dataclass

Stride = int | None
"""What a value grows by from lane to lane, 0 for one that all lanes share, None for anything else."""

WIDEST = 1 << 31


@dataclass(frozen=True, slots=True)
class Geometry:
    """A block's shape in threads and how many of them run as one vector."""

    block: tuple[int, int, int]
    lanes: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def gangs(self) -> int:
        """Vectors that make a block."""
        return -(-self.threads // self.lanes)

    def special(self, name: str) -> Stride:
        """The stride of a special register."""
        x, y, z = self.block
        if name == "%tid.x":
            if x == 1:
                return 0
            return 1 if x % self.lanes == 0 or (y == 1 and z == 1) else None
        if name == "%tid.y":
            return 0 if y == 1 or x % self.lanes == 0 else None
        if name == "%tid.z":
            return 0 if z == 1 or (x * y) % self.lanes == 0 else None
        if name == "%laneid":
            return 1 if self.lanes == 32 else None
        if name.startswith("%lanemask"):
            return None
        if name == "%warpid":
            return 0 if self.lanes == 32 else None
        return 0

    def bounds(self, name: str) -> tuple[int, int] | None:
        """Smallest and largest value of a special register."""
        if name[:5] == "%tid.":
            return 0, self.block["xyz".index(name[5])] - 1
        if name[:6] == "%ntid.":
            size = self.block["xyz".index(name[6])]
            return size, size
        if name == "%laneid":
            return 0, 31
        if name == "%warpid":
            return 0, 31
        if name.startswith(("%ctaid.", "%nctaid.")):
            return 0, WIDEST - 1
        return None

    def alignment(self, name: str) -> int:
        """A power of two that divides the lane-0 value of a special register."""
        if name == "%tid.x" and self.special(name) == 1:
            return self.lanes & -self.lanes
        if name[:6] == "%ntid.":
            size = self.block["xyz".index(name[6])]
            return size & -size
        return WIDEST if name == "%laneid" else 1
