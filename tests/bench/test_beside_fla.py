"""The file for flash-linear-attention, over numpy in place of torch: shapes, the state's layouts, a second run."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ssmtool.bench.beside import Task, fla
from ssmtool.bench.beside.difference import differences
from ssmtool.bench.cases import Group, decode, prefill, token

HEADS = 2


class Tensor:
    """As much of torch's as the file uses, over an array."""

    def __init__(self, array: Any, **_: Any) -> None:
        self.array = np.asarray(array, np.float32)

    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.array.reshape(shape))

    def transpose(self, *axes: int) -> Tensor:
        return Tensor(np.swapaxes(self.array, *axes))

    def contiguous(self) -> Tensor:
        return Tensor(self.array.copy())

    clone = contiguous

    def copy_(self, other: Tensor) -> None:
        self.array[...] = other.array

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.array


def rule(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, scale: float, initial_state: Tensor,
         output_final_state: bool, state_v_first: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gated delta rule by its formula in float64; the state is [batch, head, key, value] unless value is first."""
    assert output_final_state
    batch, length, heads, size = q.array.shape
    assert initial_state.array.shape == (batch, heads, size, size)
    axes = "bhvk" if state_v_first else "bhkv"
    s = initial_state.array.astype(np.float64)
    o = np.empty(v.array.shape)
    for t in range(length):
        s = s * np.exp(g.array[:, t].astype(np.float64))[:, :, None, None]
        delta = beta.array[:, t, :, None] * (v.array[:, t] - np.einsum(f"{axes},bhk->bhv", s, k.array[:, t]))
        s = s + np.einsum(f"bhk,bhv->{axes}", k.array[:, t], delta)
        o[:, t] = scale * np.einsum(f"{axes},bhk->bhv", s, q.array[:, t])
    return Tensor(o), Tensor(s)


@pytest.fixture(autouse=True)
def _numpy_for_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = SimpleNamespace(tensor=Tensor, float32=np.float32, device=lambda *_: None, no_grad=contextlib.nullcontext)
    rules = SimpleNamespace(fused_recurrent_gated_delta_rule=rule, chunk_gated_delta_rule=rule)
    monkeypatch.setattr(fla, "_libraries", lambda: (torch, rules))
    monkeypatch.setattr(fla.importlib, "import_module", lambda _: SimpleNamespace())


def task(group: Group) -> Task:
    return Task(
        group.kind, group.positions, group.users, group.heads, group.size, group.scale, group.snapshots, group.make(), 0
    )


def expected(inputs: Any, users: int) -> dict[str, Any]:
    """Ours: rows of the state are values, users are slots."""
    s = inputs["s"].astype(np.float64).reshape(users, HEADS, 128, 128)
    steps = len(inputs["g"]) // users
    y = np.empty(inputs["v"].shape)
    for user in range(users):
        for head in range(HEADS):
            for at in range(user * steps, (user + 1) * steps):
                row = s[user, head] * np.exp(float(inputs["g"][at, head]))
                delta = (inputs["v"][at, head] - row @ inputs["k"][at, head]) * inputs["beta"][at, head]
                s[user, head] = row + np.outer(delta, inputs["k"][at, head])
                y[at, head] = 128**-0.5 * (s[user, head] @ inputs["q"][at, head])
    return {"y": y.astype(np.float32), "s": s.astype(np.float32).reshape(inputs["s"].shape)}


@pytest.mark.parametrize(("group", "users", "peers"), [(prefill(3, HEADS), 1, 3), (decode(3, HEADS), 3, 2)])
def test_both_layouts_of_the_state_give_our_outputs(group: Group, users: int, peers: int) -> None:
    given = task(group)
    found = fla.beside(given)
    assert len(found) == peers
    want = expected(given.inputs, users)
    for peer in found:
        assert peer.outputs is not None and peer.reset is not None
        for _ in range(2):  # a second run begins from the same state
            peer.reset()
            peer.run()
        both = differences(peer.outputs(), want, peer.name)
        assert [each.output for each in both] == ["y", "s"]
        assert all(each.nmse < 1e-12 for each in both), (peer.name, both)


@pytest.mark.parametrize("group", [token(1, HEADS), prefill(2, HEADS, snapshots=True)])
def test_what_it_does_not_do_it_leaves_out(group: Group) -> None:
    assert fla.beside(task(group)) == []


def test_a_difference_counts_a_nan_as_endless() -> None:
    ours = np.ones(4, np.float32)
    (found,) = differences({"y": [1, 1, np.nan, 1]}, {"y": ours}, "p")
    assert (found.nmse, found.max_abs) == (float("inf"), float("inf"))
    (zero,) = differences({"y": np.zeros(3)}, {"y": np.zeros(3, np.float32)}, "p")
    assert (zero.nmse, zero.max_abs) == (0.0, 0.0)
