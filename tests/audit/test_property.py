"""Random structured kernels: the static audit against an execution by an interpreter that never sees PTX.

A program is a tree of statements; one side prints it as PTX for the audit, the other runs the tree. Soundness: what ran
was never called dead, and no more different local accesses ran than the audit counts. Where the walk can tell a launch,
its counts are those of the execution, exactly.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssmtool.audit.assumptions import Parameters, make_assumption, resolve
from ssmtool.audit.flow import Flow
from ssmtool.audit.localmemory import local_accesses
from ssmtool.audit.paths import PathAnalysis
from ssmtool.audit.walk import CannotTellError, Shape, walk
from ssmtool.ptx import Function, parse

M = 0xFFFF_FFFF
REGISTERS = 5
NAMES = ("data", "n", "m")


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


OPERATIONS = {
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> min(b, 32),
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.u32": max,
}
COMPARISONS = {
    "eq.s32": lambda a, b: a == b,
    "ne.s32": lambda a, b: a != b,
    "lt.s32": lambda a, b: signed(a) < signed(b),
    "gt.u32": lambda a, b: a > b,
    "le.u32": lambda a, b: a <= b,
}

# A source is ("r", register), ("n", number), ("p", parameter 1 or 2), ("t",) for the thread index.
source = st.one_of(
    st.tuples(st.just("r"), st.integers(0, REGISTERS - 1)),
    st.tuples(st.just("n"), st.sampled_from([0, 1, 2, 3, 4, 5, 31, 32, 33, M, 0x8000_0000])),
    st.tuples(st.just("p"), st.integers(1, 2)),
    st.tuples(st.just("t")),
)
# Against a small number or at random: the latter alone would rarely part the threads of a warp.
test_ = st.one_of(
    st.tuples(st.sampled_from(sorted(COMPARISONS)), source, source),
    st.tuples(
        st.sampled_from(sorted(COMPARISONS)),
        st.one_of(st.just(("t",)), st.tuples(st.just("r"), st.integers(0, REGISTERS - 1))),
        st.tuples(st.just("n"), st.integers(0, 6)),
    ),
)
leaf: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("set"), st.integers(0, REGISTERS - 1), st.sampled_from(sorted(OPERATIONS)), source, source),
    st.tuples(st.just("load"), st.integers(0, REGISTERS - 1)),
    st.tuples(st.just("select"), st.integers(0, REGISTERS - 1), test_, source, source),
    st.tuples(st.just("guarded"), test_, st.sampled_from(["ld", "st"])),
    st.tuples(st.just("guardedset"), test_, st.integers(0, REGISTERS - 1), source),
    st.tuples(st.just("local"), st.sampled_from(["ld", "st"])),
)
statements = st.recursive(
    st.lists(leaf, min_size=1, max_size=4),
    lambda inner: st.lists(
        st.one_of(
            leaf,
            st.tuples(st.just("if"), test_, inner, inner),
            st.tuples(st.just("loop"), st.integers(1, 3), test_, inner),
        ),
        min_size=1,
        max_size=4,
    ),
    max_leaves=20,
)


@dataclass
class Printer:
    """The tree as PTX. `places` are the ids of local accesses in text order."""

    lines: list[str] = field(default_factory=list)
    fresh: int = 0

    def name(self, stem: str) -> str:
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def source(self, each: tuple[Any, ...]) -> str:
        if each[0] == "r":
            return f"%r{each[1]}"
        if each[0] == "n":
            return str(signed(each[1]))
        register = self.name("%q")
        if each[0] == "p":
            self.lines.append(f"ld.param.u32 {register}, [k_param_{each[1]}];")
        else:
            self.lines.append(f"mov.u32 {register}, %tid.x;")
        return register

    def test(self, test: tuple[Any, ...]) -> str:
        left, right = self.source(test[1]), self.source(test[2])
        predicate = self.name("%p")
        self.lines.append(f"setp.{test[0]} {predicate}, {left}, {right};")
        return predicate

    def local(self, kind: str, guard: str = "") -> None:
        self.lines.append(f"{guard}ld.local.u32 %x0, [%rd1];" if kind == "ld" else f"{guard}st.local.u32 [%rd1], %x1;")

    def block(self, body: list[Any]) -> None:
        for each in body:
            kind = each[0]
            if kind == "set":
                left, right = self.source(each[3]), self.source(each[4])
                self.lines.append(f"{each[2]} %r{each[1]}, {left}, {right};")
            elif kind == "load":
                self.lines.append(f"ld.global.u32 %r{each[1]}, [%rd2];")
            elif kind == "select":
                predicate, a, b = self.test(each[2]), self.source(each[3]), self.source(each[4])
                self.lines.append(f"selp.b32 %r{each[1]}, {a}, {b}, {predicate};")
            elif kind == "guarded":
                self.local(each[2], f"@{self.test(each[1])} ")
            elif kind == "guardedset":
                value, predicate = self.source(each[3]), self.test(each[1])
                self.lines.append(f"@!{predicate} mov.u32 %r{each[2]}, {value};")
            elif kind == "local":
                self.local(each[1])
            elif kind == "if":
                other, end = self.name("ELSE"), self.name("END")
                self.lines.append(f"@!{self.test(each[1])} bra {other};")
                self.block(each[2])
                self.lines += [f"bra {end};", f"{other}:"]
                self.block(each[3])
                self.lines.append(f"{end}:")
            else:
                self.loop(each)

    def loop(self, each: tuple[Any, ...]) -> None:
        counter, top, end = self.name("%q"), self.name("TOP"), self.name("OUT")
        self.lines += [f"mov.u32 {counter}, 0;", f"{top}:"]
        self.lines.append(f"@!{self.test(each[2])} bra {end};")
        self.block(each[3])
        predicate = self.name("%p")
        self.lines += [
            f"add.s32 {counter}, {counter}, 1;",
            f"setp.lt.s32 {predicate}, {counter}, {each[1]};",
            f"@{predicate} bra {top};",
            f"{end}:",
        ]

    def text(self, body: list[Any]) -> str:
        self.lines += [f"mov.u32 %r{index}, {index};" for index in range(REGISTERS)]
        self.block(body)
        size = self.fresh + 9
        return "\n".join(
            [
                ".version 7.4\n.target sm_37\n.address_size 64",
                ".visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1, .param .u32 k_param_2) {",
                ".local .align 4 .b8 __local_depot0[4];",
                f".reg .pred %p<{size}>;\n.reg .b32 %q<{size}>;\n.reg .b32 %r<9>;\n.reg .b32 %x<9>;\n.reg .b64 %rd<9>;",
                *self.lines,
                "ret;\n}\n",
            ]
        )


class Runner:
    """The tree, run for one thread; local accesses are numbered as the printer prints them."""

    def __init__(self, parameters: tuple[int, int], thread: int, data: list[int]) -> None:
        self.parameters = parameters
        self.thread = thread
        self.data = data
        self.loads = 0
        self.registers = list(range(REGISTERS))
        self.ran: Counter[int] = Counter()

    def value(self, each: tuple[Any, ...]) -> int:
        if each[0] == "r":
            return self.registers[each[1]]
        if each[0] == "n":
            return int(each[1])
        return self.parameters[each[1] - 1] & M if each[0] == "p" else self.thread

    def holds(self, test: tuple[Any, ...]) -> bool:
        return bool(COMPARISONS[test[0]](self.value(test[1]), self.value(test[2])))

    def block(self, body: list[Any], number: int) -> int:
        """Run; the number of the next local access after this block's text."""
        for each in body:
            kind = each[0]
            if kind == "set":
                self.registers[each[1]] = OPERATIONS[each[2]](self.value(each[3]), self.value(each[4])) & M
            elif kind == "load":
                self.registers[each[1]] = self.data[self.loads % len(self.data)]
                self.loads += 1
            elif kind == "select":
                self.registers[each[1]] = self.value(each[3] if self.holds(each[2]) else each[4])
            elif kind == "guardedset":
                if not self.holds(each[1]):
                    self.registers[each[2]] = self.value(each[3])
            elif kind in ("guarded", "local"):
                if kind == "local" or self.holds(each[1]):
                    self.ran[number] += 1
                number += 1
            elif kind == "if":
                middle = number + accesses(each[2])
                if self.holds(each[1]):
                    self.block(each[2], number)
                else:
                    self.block(each[3], middle)
                number = middle + accesses(each[3])
            else:
                for _ in range(each[1]):
                    if not self.holds(each[2]):
                        break
                    self.block(each[3], number)
                number += accesses(each[3])
        return number


def accesses(body: list[Any]) -> int:
    total = 0
    for each in body:
        total += each[0] in ("guarded", "local")
        total += sum(accesses(part) for part in each if isinstance(part, list))
    return total


def analysed(text: str, assumed: dict[str, int]) -> tuple[Function, PathAnalysis]:
    function = parse(text).entries[0]
    names = Parameters.of(function, {"k": NAMES})
    made = resolve([make_assumption(f"k.{name}", value) for name, value in assumed.items()], {"k": names})["k"]
    return function, PathAnalysis(Flow(function), made, {})


small = st.integers(-2, 6)


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(
    statements,
    st.tuples(small, small),
    st.sets(st.sampled_from(["n", "m"])),
    st.integers(0, 40),
    st.lists(st.integers(0, M), min_size=1, max_size=4),
)
def test_what_ran_was_never_called_dead(
    body: list[Any], parameters: tuple[int, int], assumed: set[str], thread: int, data: list[int]
) -> None:
    values = {name: value for name, value in zip(("n", "m"), parameters, strict=True) if name in assumed}
    function, analysis = analysed(Printer().text(body), values)
    found = local_accesses(function)
    assert len(found) == accesses(body)
    counts = analysis.counts(found, {})
    runner = Runner(parameters, thread, data)
    runner.block(body, 0)
    for number in runner.ran:
        assert analysis.executed(found[number].index), f"access {number} ran but was called dead"
    loads = sum(found[number].kind == "load" for number in runner.ran)
    assert loads <= counts.local_loads
    assert len(runner.ran) - loads <= counts.local_stores


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(statements, st.tuples(small, small), st.integers(1, 40))
def test_a_launch_that_can_be_walked_counts_as_the_execution_does(
    body: list[Any], parameters: tuple[int, int], threads: int
) -> None:
    function, analysis = analysed(Printer().text(body), dict(zip(("n", "m"), parameters, strict=True)))
    try:
        walked = walk(analysis.flow, analysis.assumed, Shape((1, 1, 1), (threads, 1, 1)))
    except CannotTellError:
        return
    found = local_accesses(function)
    unguarded = [number for number, each in enumerate(found) if function.instructions[each.index].predicate is None]
    lanes: list[Counter[int]] = []
    for thread in range(threads):
        runner = Runner(parameters, thread, [0])
        runner.block(body, 0)
        lanes.append(runner.ran)
    for number in unguarded:
        # In a structured program a warp issues an instruction as often as its busiest lane runs it, or more often when
        # lanes run it in different turns of a loop; never less, and never more than all lanes one by one.
        for first in range(0, threads, 32):
            warp = lanes[first : first + 32]
            if threads <= 32:
                issued = walked.issued.get(found[number].index, 0)
                assert max(lane[number] for lane in warp) <= issued <= sum(lane[number] for lane in warp)


def test_the_generator_makes_programs_that_matter() -> None:
    """A fixed program in which assumption, loop and data each decide something."""
    body = [
        ("if", ("eq.s32", ("p", 1), ("n", 4)), [("local", "ld")], [("local", "st")]),
        ("loop", 3, ("lt.s32", ("r", 0), ("n", 100)), [("local", "st"), ("load", 0)]),
    ]
    _, analysis = analysed(Printer().text(body), {"n": 4})
    counts = analysis.counts(local_accesses(analysis.flow.function), {})
    assert (counts.local_loads, counts.local_stores) == (1, 1)
    runner = Runner((4, 0), 0, [200])
    runner.block(body, 0)
    assert runner.ran == {0: 1, 2: 1}
    with pytest.raises(CannotTellError, match="depends on data"):
        walk(analysis.flow, analysis.assumed, Shape((1, 1, 1), (1, 1, 1)))
