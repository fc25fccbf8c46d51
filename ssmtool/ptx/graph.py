"""Graph algorithms without recursion, so that a function of any size fits: postorder and dominators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def postorder(start: int, successors: Callable[[int], Sequence[int]]) -> list[int]:
    """Nodes that `start` reaches, each after those it leads to (back edges apart)."""
    seen = {start}
    order: list[int] = []
    stack = [(start, iter(successors(start)))]
    while stack:
        node, rest = stack[-1]
        for following in rest:
            if following not in seen:
                seen.add(following)
                stack.append((following, iter(successors(following))))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def dominators(order: Sequence[int], predecessors: Mapping[int, Sequence[int]], root: int) -> dict[int, int | None]:
    """Immediate dominators of the nodes of `order`, a reverse postorder that starts with `root`.

    The method is that of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
    """
    place = {node: index for index, node in enumerate(order)}
    found: list[int] = [-1] * len(order)  # places in `order`, so that a smaller number is closer to the root
    found[0] = 0
    changed = True
    while changed:
        changed = False
        for index in range(1, len(order)):
            best = -1
            for node in predecessors[order[index]]:
                other = place.get(node, -1)
                if other < 0 or found[other] < 0:
                    continue
                best = other if best < 0 else _common(found, other, best)
            if best != found[index]:
                found[index] = best
                changed = True
    result: dict[int, int | None] = {order[index]: order[found[index]] for index in range(1, len(order))}
    result[root] = None
    return result


def _common(found: list[int], first: int, second: int) -> int:
    while first != second:
        while first > second:
            first = found[first]
        while second > first:
            second = found[second]
    return first
