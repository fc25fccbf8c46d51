"""The statements of random kernels that jump nowhere: arithmetic, memory, notes in the thread's own places."""

from __future__ import annotations

from random import Random

WORDS, WIDE, REALS, HALVES, TESTS = 8, 4, 3, 3, 4
"""How many registers of each kind statements read and write."""
TRACES = 8
"""Places of 16 bytes in which a thread notes values on its way."""
DATA = 1024
"""Words of the data that kernels read at computed places."""


class Statements:
    """Appends statements to `lines`. `laneid` says whether `%laneid` may be among the sources."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.labels = 0
        self.chained = 0
        self.laneid = False

    # -- small choices

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def out(self, line: str) -> None:
        self.lines.append(line)

    def word(self) -> str:
        """A 32-bit register."""
        return f"%r{self.random.randrange(WORDS)}"

    def wide(self) -> str:
        return f"%d{self.random.randrange(WIDE)}"

    def real(self) -> str:
        return f"%f{self.random.randrange(REALS)}"

    def half(self) -> str:
        return f"%h{self.random.randrange(HALVES)}"

    def test(self) -> str:
        return f"%p{self.random.randrange(TESTS)}"

    def number(self) -> str:
        choices = (
            0,
            1,
            2,
            3,
            4,
            5,
            8,
            16,
            31,
            32,
            64,
            255,
            1000,
            65535,
            0x7FFFFFFF,
            0xFFFFFFF0,
            0x80000000,
            -1,
            -4,
        )
        return str(self.random.choice(choices))

    def source(self) -> str:
        """A 32-bit source: mostly a register, else a number or a special register."""
        kind = self.random.random()
        if kind < 0.55:
            return self.word()
        if kind < 0.8:
            return self.number()
        names = ["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ntid.x", "%nctaid.x"]
        return self.random.choice([*names, "%tid.x", *(["%laneid"] if self.laneid else [])])

    def guard(self) -> str:
        if self.random.random() > 0.2:
            return ""
        return f"@{self.random.choice(('', '!'))}{self.test()} "

    # -- statements without control flow

    def plain(self) -> None:
        """One instruction, or a few that belong together."""
        pick = self.random.choice
        kind = self.random.randrange(100)
        g = self.guard()
        a, b = self.source(), self.source()
        if self.random.random() < 0.12:
            self.chain()
        elif kind < 22:
            op = pick(
                (
                    "add.s32",
                    "sub.s32",
                    "add.u32",
                    "mul.lo.s32",
                    "and.b32",
                    "or.b32",
                    "xor.b32",
                    "min.s32",
                    "max.u32",
                )
            )
            self.out(f"{g}{op} {self.word()}, {a}, {b};")
        elif kind < 28:
            self.out(f"{g}mad.lo.s32 {self.word()}, {a}, {pick(('1', '4', '12', b))}, {self.source()};")
        elif kind < 34:
            op = pick(("shl.b32", "shr.u32", "shr.s32"))
            self.out(f"{g}{op} {self.word()}, {a}, {pick(('0', '1', '2', '5', '7', '31', '32', '40', self.word()))};")
        elif kind < 39:
            self.out(f"{g}mov.u32 {self.word()}, {a};")
        elif kind < 48:
            op = pick(("eq", "ne", "lt", "le", "gt", "ge"))
            self.out(f"{g}setp.{op}.{pick(('s32', 'u32'))} {self.test()}, {self.word()}, {b};")
        elif kind < 52:
            self.out(f"{g}selp.b32 {self.word()}, {a}, {b}, {self.test()};")
        elif kind < 55:
            op = pick(("and.pred", "or.pred", "xor.pred"))
            self.out(f"{g}{op} {self.test()}, {self.test()}, {pick(('!', ''))}{self.test()};")
        elif kind < 67:
            self.extension(g, a, b)
        elif kind < 72:
            op = pick(
                (
                    "add.s64",
                    "sub.s64",
                    "mul.lo.s64",
                    "and.b64",
                    "or.b64",
                    "min.s64",
                    "max.u64",
                )
            )
            self.out(f"{g}{op} {self.wide()}, {self.wide()}, {pick((self.wide(), '4', '-8', '1048575'))};")
        elif kind < 75:
            op = pick(("shl.b64", "shr.u64", "shr.s64"))
            self.out(f"{g}{op} {self.wide()}, {self.wide()}, {pick(('1', '2', '32', '33', '63', '70'))};")
        elif kind < 80:
            self.parts(g)
        elif kind < 84:
            op, divisor = pick(("div", "rem")), pick(("3", "7", "32", "33"))
            self.out(f"{g}{op}.{pick(('u32', 's32'))} {self.word()}, {a}, {divisor};")
        elif kind < 90:
            self.floating(g)
        elif kind < 95:
            self.load(g)
        else:
            self.trace(g)

    def chain(self) -> None:
        """A few registers that are written once, from the thread's numbers and literals: what is known of them is used.

        This is how compilers write addresses; the last goes into a register that other statements read.
        """
        pick = self.random.choice
        known = [
            "%tid.x",
            "%tid.y",
            "%x4",
            "%x7",
            "%ctaid.x",
            "%ntid.x",
            *([self.word()] if self.random.random() < 0.3 else []),
        ]
        for _ in range(self.random.randrange(2, 6)):
            a = pick(known[-3:]) if len(known) > 8 else pick(known)
            b = pick((pick(known), self.number(), self.number(), "4", "32", "96"))
            to = f"%s{self.chained}"
            self.chained += 1
            kind = self.random.randrange(14)
            if kind < 9:
                op = pick(
                    (
                        "add.s32",
                        "sub.s32",
                        "mul.lo.s32",
                        "and.b32",
                        "or.b32",
                        "min.u32",
                        "max.s32",
                        "add.u32",
                    )
                )
                self.out(f"{op} {to}, {a}, {b};")
            elif kind < 11:
                op = pick(("shl.b32", "shr.u32", "shr.s32"))
                self.out(f"{op} {to}, {a}, {pick(('1', '2', '3', '5', '16', '30', '31'))};")
            elif kind == 11:
                self.out(f"mad.lo.s32 {to}, {a}, {pick(('4', '256', b))}, {pick(known)};")
            elif kind == 12:
                self.out(f"{pick(('div', 'rem'))}.{pick(('u32', 's32'))} {to}, {a}, {pick(('3', '32'))};")
            else:
                self.out(f"cvt.{pick(('u32.u16', 's32.s16', 'u32.u8', 's32.s8'))} {to}, {a};")
            known.append(to)
        last = known[-1]
        kind = self.random.randrange(6)
        if kind < 3:
            op = pick(("u64.u32", "s64.s32"))
            self.out(f"cvt.{op} {self.wide()}, {last};")
        elif kind < 5:
            self.out(f"mul.wide.{pick(('u32', 's32'))} {self.wide()}, {last}, {pick(('4', '-4', '12', '4294967292'))};")
        else:
            self.out(f"mov.u32 {self.word()}, {last};")

    def extension(self, g: str, a: str, b: str) -> None:
        """From 32 to 64 bits and back: what wraps in one lane and not in another."""
        pick = self.random.choice
        kind = self.random.randrange(6)
        if kind == 0:
            self.out(f"{g}mul.wide.{pick(('u32', 's32'))} {self.wide()}, {a}, {pick(('4', '12', b))};")
        elif kind == 1:
            self.out(f"{g}mad.wide.{pick(('u32', 's32'))} {self.wide()}, {a}, {pick(('8', '1', b))}, {self.wide()};")
        elif kind == 2:
            kinds = pick(("u64.u32", "s64.s32", "u64.u16", "s64.s16", "s64.s8"))
            self.out(f"{g}cvt.{kinds} {self.wide()}, {a if a[0] == '%' else self.word()};")
        elif kind == 3:
            self.out(f"{g}cvt.{pick(('u32.u64', 's32.s64'))} {self.word()}, {self.wide()};")
        elif kind == 4:
            kinds = pick(("u32.u16", "s32.s16", "u32.u8", "s32.s8", "u8.u32", "s8.s32"))
            self.out(f"{g}cvt.{kinds} {self.word()}, {self.word()};")
        else:
            self.out(f"{g}mul.hi.{pick(('u32', 's32'))} {self.word()}, {a}, {b};")

    def parts(self, g: str) -> None:
        pick = self.random.choice
        kind = self.random.randrange(7)
        if kind == 0:
            first = self.random.randrange(HALVES)
            self.out(f"{g}mov.b32 {{%h{first}, %h{(first + 1) % HALVES}}}, {self.word()};")
        elif kind == 1:
            self.out(f"{g}mov.b32 {self.word()}, {{{self.half()}, {self.half()}}};")
        elif kind == 2:
            self.out(f"{g}mov.b64 {self.wide()}, {{{self.word()}, {self.word()}}};")
        elif kind == 3:
            first = self.random.randrange(WORDS)
            self.out(f"{g}mov.b64 {{%r{first}, %r{(first + 1) % WORDS}}}, {self.wide()};")
        elif kind == 4:
            op = pick(("add.u16", "sub.s16", "mul.lo.u16", "and.b16", "min.s16"))
            self.out(f"{g}{op} {self.half()}, {self.half()}, {pick((self.half(), '3', '300'))};")
        elif kind == 5:
            self.out(f"{g}cvt.u16.u32 {self.half()}, {pick((self.word(), '%tid.x', '%tid.y'))};")
        else:
            op = pick(("shl.b16", "shr.u16", "shr.s16"))
            self.out(f"{g}{op} {self.half()}, {self.half()}, {pick(('1', '4', '15', '16'))};")

    def floating(self, g: str) -> None:
        pick = self.random.choice
        kind = self.random.randrange(8)
        if kind < 3:
            self.out(f"{g}{pick(('add', 'sub', 'mul'))}.rn.f32 {self.real()}, {self.real()}, {self.real()};")
        elif kind == 3:
            self.out(f"{g}setp.{pick(('lt', 'ge', 'eq', 'ne'))}.f32 {self.test()}, {self.real()}, {self.real()};")
        elif kind == 4:
            self.out(f"{g}mov.b32 {self.real()}, {self.word()};")
        elif kind == 5:
            self.out(f"{g}mov.b32 {self.word()}, {self.real()};")
        elif kind == 6:
            self.out(f"{g}selp.f32 {self.real()}, {self.real()}, {self.real()}, {self.test()};")
        else:
            self.out(f"{g}cvt.rn.f32.{pick(('s32', 'u32'))} {self.real()}, {self.word()};")

    def load(self, g: str) -> None:
        """From the data: at one place for all, at a step, at a place that was computed, or guarded by a bound."""
        kind = self.random.randrange(7)
        to, index = self.word(), self.word()
        if kind == 0:
            self.out(f"{g}ld.global.u32 {to}, [%a0+{4 * self.random.randrange(64)}];")
        elif kind == 1:
            self.out(
                f"{g}ld.global.{self.random.choice(('u32', 's16', 'u8'))} {to}, [%a5+{4 * self.random.randrange(64)}];"
            )
        elif kind == 2:
            self.out(f"and.b32 %x0, {index}, {DATA - 1};")
            self.out("mul.wide.u32 %b0, %x0, 4;")
            self.out("add.s64 %b1, %a0, %b0;")
            self.out(f"{g}ld.global.{self.random.choice(('u32', 's32'))} {to}, [%b1];")
        elif kind == 3:  # the address of other lanes may be far outside
            self.out(f"setp.lt.u32 %q0, {index}, {DATA};")
            self.out(f"mul.wide.s32 %b0, {index}, 4;")
            self.out("add.s64 %b1, %b0, %a0;")
            self.out(f"@%q0 ld.global.u32 {to}, [%b1];")
        elif kind == 4:
            first = self.random.randrange(WORDS)
            self.out(f"and.b32 %x0, {index}, {DATA // 2 - 2};")
            self.out("mad.wide.u32 %b1, %x0, 4, %a0;")
            self.out(f"{g}ld.global.v2.u32 {{%r{first}, %r{(first + 1) % WORDS}}}, [%b1];")
        elif kind == 5:
            self.out(f"{g}ld.global.f32 {self.real()}, [%a5+{4 * self.random.randrange(64)}];")
        else:
            self.local(g, index, to)

    def local(self, g: str, index: str, to: str) -> None:
        """An array of the thread's own, written and read at computed places."""
        self.out(f"and.b32 %x0, {index}, 7;")
        self.out("mul.wide.u32 %b0, %x0, 4;")
        self.out("add.u64 %b1, %a6, %b0;")
        if self.random.random() < 0.5:
            self.out(f"{g}st.local.u32 [%b1], {self.word()};")
        else:
            self.out(f"{g}ld.local.u32 {to}, [%b1];")

    def trace(self, g: str) -> None:
        """A note in the thread's own part of the output."""
        kind, at = self.random.randrange(5), 16 * self.random.randrange(TRACES)
        if kind == 0:
            self.out(f"{g}st.global.u32 [%a1+{at}], {self.word()};")
        elif kind == 1:  # one after the other from lane to lane
            self.out(f"{g}st.global.u32 [%a4], {self.word()};")
        elif kind == 2:
            self.out(f"and.b32 %x0, {self.word()}, {TRACES - 1};")
            self.out("mad.wide.u32 %b0, %x0, 16, %a1;")
            self.out(f"{g}st.global.{self.random.choice(('u32', 'u16', 'u8'))} [%b0+8], {self.word()};")
        elif kind == 3:
            self.out(f"{g}st.global.v2.u32 [%a1+{at}], {{{self.word()}, {self.word()}}};")
        else:
            self.out(f"{g}st.global.u64 [%a1+{at}], {self.wide()};")
