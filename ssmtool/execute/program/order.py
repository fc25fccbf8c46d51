"""The order in which the engine runs basic blocks when lanes of a vector wait at several.

The rule is "the lowest-numbered block that has lanes". With a weak topological order (Bourdoncle, "Efficient chaotic
iteration strategies with widenings", 1993) a loop's blocks stand together, its exits after it and a join after both
of its sides, so lanes that leave a loop early or take different sides of an `if` wait where the others will come.
It is defined for every graph, irreducible ones included: the rule needs no structure to be right, only to be quick.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence


def weak_topological_order(entry: int, successors: Callable[[int], Sequence[int]]) -> list[int]:
    """Every node that `entry` reaches, in a weak topological order; ties go to the lower number."""
    seen = {entry}
    stack = [entry]
    while stack:
        for following in successors(stack.pop()):
            if following not in seen:
                seen.add(following)
                stack.append(following)
    order: list[int] = []
    _arrange(sorted(seen), entry, successors, order)
    return order


def _arrange(nodes: list[int], first: int | None, successors: Callable[[int], Sequence[int]], out: list[int]) -> None:
    """Append `nodes` to `out`; `work` holds what is still to be arranged, so that depth costs no recursion."""
    work: list[tuple[list[int], int | None]] = [(nodes, first)]
    while work:
        members, head = work.pop()
        if len(members) == 1:
            out.append(members[0])
            continue
        inside = set(members)
        components = _components(members, inside, successors)
        ordered = _topological(components, successors)
        later: list[tuple[list[int], int | None]] = []
        for component in ordered:
            if len(component) == 1:
                later.append((component, None))
                continue
            loop_head = head if head in component else _entered_first(component, inside, successors)
            later.append(([loop_head], None))
            rest = [node for node in component if node != loop_head]
            if rest:
                later.append((rest, None))
        work.extend(reversed(later))


def _entered_first(component: list[int], inside: set[int], successors: Callable[[int], Sequence[int]]) -> int:
    """The lowest node of a loop that is entered from outside it, else the lowest."""
    own = set(component)
    entered = {to for node in inside - own for to in successors(node) if to in own}
    return min(entered or own)


def _components(members: list[int], inside: set[int], successors: Callable[[int], Sequence[int]]) -> list[list[int]]:
    """Strongly connected components of the graph among `members` (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    found: list[list[int]] = []
    for root in members:
        if root in index:
            continue
        stack = [(root, iter([to for to in successors(root) if to in inside]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while stack:
            node, rest = stack[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    open_nodes.append(to)
                    is_open.add(to)
                    stack.append((to, iter([each for each in successors(to) if each in inside])))
                    break
                if to in is_open:
                    low[node] = min(low[node], index[to])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        each = open_nodes.pop()
                        is_open.discard(each)
                        component.append(each)
                        if each == node:
                            break
                    found.append(sorted(component))
    return found


def _topological(components: list[list[int]], successors: Callable[[int], Sequence[int]]) -> list[list[int]]:
    """The components, each after those that lead to it; among the free ones the lowest first."""
    home = {node: number for number, component in enumerate(components) for node in component}
    following: list[set[int]] = [set() for _ in components]
    waiting = [0] * len(components)
    for number, component in enumerate(components):
        following[number] = {home[to] for node in component for to in successors(node) if to in home} - {number}
    for targets in following:
        for to in targets:
            waiting[to] += 1
    ready = [(components[number][0], number) for number, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, number = heapq.heappop(ready)
        ordered.append(components[number])
        for to in following[number]:
            waiting[to] -= 1
            if waiting[to] == 0:
                heapq.heappush(ready, (components[to][0], to))
    return ordered
