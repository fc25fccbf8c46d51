"""A first guess at a project's settings, from its tree: what `ssmtool init` writes for the user to correct.

Guesses are made from text, then confirmed with the same readers that every later command uses; what could not be
confirmed is written as a comment, not as a setting.
"""

from __future__ import annotations

from ssmtool.discover.guess import Guess, ModuleGuess, discover
from ssmtool.discover.loader import LoaderGuess

__all__ = ["Guess", "LoaderGuess", "ModuleGuess", "discover"]
