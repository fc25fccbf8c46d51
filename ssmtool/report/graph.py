"""The control-flow graph as SVG: a layered drawing with local traffic and dead paths in colour.

Layers are the longest way from the entry without back edges; a back edge runs up the left side, any other edge down. No
library draws this without a foreign program, and blocks of code are few enough for a plain layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from ssmtool.audit.paths import PathAnalysis

_WIDTH, _LINE, _GAP_X, _GAP_Y, _PAD = 300, 14, 40, 46, 8
_LANE = 14
# Instructions of a block that are drawn; the rest are counted.
_SHOWN = 8
_CUT = 46

_STYLE = """text{font:11px monospace;fill:#222}
.block{fill:#f6f8fa;stroke:#57606a}.local{fill:#ffd7d5;stroke:#cf222e;stroke-width:2}
.dead{fill:#fff;stroke:#b8bfc6;stroke-dasharray:4 3}.deadtext{fill:#9aa3ab}.hot{fill:#cf222e;font-weight:bold}
.edge{fill:none;stroke:#57606a;marker-end:url(#arrow)}.gone{fill:none;stroke:#c8ced4;stroke-dasharray:4 3}
.back{fill:none;stroke:#0969da;marker-end:url(#arrow)}.title{font:bold 14px sans-serif}.note{font:12px sans-serif}"""


@dataclass(slots=True)
class _Box:
    number: int
    lines: list[tuple[str, str]]
    kind: str
    x: float = 0.0
    y: float = 0.0

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 2 * _PAD


def render_graph(analysis: PathAnalysis) -> str:
    """The SVG document. Every text of the PTX is escaped: a kernel's name cannot end an element."""
    boxes = _boxes(analysis)
    layers = _layers(analysis)
    back = set(analysis.flow.graph.back_edges)
    lanes = 40 + _LANE * max(1, len(back))
    width, height = _place(boxes, layers, lanes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(_clean(analysis.flow.function.name))}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>',
        f'<text class="title" x="10" y="20">{escape(_clean(analysis.flow.function.name))}</text>',
        f'<text class="note" x="10" y="38">{escape(_legend(analysis))}</text>',
    ]
    lane = 0
    for block in analysis.flow.blocks:
        for successor in dict.fromkeys(block.successors):
            live = (block.index, successor) in analysis.found.edges
            if (block.index, successor) in back:
                parts.append(_back_edge(boxes[block.index], boxes[successor], 20 + lane * _LANE, live))
                lane += 1
            else:
                parts.append(_edge(boxes[block.index], boxes[successor], live))
    parts += [_draw(boxes[block.index]) for block in analysis.flow.blocks]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(analysis: PathAnalysis) -> str:
    assumed = ", ".join(f"{name} = {value}" for name, value in analysis.assumed.shown.items()) or "nothing"
    dead = len(analysis.flow.blocks) - len(analysis.found.live)
    return f"assumed: {assumed}. {dead} of {len(analysis.flow.blocks)} blocks are dead (dashed); local memory is red"


def _boxes(analysis: PathAnalysis) -> list[_Box]:
    function = analysis.flow.function
    local = {access.index for access in analysis.local}
    boxes = []
    for block in analysis.flow.blocks:
        indices = range(block.start, block.end)
        live = block.index in analysis.found.live
        touched = [index for index in indices if index in local]
        shown = _selection(list(indices), touched)
        lines = [(f"block {block.index}: {block.end - block.start} instructions", "" if live else "deadtext")]
        previous = block.start - 1
        for index in shown:
            if index != previous + 1:
                lines.append(("  ...", "" if live else "deadtext"))
            style = "deadtext" if not analysis.executed(index) else "hot" if index in local else ""
            lines.append((" ".join(function.instructions[index].text.split()), style))
            previous = index
        executed = any(analysis.executed(index) for index in touched)
        boxes.append(_Box(block.index, lines, "dead" if not live else "local" if executed else "block"))
    return boxes


def _selection(indices: list[int], touched: list[int]) -> list[int]:
    """The instructions that are drawn: local traffic first, then the beginning and the end of the block."""
    if len(indices) <= _SHOWN:
        return indices
    chosen = set(touched[:_SHOWN]) | {indices[-1]}
    for index in indices:
        if len(chosen) >= _SHOWN:
            break
        chosen.add(index)
    return sorted(chosen)


def _layers(analysis: PathAnalysis) -> dict[int, int]:
    """Block -> layer; blocks that no path of the text reaches come last."""
    graph = analysis.flow.graph
    back = set(graph.back_edges)
    order = graph.reverse_postorder
    place = {block: position for position, block in enumerate(order)}
    layers = dict.fromkeys(order, 0)
    for block in order:
        for successor in graph.blocks[block].successors:
            # Irreducible cycles have edges up that are no back edges: only edges down the order count.
            if (block, successor) not in back and place[successor] > place[block]:
                layers[successor] = max(layers[successor], layers[block] + 1)
    last = max(layers.values(), default=0)
    for each in graph.blocks:
        layers.setdefault(each.index, last + 1)
    return layers


def _place(boxes: list[_Box], layers: dict[int, int], left: float) -> tuple[float, float]:
    rows: dict[int, list[_Box]] = {}
    for box in boxes:
        rows.setdefault(layers[box.number], []).append(box)
    widest = max(len(row) for row in rows.values())
    total = left + widest * (_WIDTH + _GAP_X)
    y = 60.0
    for layer in sorted(rows):
        row = rows[layer]
        start = left + (total - left - len(row) * (_WIDTH + _GAP_X)) / 2
        for position, box in enumerate(row):
            box.x, box.y = start + position * (_WIDTH + _GAP_X), y
        y += max(box.height for box in row) + _GAP_Y
    return total, y


def _edge(source: _Box, target: _Box, live: bool) -> str:
    x1, y1 = source.x + _WIDTH / 2, source.y + source.height
    x2, y2 = target.x + _WIDTH / 2, target.y
    bend = max(20.0, (y2 - y1) / 2)
    style = "edge" if live else "gone"
    return (
        f'<path class="{style}" d="M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} '
        f'{x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"/>'
    )


def _back_edge(source: _Box, target: _Box, lane: float, live: bool) -> str:
    y1, y2 = source.y + source.height - 6, target.y + 6
    style = "back" if live else "gone"
    return f'<path class="{style}" d="M{source.x:.0f} {y1:.0f}H{lane:.0f}V{y2:.0f}H{target.x:.0f}"/>'


def _draw(box: _Box) -> str:
    parts = [
        f'<g><rect class="{box.kind}" x="{box.x:.0f}" y="{box.y:.0f}" '
        f'width="{_WIDTH}" height="{box.height:.0f}" rx="4"/>'
    ]
    for number, (text, style) in enumerate(box.lines):
        y = box.y + _PAD + _LINE * number + 11
        shown = text if len(text) <= _CUT else text[: _CUT - 1] + "…"
        attribute = f' class="{style}"' if style else ""
        parts.append(f'<text{attribute} x="{box.x + _PAD:.0f}" y="{y:.0f}">{escape(_clean(shown))}</text>')
    return "".join([*parts, "</g>"])


def _clean(text: str) -> str:
    """Without the control characters that XML forbids."""
    return "".join(char if char >= " " else " " for char in text)
