"""Mistakes about the convolution: its filter and its history."""

# What each does is its name here, and in words in `ssmtool.golden.mistakes`.
# ruff: noqa: D101, D102
from __future__ import annotations

import numpy as np

from ssmtool.golden.reference.arithmetic import Array
from ssmtool.golden.reference.rules import Rules


class TapsFlipped(Rules):
    def taps(self, weight: Array) -> Array:
        return weight[:, ::-1]


class SiluMissing(Rules):
    def activation(self, x: Array) -> Array:
        return x


class HistoryStale(Rules):
    def push(self, history: Array, x: Array, out: Array) -> Array:
        return history


class HistoryFromPrompt(Rules):
    def final_history(self, start: Array, samples: Array, history: Array) -> Array:
        made = history.copy()
        made[..., : max(history.shape[-1] - samples.shape[0], 0)] = 0
        return made


class HistoryActivated(Rules):
    def push(self, history: Array, x: Array, out: Array) -> Array:
        return super().push(history, out, out)


class NewestFirst(Rules):
    def final_history(self, start: Array, samples: Array, history: Array) -> Array:
        return history[..., ::-1]


class ChannelMajor(Rules):
    def samples(self, qkv: Array) -> Array:
        return np.swapaxes(qkv.reshape(-1).reshape(qkv.shape[1], qkv.shape[0]), 0, 1)
