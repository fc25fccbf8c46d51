"""Functions that workers call in the tests; they find this module beside the others of the tests."""

from __future__ import annotations

import os
import time


def doubled(number: int) -> tuple[int, int]:
    """The number twice, and who did it."""
    return 2 * number, os.getpid()


def slow(number: int) -> tuple[int, int]:
    """The same, so that somebody can be killed meanwhile."""
    time.sleep(0.1)
    return doubled(number)


def deadly(number: int) -> int:
    """Ends its process for one number."""
    if number == 3:
        os._exit(9)
    return number


def broken(number: int) -> int:
    """Falls over for one number."""
    return 1 // (number - 1)
