"""Random graphs of blocks: each goes on to one or two others, or ends."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, list[int]]:
    """Block -> where it goes, taken side first."""
    count = draw(st.integers(1, 9))
    node = st.integers(0, count - 1)
    return {each: draw(st.lists(node, max_size=2, unique=True)) for each in range(count)}
