"""The one error of this room: text that is not PTX, or PTX that is damaged."""

from __future__ import annotations

from ssmtool.errors import ProductError


class PtxSyntaxError(ProductError):
    """The text is not well-formed PTX; `line` and `column` (1-based) say where it stops making sense."""
