"""Cases of kernel 18: the decode step from the projections to the gated output, for one user and for users' slots.

Most begin with a state and a history of zeros, as a new user does, and go on for a second token: a state of 128 x 128 a
head is most of such a file, and so it is there once. Where the model's dimensions would make it large all the same, the
state after the second token is not compared: a wrong one after the first shows in the second's output.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.build import Builder
from ssmtool.golden.case import GoldenCase
from ssmtool.golden.generator import ramp

Arrays = dict[str, NDArray[Any]]
Edit = Callable[[Arrays], None]
Makers = Iterator[tuple[str, Callable[[], GoldenCase]]]

STEP = "fc_ssm_decode_step"
_POLICY = "recurrence"
_TAPS = 4
_SIZE = 128
_EPS = 1e-6
# Names of the buffers in the order of the arguments, and the axes of each, without time.
_BUFFERS = {
    "s": "user h j i",
    "qkv": "user c",
    "conv_weight": "c tap",
    "conv_state": "user c age",
    "alpha": "user h",
    "ssm_dt": "h",
    "ssm_a": "h",
    "beta": "user h",
    "z": "user h j",
    "norm_weight": "j",
    "gated": "user h j",
}
_OF_TOKEN = ("qkv", "alpha", "beta", "z", "gated")
_USUAL = ("history-before-use", "beta-raw", "scale-missing", "gate-sigmoid", "state-not-written", "dt-missing")


def inputs(
    b: Builder, lead: tuple[int, ...], key_heads: int, groups: int, *, size: int = _SIZE, taps: int = _TAPS
) -> Arrays:
    """What the projections of a model give, and its weights; `lead` are the axes of tokens and users.

    k is near q: of a state of zeros the first output is (q k) times v, and a q k that nearly cancels would be normed to
    the same length as any other.
    """
    heads, key_dim = key_heads * groups, key_heads * size
    channels = 2 * key_dim + heads * size
    arrays = {
        "qkv": b.random.bell("qkv", (*lead, channels)),
        "conv_weight": b.random.bell("conv_weight", (channels, taps), -1),
        "alpha": b.random.bell("alpha", (*lead, heads), 1),
        "ssm_dt": b.random.bell("ssm_dt", (heads,)),
        "ssm_a": b.random.uniform("ssm_a", (heads,), -4.0, -0.01),
        "beta": b.random.bell("beta", (*lead, heads), 1),
        "z": b.random.bell("z", (*lead, heads, size)),
        "norm_weight": b.random.bell("norm_weight", (size,)),
    }
    q, k = slice(0, key_dim), slice(key_dim, 2 * key_dim)
    arrays["qkv"][..., k] = arrays["qkv"][..., q] + arrays["qkv"][..., k] / 4
    arrays["conv_weight"][k] = arrays["conv_weight"][q]
    return arrays


def decode(
    name: str,
    title: str,
    *,
    key_heads: int,
    groups: int,
    users: int = 1,
    launched: int = 0,
    tokens: int = 2,
    given: bool = False,
    fresh: Sequence[int] = (),
    compared: bool = True,
    blocks: Sequence[int] = (512,),
    separate: bool = False,
    norm_eps: float = _EPS,
    edit: Edit | None = None,
    exposes: Sequence[str] = (),
    **own: str,
) -> GoldenCase:
    """Tokens one after the other, of `users` at a time, of which `launched` (all) are worked on.

    `given`: there are a state and a history before; those of the users `fresh` are zero. `compared`: the state after.
    `blocks`: threads, a run each. `separate`: one more run, with a launch for each user.
    """
    b = Builder(f"decode-step/{name}", title, exposes=exposes, n_k_heads=key_heads, **own)
    arrays = inputs(b, (tokens, users), key_heads, groups)
    heads, channels = key_heads * groups, arrays["qkv"].shape[-1]
    states = {"s": (users, heads, _SIZE, _SIZE), "conv_state": (users, channels, _TAPS - 1)}
    if given:
        arrays |= {each: b.random.bell(each, shape, -2) for each, shape in states.items()}
        for each in states:
            arrays[each][list(fresh)] = 0
    if edit is not None:
        edit(arrays)
    for each, shape in states.items():
        policy, group = (_POLICY, "user h") if each == "s" else ("exact", "")
        if given:
            b.given(each, arrays[each], _BUFFERS[each], policy, group=group)
        elif compared or each != "s":
            b.zero(each, shape, _BUFFERS[each], policy, group=group)
        else:
            b.scratch(each, shape, _BUFFERS[each])
    for each, axes in _BUFFERS.items():
        if each in arrays and each not in states:
            b.given(each, arrays[each], f"t {axes}" if each in _OF_TOKEN else axes)
    b.poison("gated", (tokens, users, heads, _SIZE), "t user h j", _POLICY, group="t user h")
    sizes = (key_heads, groups, _SIZE, _TAPS, 1 / math.sqrt(_SIZE), _EPS, norm_eps)
    worked = launched or users

    def launch(run: str, token: int, first: int, count: int, threads: int) -> None:
        at = {each: (token * users + first) * math.prod(arrays[each].shape[2:]) for each in _OF_TOKEN[:-1]}
        at["gated"] = at["z"]
        at |= {each: first * math.prod(shape[1:]) for each, shape in states.items()}
        b.launch(run, STEP, (key_heads, count), threads, _shared(groups),
                 *((each, at.get(each, 0)) for each in _BUFFERS), *sizes)  # fmt: skip

    for token in range(tokens):
        for threads in blocks:
            launch(STEP if threads == 512 else f"{STEP} ({threads} threads)", token, 0, worked, threads)
        for user in range(worked if separate else 0):
            launch(f"{STEP} x {worked}", token, user, 1, 512)
    return b.case()


def _shared(groups: int, size: int = _SIZE) -> int:
    return (2 + 2 * groups) * size


def in_place() -> GoldenCase:
    """The output takes the place of z."""
    b = Builder("decode-step/in-place", "gated is z: each element is read before it is written", n_k_heads=1)
    arrays = inputs(b, (1,), 1, 1)
    b.zero("s", (1, 1, _SIZE, _SIZE), _BUFFERS["s"], _POLICY, group="user h")
    b.zero("conv_state", (1, 3 * _SIZE, _TAPS - 1), _BUFFERS["conv_state"], "exact")
    for each, axes in _BUFFERS.items():
        if each in arrays:
            b.given(each, arrays[each], axes, _POLICY if each == "z" else None, group="user h")
    names = ["z" if each == "gated" else each for each in _BUFFERS]
    b.launch(STEP, STEP, (1, 1), 512, _shared(1), *names, 1, 1, _SIZE, _TAPS, 1 / math.sqrt(_SIZE), _EPS, _EPS)
    return b.case()


def guard(name: str, title: str, *, size: int = _SIZE, taps: int = _TAPS) -> GoldenCase:
    """Another state size or filter than the kernel is made for: it must return at once."""
    b = Builder(f"decode-step/{name}", title, exposes=("guard-missing",), n_k_heads=1)
    arrays = inputs(b, (1,), 1, 1, size=size, taps=taps)
    b.zero("s", (1, 1, size, size), _BUFFERS["s"])
    b.zero("conv_state", (1, 3 * size, taps - 1), _BUFFERS["conv_state"])
    for each, axes in _BUFFERS.items():
        if each in arrays:
            b.given(each, arrays[each], axes)
    b.poison("gated", (1, 1, size), _BUFFERS["gated"])
    sizes = (1, 1, size, taps, 1 / math.sqrt(size), _EPS, _EPS)
    b.launch(STEP, STEP, (1, 1), 512, _shared(1, size), *_BUFFERS, *sizes)
    return b.case()


def far_slots() -> GoldenCase:
    """The last slot's state begins past element 2^31; only that slot is in the file."""
    key_heads, groups = 1, 3
    per_slot = groups * _SIZE * _SIZE
    edge = -(-(2**31) // per_slot)
    count, at = edge + 1, (edge,)
    b = Builder(
        "decode-step/past-2-to-the-31",
        f"slot {edge} begins at element {edge * per_slot}: 8 GiB of state; offsets need 64 bits",
        n_k_heads=key_heads,
    )
    arrays = inputs(b, (len(at),), key_heads, groups)
    channels = arrays["qkv"].shape[-1]
    b.zero("s", (count, groups, _SIZE, _SIZE), _BUFFERS["s"], _POLICY, group="user h", at=at)
    b.zero("conv_state", (count, channels, _TAPS - 1), _BUFFERS["conv_state"], "exact", at=at)
    for each, axes in _BUFFERS.items():
        if each in arrays:
            slots = {"rows": count, "at": at} if axes.startswith("user") else {}
            b.given(each, arrays[each], axes, **slots)  # type: ignore[arg-type]
    b.poison("gated", (count, groups, _SIZE), _BUFFERS["gated"], _POLICY, group="user h", at=at)
    b.launch(STEP, STEP, (key_heads, count), 512, _shared(groups), *_BUFFERS, key_heads, groups, _SIZE, _TAPS,
             1 / math.sqrt(_SIZE), _EPS, _EPS)  # fmt: skip
    return b.case()


def _odd(arrays: Arrays) -> None:
    """Two K-heads with two V-heads each: what is not a number stays where the formulas leave it."""
    qkv, v = arrays["qkv"], 4 * _SIZE
    qkv[0, 0, v + 3] = np.nan  # row 3 of V-head 0: its state's row, its head's output
    qkv[0, 0, v + _SIZE + 5] = np.inf  # row 5 of V-head 1
    arrays["alpha"][0, 0, 2] = np.inf  # softplus is infinite, the decay 0: a state of zeros stays finite
    arrays["z"][0, 0, 3, 7] = np.nan  # one element of V-head 3
    arrays["conv_weight"][[v + 3, v + _SIZE + 5]] = np.abs(arrays["conv_weight"][[v + 3, v + _SIZE + 5]])


def _odd_users(arrays: Arrays) -> None:
    """Two users, the first with nothing but NaN, infinities in k, and gates of NaN."""
    arrays["qkv"][0, 0, :_SIZE] = np.nan
    arrays["qkv"][0, 0, _SIZE] = np.inf
    arrays["alpha"][1, 0, 0] = arrays["beta"][0, 0, 0] = np.nan


def _denormal(arrays: Arrays) -> None:
    """Subnormal v, its history and state: the output is subnormal before the norm, and has bits enough to be normed."""
    arrays["qkv"][..., 2 * _SIZE :] *= np.float32(2.0**-124)
    arrays["conv_state"][:, 2 * _SIZE :] *= np.float32(2.0**-124)
    arrays["s"] *= np.float32(2.0**-124)


def _small_norms(arrays: Arrays) -> None:
    """Norms of q and k from 1e-2 to 1e-8, and one token without any; v as it is."""
    for token, exponent in enumerate((-10, -20, -24, -27, -31)):
        arrays["qkv"][token, :, : 2 * _SIZE] *= np.float32(2.0**exponent)
    arrays["qkv"][5, :, : 2 * _SIZE] = 0
    arrays["conv_weight"][: 2 * _SIZE, :3] = 0  # each token by itself


def _small_outputs(arrays: Arrays) -> None:
    """Values so small that eps counts in the gated norm."""
    arrays["qkv"][..., 2 * _SIZE :] *= np.float32(2.0**-9)


def _set(values: Mapping[str, float]) -> Edit:
    """Whole arrays to one value."""

    def edit(arrays: Arrays) -> None:
        for name, value in values.items():
            arrays[name][...] = value

    return edit


def _steep(arrays: Arrays) -> None:
    """Gates where exp and softplus leave fp32, z and beta likewise."""
    tokens = arrays["alpha"].shape[0]
    arrays["alpha"][:, 0, 0] = ramp(-120, 120, tokens)
    arrays["ssm_dt"][...], arrays["ssm_a"][...] = 0, -0.01  # else the decay is 0 with the branch and without
    arrays["beta"][:, 0, 0] = ramp(120, -20, tokens)
    arrays["z"][...] = ramp(-120, 120, _SIZE)


def makers() -> Makers:
    """Name and maker of every case here."""
    part = functools.partial

    def step(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"decode-step/{name}", part(decode, name, title, **options)

    model: dict[str, Any] = {"key_heads": 16, "groups": 2}
    one: dict[str, Any] = {"key_heads": 1, "groups": 1}
    heads = ("grouped-heads", "gate-heads-grouped", "values-grouped")
    slots = ("slot-0-for-all", "slots-shifted")
    yield step("reference-k1", "the model's dimensions, the first two tokens of a new user", exposes=(*_USUAL, *heads),
               **model)  # fmt: skip
    yield step("reference-k3", "the model's dimensions, the first two tokens of three users", users=3, compared=False,
               separate=True, exposes=(*heads, *slots, "gate-heads-divided"), **model)  # fmt: skip
    yield step(
        "mistake-grouped-heads",
        "4 V-heads of 2 K-heads: grouped pairs agree in the first and last head only",
        key_heads=2,
        groups=2,
        exposes=(*heads, "qk-swapped", "taps-flipped", "state-read-transposed", "state-transposed"),
    )
    yield step("groups-of-3", "3 V-heads of one K-head, in blocks of 512 and of 128 threads", key_heads=1, groups=3,
               blocks=(512, 128), compared=False,
               exposes=("l2-instead-of-rms", "weight-plus-one", *_USUAL))  # fmt: skip
    yield step("k3", "three users, all at once and one by one", users=3, compared=False, separate=True, exposes=slots,
               **one)  # fmt: skip
    yield step("mistake-reused-slot", "a new user in slot 1: no state, no history", users=2, tokens=1, given=True,
               fresh=[1], separate=True,
               exposes=(*slots, "state-reset", "history-stale", "history-newest-first", "history-activated"),
               **one)  # fmt: skip
    yield step("mistake-padding", "1 of 2 slots launched: the other keeps state and history, its output is not written",
               users=2, launched=1, exposes=("all-slots",), **one)  # fmt: skip
    yield "decode-step/in-place", part(in_place)
    yield step("mistake-eps", "q and k of norms from 1e-2 to 1e-8 and 0 tell the forms of eps apart", tokens=6,
               norm_eps=1e-5, edit=_small_norms,
               exposes=("l2-rsqrt-eps", "l2-eps-added", "l2-eps-squared", "l2-no-eps"), **one)  # fmt: skip
    yield step("mistake-norm-eps", "outputs of about 1e-4, another eps than that of q and k", norm_eps=1e-5,
               compared=False, edit=_small_outputs, exposes=("rms-eps-missing", "norm-eps-of-qk"), **one)  # fmt: skip
    yield step("mistake-gates", "softplus, sigmoid and silu from -120 to 120", tokens=8, compared=False, edit=_steep,
               exposes=("softplus-no-branch", "softplus-missing", "beta-raw"), **one)  # fmt: skip
    yield step("strong-decay", "g of about -26 for 4 tokens: nothing is left but the newest", tokens=4, compared=False,
               edit=_set({"alpha": 26.0, "ssm_a": -1.0, "ssm_dt": 0.0}), exposes=("decay-missing",), **one)  # fmt: skip
    yield step("denormal", "subnormal v, its history, and state", tokens=1, given=True, edit=_denormal,
               exposes=("subnormals-flushed",), **one)  # fmt: skip
    yield step("odd-values", "NaN and infinities stay in their row, element or head", key_heads=2, groups=2, tokens=1,
               edit=_odd, exposes=("nan-spread",))  # fmt: skip
    yield step("odd-users", "NaN and infinities stay with their user", users=2, compared=False, edit=_odd_users,
               exposes=("nan-spread",), **one)  # fmt: skip
    yield "decode-step/guard-s64", part(guard, "guard-s64", "S = 64: nothing is written", size=64)
    yield "decode-step/guard-k3", part(guard, "guard-k3", "a filter of 3: nothing is written", taps=3)
    yield "decode-step/past-2-to-the-31", part(far_slots)
