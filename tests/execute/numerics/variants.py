"""Every scalar numeric instruction form of PTX ISA 7.4 that sm_37 may have, as data, and the inputs they are tried on.

A `Variant` is one PTX body line with `%d`, `%a`, `%b`, `%c` for its result and operands and a kind for each
(`f32`, `s64`, `b16`, `pred`, ...). The H200 sampler (`tools/numerics/measure_h200.py`) turns each into a kernel and
records what silicon answers; the tests run the same list through the emitters. Forms that ptxas rejects for sm_37
are in here too: the sampler records the rejection, which is how the list was proved complete rather than trusted.

Inputs are a fixed function of (kind, operand position, case number): nothing random is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

CASES = 256

ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGER_ROUNDINGS = ("rni", "rzi", "rmi", "rpi")
WIDE = ("u16", "u32", "u64", "s16", "s32", "s64")
FLOAT_COMPARISONS = (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "equ",
    "neu",
    "ltu",
    "leu",
    "gtu",
    "geu",
    "num",
    "nan",
)


@dataclass(frozen=True)
class Variant:
    """One instruction form. `text` is the body; `operands` the kinds of %a, %b, %c; `result` the kind of %d."""

    name: str
    text: str
    operands: tuple[str, ...]
    result: str


def width(kind: str) -> int:
    """Bits of a kind; 0 for a predicate."""
    return 0 if kind == "pred" else int(kind[1:])


def one(op: str, result: str, *operands: str) -> Variant:
    """The plain form: opcode, %d, then the operands."""
    places = ", ".join(("%a", "%b", "%c")[: len(operands)])
    return Variant(op, f"{op} %d, {places};", operands, result)


def _arithmetic() -> Iterator[Variant]:
    for op, t in product(("add", "sub"), WIDE):
        yield one(f"{op}.{t}", t, t, t)
    for op in ("add.sat.s32", "sub.sat.s32"):
        yield one(op, "s32", "s32", "s32")
    for t in WIDE:
        for part in ("lo", "hi"):
            yield one(f"mul.{part}.{t}", t, t, t)
            yield one(f"mad.{part}.{t}", t, t, t, t)
        if t[1:] != "64":
            double = t[0] + str(2 * int(t[1:]))
            yield one(f"mul.wide.{t}", double, t, t)
            yield one(f"mad.wide.{t}", double, t, t, double)
        for op in ("div", "rem", "min", "max"):
            yield one(f"{op}.{t}", t, t, t)
        yield one(f"sad.{t}", t, t, t, t)
    yield one("mad.hi.sat.s32", "s32", "s32", "s32", "s32")
    for t, part in product(("u32", "s32"), ("lo", "hi")):
        yield one(f"mul24.{part}.{t}", t, t, t)
        yield one(f"mad24.{part}.{t}", t, t, t, t)
    yield one("mad24.hi.sat.s32", "s32", "s32", "s32", "s32")
    for op, t in product(("abs", "neg"), ("s16", "s32", "s64")):
        yield one(f"{op}.{t}", t, t)
    for t in ("u32", "s32", "u64", "s64"):
        b = "b" + t[1:]
        yield Variant(
            f"add.cc+addc.{t}",
            f".reg .{b} t; add.cc.{t} t, %a, %b; addc.{t} %d, %c, 0;",
            (t, t, t),
            t,
        )
        yield Variant(
            f"sub.cc+subc.{t}",
            f".reg .{b} t; sub.cc.{t} t, %a, %b; subc.{t} %d, %c, 0;",
            (t, t, t),
            t,
        )
        yield Variant(
            f"addc.cc.{t}",
            f".reg .{b} t; add.cc.{t} t, %a, %b; addc.cc.{t} t, %c, %a; addc.{t} %d, t, 0;",
            (t, t, t),
            t,
        )
        yield Variant(
            f"subc.cc.{t}",
            f".reg .{b} t; sub.cc.{t} t, %a, %b; subc.cc.{t} t, %c, %a; subc.{t} %d, t, 0;",
            (t, t, t),
            t,
        )
        yield Variant(
            f"sub.cc+addc.{t}",
            f".reg .{b} t; sub.cc.{t} t, %a, %b; addc.{t} %d, %c, 0;",
            (t, t, t),
            t,
        )
        yield Variant(
            f"add.cc+subc.{t}",
            f".reg .{b} t; add.cc.{t} t, %a, %b; subc.{t} %d, %c, 0;",
            (t, t, t),
            t,
        )
        for part in ("lo", "hi"):
            yield Variant(
                f"mad.{part}.cc.{t}",
                f".reg .{b} t; mad.{part}.cc.{t} t, %a, %b, %c; addc.{t} %d, t, 0;",
                (t, t, t),
                t,
            )
            yield Variant(
                f"madc.{part}.{t}",
                f".reg .{b} t; add.cc.{t} t, %a, %b; madc.{part}.{t} %d, %a, %b, %c;",
                (t, t, t),
                t,
            )
            yield Variant(
                f"madc.{part}.cc.{t}",
                f".reg .{b} t; add.cc.{t} t, %a, %b; madc.{part}.cc.{t} t, %a, %b, %c; addc.{t} %d, t, 0;",
                (t, t, t),
                t,
            )


def _bits() -> Iterator[Variant]:
    for op, t in product(("popc", "clz"), ("b32", "b64")):
        yield one(f"{op}.{t}", "u32", t)
    for t in ("u32", "s32", "u64", "s64"):
        yield one(f"bfind.{t}", "u32", t)
        yield one(f"bfind.shiftamt.{t}", "u32", t)
        yield one(f"bfe.{t}", t, t, "u8", "u8")
    for t in ("b32", "b64"):
        yield one(f"brev.{t}", t, t)
        # bfi has four operands; position and length come from the halves of one word
        yield Variant(
            f"bfi.{t}",
            f".reg .b32 p, l; and.b32 p, %c, 0xff; bfe.u32 l, %c, 8, 8; bfi.{t} %d, %a, %b, p, l;",
            (t, t, "b32"),
            t,
        )
    yield one("fns.b32", "u32", "b32", "p5", "n5")
    for op, t in product(("and", "or", "xor"), ("b16", "b32", "b64")):
        yield one(f"{op}.{t}", t, t, t)
    for op, t in product(("not", "cnot"), ("b16", "b32", "b64")):
        yield one(f"{op}.{t}", t, t)
    for t in ("b16", "b32", "b64"):
        yield one(f"shl.{t}", t, t, "p7")
    for k, w in product("bus", ("16", "32", "64")):
        yield one(f"shr.{k}{w}", k + w, k + w, "p7")
    for side, mode in product("lr", ("clamp", "wrap")):
        yield one(f"shf.{side}.{mode}.b32", "b32", "b32", "b32", "p7")
    yield one("prmt.b32", "b32", "b32", "b32", "b32")
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield one(f"prmt.b32.{mode}", "b32", "b32", "b32", "b32")
    for t in ("b16", "b32", "b64", *WIDE, "f32", "f64"):
        yield Variant(f"selp.{t}", f".reg .pred p; setp.lt.s32 p, %c, 0; selp.{t} %d, %a, %b, p;", (t, t, "s32"), t)
        yield one(f"slct.{t}.s32", t, t, t, "s32")
        yield one(f"slct.{t}.f32", t, t, t, "f32")
        yield one(f"slct.ftz.{t}.f32", t, t, t, "f32")


def _floats() -> Iterator[Variant]:
    for op, f, s in product(("add", "sub", "mul"), ("", ".ftz"), ("", ".sat")):
        yield one(f"{op}{f}{s}.f32", "f32", "f32", "f32")
    for op in ("add", "sub", "mul"):
        yield one(f"{op}.f64", "f64", "f64", "f64")
    for r in ROUNDINGS:
        for f in ("", ".ftz"):
            for s in ("", ".sat"):
                for op in ("add", "sub", "mul"):
                    yield one(f"{op}.{r}{f}{s}.f32", "f32", "f32", "f32")
                for op in ("fma", "mad"):
                    yield one(f"{op}.{r}{f}{s}.f32", "f32", "f32", "f32", "f32")
            yield one(f"div.{r}{f}.f32", "f32", "f32", "f32")
            for op in ("rcp", "sqrt"):
                yield one(f"{op}.{r}{f}.f32", "f32", "f32")
        for op in ("add", "sub", "mul", "div"):
            yield one(f"{op}.{r}.f64", "f64", "f64", "f64")
        for op in ("fma", "mad"):
            yield one(f"{op}.{r}.f64", "f64", "f64", "f64", "f64")
        for op in ("rcp", "sqrt"):
            yield one(f"{op}.{r}.f64", "f64", "f64")
    for f in ("", ".ftz"):
        yield one(f"div.approx{f}.f32", "f32", "f32", "f32")
        yield one(f"div.full{f}.f32", "f32", "f32", "f32")
        for op in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"):
            yield one(f"{op}.approx{f}.f32", "f32", "f32")
        for op in ("abs", "neg"):
            yield one(f"{op}{f}.f32", "f32", "f32")
        for op in ("min", "max"):
            yield one(f"{op}{f}.f32", "f32", "f32", "f32")
        yield one(f"rsqrt.approx{f}.f64", "f64", "f64")
    yield one("rcp.approx.ftz.f64", "f64", "f64")
    for op in ("abs", "neg"):
        yield one(f"{op}.f64", "f64", "f64")
    for op in ("min", "max"):
        yield one(f"{op}.f64", "f64", "f64", "f64")
    for t in ("f32", "f64"):
        yield one(f"copysign.{t}", t, t, t)
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield _predicate(f"testp.{test}.{t}", (t,))


def _predicate(op: str, operands: tuple[str, ...]) -> Variant:
    places = ", ".join(("%a", "%b", "%c")[: len(operands)])
    return Variant(op, f".reg .pred p; {op} p, {places}; selp.u32 %d, 1, 0, p;", operands, "u32")


def comparisons(t: str) -> tuple[str, ...]:
    """The comparison operators PTX allows on a type."""
    if t[0] == "f":
        return FLOAT_COMPARISONS
    if t[0] == "b":
        return ("eq", "ne")
    return ("eq", "ne", "lt", "le", "gt", "ge") + (("lo", "ls", "hi", "hs") if t[0] == "u" else ())


def _compare() -> Iterator[Variant]:
    for t in ("b16", "b32", "b64", *WIDE, "f32", "f64"):
        for cmp, f in product(comparisons(t), ("", ".ftz") if t == "f32" else ("",)):
            for d in ("u32", "s32", "f32"):
                yield one(f"set.{cmp}{f}.{d}.{t}", d, t, t)
            two = "setp.{0} p|q, %a, %b{1}; selp.u32 %d, 1, 0, p; selp.u32 u, 2, 0, q; or.b32 %d, %d, u;"
            yield Variant(
                f"setp.{cmp}{f}.{t}",
                ".reg .pred p, q; .reg .b32 u; " + two.format(f"{cmp}{f}.{t}", ""),
                (t, t),
                "u32",
            )
            for boolean in ("and", "or", "xor"):
                yield Variant(
                    f"setp.{cmp}.{boolean}{f}.{t}",
                    ".reg .pred p, q, r; .reg .b32 u; setp.lt.s32 r, %c, 0; "
                    + two.format(f"{cmp}.{boolean}{f}.{t}", ", r"),
                    (t, t, "s32"),
                    "u32",
                )
                yield Variant(
                    f"set.{cmp}.{boolean}{f}.u32.{t}",
                    f".reg .pred r; setp.lt.s32 r, %c, 0; set.{cmp}.{boolean}{f}.u32.{t} %d, %a, %b, r;",
                    (t, t, "s32"),
                    "u32",
                )


def _convert() -> Iterator[Variant]:
    ints = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
    floats = ("f16", "f32", "f64")
    for d, s in product(ints, ints):
        yield one(f"cvt.{d}.{s}", d, s)
        yield one(f"cvt.sat.{d}.{s}", d, s)
    for r, d, s, sat in product(ROUNDINGS, floats, ints, ("", ".sat")):
        yield one(f"cvt.{r}{sat}.{d}.{s}", d, s)
    for r, d, s, sat in product(INTEGER_ROUNDINGS, ints, floats, ("", ".sat")):
        for f in ("", ".ftz") if s == "f32" else ("",):
            yield one(f"cvt.{r}{f}{sat}.{d}.{s}", d, s)
    for d, s, f, sat in product(floats, floats, ("", ".ftz"), ("", ".sat")):
        if f and "f32" not in (d, s):
            continue
        size = (int(d[1:]) > int(s[1:])) - (int(d[1:]) < int(s[1:]))
        for r in {-1: ROUNDINGS, 0: ("", *INTEGER_ROUNDINGS), 1: ("",)}[size]:
            yield one(f"cvt{'.' * bool(r)}{r}{f}{sat}.{d}.{s}", d, s)


def _video() -> Iterator[Variant]:
    selectors = ("b0", "b1", "b2", "b3", "h0", "h1")
    turn = 0
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for d, a, b, sat in product(("u32", "s32"), ("u32", "s32"), ("u32", "s32"), ("", ".sat")):
            types = f"{d}.{a}.{b}{sat}"
            sa, sb = selectors[turn % 6], selectors[(turn // 6 + 2) % 6]
            ds = selectors[turn % 6]
            second = ("add", "min", "max")[turn % 3]
            turn += 1
            yield one(f"{op}.{types}", d, a, b)
            yield Variant(f"{op}.{types}.sel", f"{op}.{types} %d, %a.{sa}, %b.{sb};", (a, b), d)
            yield Variant(f"{op}.{types}.{second}", f"{op}.{types}.{second} %d, %a.{sa}, %b.{sb}, %c;", (a, b, d), d)
            yield Variant(f"{op}.{types}.merge.{ds}", f"{op}.{types} %d.{ds}, %a.{sa}, %b.{sb}, %c;", (a, b, d), d)
    for op, d, a, mode, sat in product(
        ("vshl", "vshr"), ("u32", "s32"), ("u32", "s32"), ("clamp", "wrap"), ("", ".sat")
    ):
        types = f"{d}.{a}.u32{sat}.{mode}"
        sa = selectors[turn % 6]
        turn += 1
        yield one(f"{op}.{types}", d, a, "p7")
        yield Variant(f"{op}.{types}.sel", f"{op}.{types} %d, %a.{sa}, %b.b0;", (a, "p7"), d)
        yield Variant(f"{op}.{types}.add", f"{op}.{types}.add %d, %a.{sa}, %b, %c;", (a, "p7", d), d)
    for d, a, b in product(("u32", "s32"), ("u32", "s32"), ("u32", "s32")):
        for sat, scale in product(("", ".sat"), ("", ".shr7", ".shr15")):
            for na, nb, nc in (("", "", ""), ("-", "", ""), ("", "", "-")):
                types = f"{d}.{a}.{b}{sat}{scale}"
                yield Variant(
                    f"vmad.{types} {na}a{nb}b{nc}c", f"vmad.{types} %d, {na}%a, {nb}%b, {nc}%c;", (a, b, d), d
                )
            yield Variant(f"vmad.{types}.sel", f"vmad.{types} %d, %a.h1, %b.b2, %c;", (a, b, d), d)
            yield Variant(
                f"vmad.{d}.{a}.{b}.po{sat}{scale}",
                f"vmad.{d}.{a}.{b}.po{sat}{scale} %d, %a, %b, %c;",
                (a, b, d),
                d,
            )
    for a, b, cmp in product(("u32", "s32"), ("u32", "s32"), ("eq", "ne", "lt", "le", "gt", "ge")):
        yield one(f"vset.{a}.{b}.{cmp}", "u32", a, b)
        yield Variant(f"vset.{a}.{b}.{cmp}.add", f"vset.{a}.{b}.{cmp}.add %d, %a.h0, %b.b1, %c;", (a, b, "u32"), "u32")
        yield Variant(f"vset.{a}.{b}.{cmp}.merge", f"vset.{a}.{b}.{cmp} %d.b2, %a.b3, %b, %c;", (a, b, "u32"), "u32")
        for n in ("2", "4"):
            yield one(f"vset{n}.{a}.{b}.{cmp}", "u32", a, b, "u32")
            yield one(f"vset{n}.{a}.{b}.{cmp}.add", "u32", a, b, "u32")
    for n, op in product(("2", "4"), ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")):
        for d, a, b in product(("u32", "s32"), ("u32", "s32"), ("u32", "s32")):
            for sat in ("", ".sat"):
                yield one(f"{op}{n}.{d}.{a}.{b}{sat}", d, a, b, d)
            yield one(f"{op}{n}.{d}.{a}.{b}.add", d, a, b, d)
            mask, mix = ("h10", "h1"), ("h02", "h31")
            if n == "4":
                mask, mix = ("b3210", "b20"), ("b5310", "b7777")
            yield Variant(
                f"{op}{n}.{d}.{a}.{b}.mask.{mask[1]}",
                f"{op}{n}.{d}.{a}.{b} %d.{mask[1]}, %a.{mix[0]}, %b.{mix[1]}, %c;",
                (a, b, d),
                d,
            )


def variants() -> list[Variant]:
    """All forms, in a fixed order, names unique."""
    found = [*_arithmetic(), *_bits(), *_floats(), *_compare(), *_convert(), *_video()]
    assert len({v.name for v in found}) == len(found)
    return found


def mix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit finaliser (splitmix64's): the same bits on every NumPy, which a seeded generator does not promise."""
    with np.errstate(over="ignore"):
        x = (x + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _float_edges(bits: int) -> list[int]:
    e, m = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[bits]
    bias, one_ = (1 << (e - 1)) - 1, 1 << m
    top = ((1 << e) - 1) << m
    exponents = [
        1,
        2,
        bias - m - 1,
        bias - 25,
        bias - 1,
        bias,
        bias + 1,
        bias + 7,
        bias + 15,
        bias + 31,
        bias + 63,
        bias + m,
    ]
    exponents = sorted({x for x in exponents if 0 < x < (1 << e) - 1})
    values = [
        0,
        1,
        2,
        3,
        one_ // 2,
        one_ - 1,
        top,
        top + 1,
        top + one_ // 2,
        top + one_ // 2 + 5,
        top + one_ - 1,
        top - 1,
        top - 2,
    ]
    for x in exponents:
        values += [(x << m) + low for low in (0, 1, one_ // 2, one_ - 1)]
    return [v for x in values for v in (x, x | 1 << (bits - 1))]


def _integer_edges(bits: int) -> list[int]:
    values = [
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        31,
        32,
        33,
        63,
        64,
        0x7F,
        0x80,
        0xFF,
        0x100,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x10000,
    ]
    values += [
        0x7FFFFF,
        0x800000,
        0xFFFFFF,
        0x1000001,
        0x7FFFFFFF,
        0x80000000,
        0xFFFFFFFF,
        1 << 32,
        (1 << 53) + 1,
    ]
    values += [(1 << bits - 1) - 1, 1 << (bits - 1), (1 << bits) - 1, (1 << bits) - 2]
    every = {v & ((1 << bits) - 1) for x in values for v in (x, -x, ~x)}
    return sorted(every)


def inputs(kind: str, position: int, cases: int = CASES) -> NDArray[np.uint64]:
    """The bits operand `position` (0, 1, 2) of kind `kind` takes in each case, shape (cases,).

    About half are edge values, the rest random bits; floats also draw from a narrow range of exponents so that
    sums cancel and products round. 8- and 16-bit integer kinds keep random bits above their width, which an
    instruction must ignore. In an eighth of the cases operands 1 and 2 repeat operand 0's draw, so that equality is
    met. `p5` is 0..31; `p7` a shift amount, mostly 0..127 but at times any 32-bit value; `n5` is -16..15 as 32 bits.
    """
    bits = width(kind)
    index = np.arange(cases, dtype=np.uint64) * np.uint64(0x2545F4914F6CDD1D)
    draw = mix64(index ^ np.uint64(ord(kind[0]) << 16 | bits << 8 | position))
    if position:
        same = index ^ np.uint64(ord(kind[0]) << 16 | bits << 8)
        draw = np.where(mix64(~index) % np.uint64(8) == 0, mix64(same), draw)
    more = mix64(draw)
    choice = mix64(more) % np.uint64(8)
    if kind[0] == "p":
        small = draw % np.uint64(1 << bits)
        return small if bits == 5 else np.where(choice < 7, small, more & np.uint64(0xFFFFFFFF))
    if kind[0] == "n":
        return (draw % np.uint64(32) - np.uint64(16)) & np.uint64(0xFFFFFFFF)
    if kind[0] == "f":
        edges = np.array(_float_edges(bits), np.uint64)
        m = {16: 10, 32: 23, 64: 52}[bits]
        bias = {16: 15, 32: 127, 64: 1023}[bits]
        fraction = more & np.uint64((1 << m) - 1)
        near = (
            np.uint64(bias - 3) + draw % np.uint64(7) << np.uint64(m)
            | fraction
            | (more >> np.uint64(63)) << np.uint64(bits - 1)
        )
        anything = more & np.uint64((1 << bits) - 1) if bits < 64 else more
        picked = edges[(draw % np.uint64(len(edges))).astype(np.int64)]
        return np.where(choice < 4, picked, np.where(choice < 7, near, anything))
    edges = np.array(_integer_edges(bits), np.uint64)
    picked = edges[(draw % np.uint64(len(edges))).astype(np.int64)]
    if bits < 32:
        picked |= more & np.uint64((0xFFFFFFFF >> bits) << bits)
    return np.where(choice < 5, picked, more)
