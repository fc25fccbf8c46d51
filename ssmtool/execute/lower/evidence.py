"""How far the data that a store writes can be trusted."""

from __future__ import annotations

from ssmtool.execute.layout import Site
from ssmtool.execute.lower.gang import Sites
from ssmtool.execute.program.shapes import Shapes


def labelled(shapes: Shapes, sites: Sites) -> tuple[Site, ...]:
    """The sites, stores with the label of what they write."""
    return tuple(sites.rows)
