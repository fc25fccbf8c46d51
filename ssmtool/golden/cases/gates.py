"""Cases of the element-wise kernels: sigmoid (4), decay gate (5 and 14)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.build import Builder
from ssmtool.golden.case import GoldenCase
from ssmtool.golden.generator import ramp

Makers = Iterator[tuple[str, Callable[[], GoldenCase]]]
Array = NDArray[Any]

SIGMOID, ONE, MANY = "fc_sigmoid", "fc_ssm_decay_gate", "fc_ssm_decay_gate_nx"
_POLICY = "elementwise"
_THREADS = 256

_EDGES = (
    0.0,
    -0.0,
    1e-40,
    -1e-40,
    1e-8,
    -1e-8,
    0.5,
    -0.5,
    16.0,
    -16.0,
    17.5,
    87.0,
    -87.0,
    88.7,
    -88.7,
    88.8,
    -88.8,
    104.0,
    -104.0,
    1e30,
    -1e30,
    np.inf,
    -np.inf,
    np.nan,
    3.4e38,
    -3.4e38,
)
# About 20, where softplus becomes its argument, and 88.7, where exp leaves fp32.
_ARGUMENTS = (
    0.0,
    1.0,
    -1.0,
    19.0,
    19.999998,
    20.0,
    20.000002,
    21.0,
    50.0,
    88.0,
    89.0,
    200.0,
    -10.0,
    -20.0,
    -50.0,
    -87.5,
    -95.0,
    -103.0,
    -104.0,
    -200.0,
    1e30,
    -1e30,
)


def sigmoid(
    name: str, title: str, *, values: Sequence[float] = (), room: int = 0, n: int, exposes: Sequence[str] = ()
) -> GoldenCase:
    """Elements in place, in a buffer with room for more."""
    b = Builder(f"sigmoid/{name}", title, exposes=exposes)
    x = np.array(values, np.float32) if values else b.random.bell("x", (max(n, room, 1),), 2)
    b.given("x", x, "i", _POLICY if n else None)
    b.launch(SIGMOID, SIGMOID, (max(-(-n // _THREADS), 1),), _THREADS, 0, "x", n)
    return b.case()


def gate(
    name: str,
    title: str,
    *,
    heads: int,
    n: int = 1,
    many: bool = False,
    alpha: Array | None = None,
    a: Array | None = None,
    dt: Array | None = None,
    nothing: bool = False,
    exposes: Sequence[str] = (),
) -> GoldenCase:
    """Positions of all heads. ssm_a is -exp(A_log), as the model file has it."""
    own = {"own_rule": "exp(-200) is 0 in fp32"} if a is not None and np.isinf(a).any() else {}
    b = Builder(f"decay-gate/{name}", title, exposes=exposes, **own)
    b.given("alpha", b.random.bell("alpha", (n, heads), 1) if alpha is None else alpha.reshape(n, heads), "t h")
    b.given("ssm_dt", b.random.bell("ssm_dt", (heads,)) if dt is None else dt, "h")
    b.given("ssm_a", b.random.uniform("ssm_a", (heads,), -4.0, -0.01) if a is None else a, "h")
    b.poison("g", (n, heads), "t h", None if nothing else _POLICY)
    names, total = ("alpha", "ssm_dt", "ssm_a", "g"), 0 if nothing else n * heads
    grid = (max(-(-total // _THREADS), 1),)
    if not many:
        b.launch(ONE, ONE, grid, _THREADS, 0, *names, total)
    b.launch(MANY, MANY, grid, _THREADS, 0, *names, heads, total)
    return b.case()


def makers() -> Makers:
    """Name and maker of every case here."""
    part = functools.partial

    def sig(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"sigmoid/{name}", part(sigmoid, name, title, **options)

    def dec(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"decay-gate/{name}", part(gate, name, title, **options)

    yield sig("reference", "the model's 32 heads", n=32, exposes=("sigmoid-of-minus",))
    for n in (1, 255, 256, 257, 1000):
        yield sig(f"n{n}", f"{n} elements", n=n, exposes=("sigmoid-of-minus",))
    yield sig("n0", "no elements: nothing is touched", n=0, room=4, exposes=("zero-length-writes",))
    yield sig("part", "100 of 300 elements: the others stay", n=100, room=300)
    yield sig("edges", "zeros, subnormals, infinities, NaN, and where exp overflows", values=_EDGES, n=len(_EDGES),
              exposes=("sigmoid-of-minus",))  # fmt: skip

    usual = ("a-log", "softplus-missing", "dt-missing")
    yield dec("reference", "the model's 32 heads, one token", heads=32, exposes=usual)
    yield dec("reference-n17", "the model's 32 heads, 17 tokens", heads=32, n=17, many=True,
              exposes=("gate-heads-divided", *usual))  # fmt: skip
    for heads, n in ((1, 1), (3, 2), (5, 3), (7, 128)):
        yield dec(f"h{heads}-n{n}", f"{heads} heads, {n} tokens", heads=heads, n=n, many=n > 1, exposes=("dt-missing",))
    yield dec("n0", "no positions: nothing is written", heads=3, nothing=True, exposes=("zero-length-writes",))
    count = len(_ARGUMENTS)
    zeros, ones = np.zeros(count, np.float32), np.full(count, -1, np.float32)
    yield dec("mistake-softplus", "above 20 softplus is its argument: exp(89) is infinite", heads=count,
              alpha=np.array(_ARGUMENTS, np.float32), dt=zeros, a=ones,
              exposes=("softplus-no-branch", "softplus-missing"))  # fmt: skip
    yield dec(
        "mistake-infinite-a",
        "A_log = 100 makes ssm_a infinite; times softplus(-200), which is 0, it is NaN",
        heads=3,
        alpha=np.array([-200, -1, 89], np.float32),
        dt=np.zeros(3, np.float32),
        a=np.array([-np.inf, -np.inf, -1], np.float32),
        exposes=("nan-to-zero", "softplus-no-branch"),
    )
    yield dec(
        "odd-values",
        "NaN stays in its head; ssm_dt moves alpha across 20",
        heads=4,
        n=2,
        many=True,
        alpha=np.array([np.nan, 1, np.inf, 15, 0, 2, -np.inf, 5], np.float32),
        dt=np.array([0, 1, 0, 10], np.float32),
        a=np.array([-1, -2, -3, -4], np.float32),
        exposes=("nan-spread", "dt-missing"),
    )
    yield dec("denormal", "softplus of about e^-90 is subnormal", heads=8,
              alpha=ramp(-102, -87, 8), dt=np.zeros(8, np.float32),
              a=np.full(8, -1, np.float32), exposes=("subnormals-flushed",))  # fmt: skip
