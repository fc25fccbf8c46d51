"""Every scalar numeric instruction form of PTX ISA 7.4 that sm_37 may have, as data.

A `Variant` is one PTX body line with `%d`, `%a`, `%b`, `%c` for its result and operands and a kind for each
(`f32`, `s64`, `b16`, `pred`, ...). `ssmtool probe` turns them into kernels and compares a card's answers with the
executor's arithmetic; `tools/numerics/measure_h200.py` recorded an H200's, and the tests hold the emitters against
those. Forms that ptxas rejects for sm_37 are in here too: the rejection is recorded, which is how the list was proved
complete rather than trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

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


def register(kind: str) -> str:
    """The raw register class an operand of a kind lives in: `b16`, `b32` or `b64`."""
    bits = width(kind)
    return "b64" if bits == 64 else "b16" if bits == 16 else "b32"


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
    return found
