"""Cases of the convolution: kernels 2 and 7 over positions, 11 over users' slots."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.build import Builder
from ssmtool.golden.case import GoldenCase
from ssmtool.golden.generator import ramp

Arrays = dict[str, NDArray[Any]]
Edit = Callable[[Arrays], None]
Makers = Iterator[tuple[str, Callable[[], GoldenCase]]]

ONE, SEQ, SLOTS = "fc_ssm_conv1d_silu", "fc_ssm_conv1d_silu_seq", "fc_ssm_conv1d_silu_slots"
_POLICY = "convolution"
_THREADS = 256


def sequence(
    name: str,
    title: str,
    *,
    channels: int,
    taps: int = 4,
    n: int,
    splits: Sequence[Sequence[int]] = (),
    single: bool = True,
    seq: bool = True,
    snaps: bool = False,
    edit: Edit | None = None,
    policy: str = _POLICY,
    exposes: Sequence[str] = (),
) -> GoldenCase:
    """Samples of one user: in one launch, in chunks, sample by sample."""
    b = Builder(f"convolution/{name}", title, exposes=exposes)
    kept = max(taps - 1, 1)  # a buffer has at least one element
    arrays = {
        "qkv": b.random.bell("qkv", (max(n, 1), channels)),
        "weight": b.random.bell("weight", (channels, taps), -1),
        "conv_state": b.random.bell("conv_state", (channels, kept)),
    }
    if edit is not None:
        edit(arrays)
    done = policy if n and not (taps > 4 and seq) else None
    b.given("qkv", arrays["qkv"], "t c")
    b.given("weight", arrays["weight"], "c tap")
    # Samples are copied, not computed: their bits are expected.
    b.given("conv_state", arrays["conv_state"], "c age", "exact" if done and taps > 1 else None)
    b.poison("out", (max(n, 1), channels), "t c", done)
    if snaps:
        b.poison("snaps", (max(n, 1), channels, kept), "t c age", "exact" if done else None)
    blocks = -(-channels // _THREADS)

    def chunk(run: str, start: int, length: int) -> None:
        at = min(start, max(n - 1, 0))
        image = ("snaps", at * channels * kept) if snaps else None
        b.launch(run, SEQ, (blocks,), _THREADS, 0, ("qkv", at * channels), "weight", "conv_state",
                 ("out", at * channels), channels, taps, length, image)  # fmt: skip

    if seq:
        chunk(SEQ, 0, n)
    for split in splits:
        start = 0
        for length in split:
            chunk(f"{SEQ} {'+'.join(map(str, split))}", start, length)
            start += length
    for t in range(n if single and not snaps and (taps <= 4 or not seq) else 0):
        row = t * channels
        for kernel, grid in ((ONE, (blocks,)), (SLOTS, (blocks, 1))):
            b.launch(f"{kernel} x {n}", kernel, grid, _THREADS, 0, ("qkv", row), "weight", "conv_state", ("out", row),
                     channels, taps)  # fmt: skip
    return b.case()


def users(
    name: str, title: str, *, count: int, channels: int, taps: int = 4, launched: int = 0, fresh: Sequence[int] = (),
    exposes: Sequence[str] = (),
) -> GoldenCase:  # fmt: skip
    """One sample of `count` users' slots, of which `launched` (all) are worked on."""
    b = Builder(f"convolution-slots/{name}", title, exposes=exposes)
    state = b.random.bell("conv_state", (count, channels, taps - 1))
    state[list(fresh)] = 0
    b.given("qkv", b.random.bell("qkv", (count, channels)), "user c")
    b.given("weight", b.random.bell("weight", (channels, taps), -1), "c tap")
    b.given("conv_state", state, "user c age", "exact")
    b.poison("out", (count, channels), "user c", _POLICY, group="user")
    blocks, worked = -(-channels // _THREADS), launched or count
    b.launch(SLOTS, SLOTS, (blocks, worked), _THREADS, 0, "qkv", "weight", "conv_state", "out", channels, taps)
    for user in range(worked):
        row = user * channels
        b.launch(f"{ONE} x {worked}", ONE, (blocks,), _THREADS, 0, ("qkv", row), "weight",
                 ("conv_state", row * (taps - 1)), ("out", row), channels, taps)  # fmt: skip
    return b.case()


def far_slots() -> GoldenCase:
    """The last slot's history begins past element 2^31; a long filter keeps the samples few."""
    channels, taps = 1100, 32
    per_slot = channels * (taps - 1)
    edge = -(-(2**31) // per_slot)
    at = (0, -(-(2**30) // per_slot), edge - 1, edge)
    b = Builder(
        "convolution-slots/past-2-to-the-31",
        f"slot {edge} begins at element {edge * per_slot}: 8 GiB of history; offsets need 64 bits",
    )
    count = edge + 1
    b.given("qkv", b.random.bell("qkv", (len(at), channels)), "user c", rows=count, at=at)
    b.given("weight", b.random.bell("weight", (channels, taps), -1), "c tap")
    b.given("conv_state", b.random.bell("conv_state", (len(at), channels, taps - 1)), "user c age", "exact",
            rows=count, at=at)  # fmt: skip
    b.poison("out", (count, channels), "user c", _POLICY, group="user", at=at)
    grid = (-(-channels // _THREADS), count)
    b.launch(SLOTS, SLOTS, grid, _THREADS, 0, "qkv", "weight", "conv_state", "out", channels, taps)
    return b.case()


def _odd(arrays: Arrays) -> None:
    arrays["qkv"][0, 0], arrays["qkv"][1, 1], arrays["qkv"][1, 2] = np.nan, np.inf, -np.inf
    arrays["conv_state"][3, 1] = np.nan
    arrays["weight"][:6] = np.abs(arrays["weight"][:6])


def _denormal(arrays: Arrays) -> None:
    for name in ("qkv", "conv_state"):
        arrays[name] *= np.float32(2.0**-128)


def _steep(arrays: Arrays) -> None:
    """Sums from -200 to 200: silu ends as -0 where exp overflows, and as x itself."""
    channels = arrays["weight"].shape[0]
    arrays["weight"][...], arrays["conv_state"][...] = 0, 0
    arrays["weight"][:, -1] = 1
    arrays["qkv"][...] = ramp(-200, 200, channels)


def makers() -> Makers:
    """Name and maker of every case here."""
    part = functools.partial

    def seq(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"convolution/{name}", part(sequence, name, title, **options)

    def slot(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"convolution-slots/{name}", part(users, name, title, **options)

    wrong = ("taps-flipped", "silu-missing")
    yield seq("reference-t1", "the model's dimensions, one token", channels=8192, n=1, exposes=wrong)
    yield seq("reference-t4", "the model's dimensions, 4 tokens, snapshots", channels=8192, n=4, snaps=True,
              splits=[(1, 3)], exposes=("snapshot-before", "taps-flipped"))  # fmt: skip
    splits = {
        2: [(1, 1)],
        3: [(1, 2), (2, 1), (1, 1, 1)],
        4: [(1, 3), (2, 2), (3, 1), (4, 0)],
        17: [(1, 2, 14), (16, 1)],
        128: [(1, 127), (126, 2)],
    }
    for n in (0, 1, 2, 3, 4, 17, 128):
        exposes = {0: ("zero-length-writes",), 1: ("history-from-prompt",), 2: ("history-from-prompt",)}.get(n, wrong)
        yield seq(f"t{n}", f"{n} tokens, a last block partly filled", channels=300, n=n, splits=splits.get(n, []),
                  exposes=exposes)  # fmt: skip
    for taps in (1, 2, 3):
        yield seq(f"k{taps}-t5", f"a filter of {taps}", channels=70, taps=taps, n=5, splits=[(1, 4), (3, 2)],
                  exposes=("taps-flipped",) if taps > 1 else ("silu-missing",))  # fmt: skip
    for taps in (5, 8, 32):
        yield seq(f"k{taps}-t3", f"a filter of {taps}, sample by sample", channels=70, taps=taps, n=3, seq=False,
                  exposes=("taps-flipped", "history-stale"))  # fmt: skip
    yield seq("guard-k5", "the sequence kernel holds 4 taps: of 5 it writes nothing", channels=70, taps=5, n=2,
              snaps=True, exposes=("guard-missing",))  # fmt: skip
    yield seq("snapshots", "the history after each token", channels=70, n=5, snaps=True, splits=[(1, 4), (2, 3)],
              exposes=("snapshot-before", "snapshots-reversed"))  # fmt: skip
    yield seq("c1", "one channel", channels=1, n=3, exposes=("taps-flipped",))
    yield seq("mistake-taps-flipped", "the newest sample has the last tap", channels=2, n=1, exposes=("taps-flipped",))
    yield seq(
        "mistake-short-prompt",
        "2 tokens, in one and one by one: older history is kept",
        channels=3,
        n=2,
        splits=[(1, 1)],
        exposes=("history-from-prompt", "history-stale", "history-activated", "history-newest-first", "channel-major"),
    )
    yield seq("odd-values", "NaN and infinities stay in their channels; silu(-inf) is NaN", channels=8, n=3, edit=_odd,
              exposes=("nan-spread",))  # fmt: skip
    yield seq("denormal", "subnormal samples", channels=40, n=2, edit=_denormal, exposes=("subnormals-flushed",))
    yield seq("steep", "silu from -200 to 200", channels=400, n=1, edit=_steep, policy="elementwise",
              exposes=("silu-missing",))  # fmt: skip
    mixed = ("slot-0-for-all", "slots-shifted")
    for count in (1, 3, 32):
        yield slot(f"k{count}", f"{count} users", count=count, channels=90, exposes=mixed if count > 1 else wrong)
    yield slot("reference-k3", "the model's dimensions, three users", count=3, channels=8192, exposes=mixed)
    yield slot("mistake-reused-slot", "a new user in slot 1: no history", count=2, channels=3, fresh=[1], exposes=mixed)
    yield slot("mistake-padding", "2 of 3 slots launched: the third keeps its history", count=3, channels=5, launched=2,
               exposes=("all-slots",))  # fmt: skip
    yield "convolution-slots/past-2-to-the-31", part(far_slots)
