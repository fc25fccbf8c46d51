"""A kernel's PTX with a margin: class, whether it can run under the assumptions, and how often it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ssmtool.audit.counts import contractible_products, is_approximate
from ssmtool.audit.loopcontrol import classes_by_place
from ssmtool.audit.paths import PathAnalysis


@dataclass(frozen=True, slots=True)
class ListedLine:
    """One line of the PTX.

    `class_` is empty for lines without an instruction; `live` is None there. `executed` is the
    number of times warps of one block issue it in the launch that was walked, None when there was none.
    """

    line: int
    text: str
    class_: str = ""
    live: bool | None = None
    executed: int | None = None
    note: str = ""


def listing(analysis: PathAnalysis, executed: Mapping[int, int] | None = None) -> Iterator[ListedLine]:
    """Every line of the function, from its header to its closing brace."""
    function = analysis.flow.function
    local = {access.index: access for access in analysis.local}
    classes = classes_by_place(analysis.flow)
    contractible = set(contractible_products(function))
    by_line: dict[int, list[int]] = {}
    for index in range(len(function.opcodes)):
        by_line.setdefault(function.instructions[index].line, []).append(index)
    first = function.line
    for number, text in enumerate(function.text.split("\n"), first):
        indices = by_line.get(number)
        if not indices:
            yield ListedLine(number, text)
            continue
        index = indices[0]
        notes = []
        access = local.get(index)
        if access is not None and access.generic:
            notes.append("local through a generic address")
        if is_approximate(function.opcodes[index]):
            notes.append("approximate")
        if index in contractible:
            notes.append("may be fused")
        if index in analysis.found.switched_off:
            notes.append("guard is false")
        if len(indices) > 1:
            notes.append(f"{len(indices)} instructions")
        yield ListedLine(
            number,
            text,
            "local memory" if access is not None else classes[index],
            any(analysis.executed(each) for each in indices),
            None if executed is None else sum(executed.get(each, 0) for each in indices),
            ", ".join(notes),
        )
