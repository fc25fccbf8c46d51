from __future__ import annotations

import pytest

from ssmtool.audit.assumptions import Parameters, make_assumption, parse_assumption, resolve
from ssmtool.errors import SsmtoolError
from ssmtool.ptx import parse

TEXT = """.version 7.4
.target sm_37
.address_size 64
.visible .entry a(.param .u64 a_param_0, .param .u32 a_param_1, .param .f32 a_param_2, .param .b8 a_param_3[8]) { ret; }
.visible .entry b(.param .u32 b_param_0) { ret; }
"""
NAMES = {"a": ("out", "n", "scale", "box"), "b": ("n",)}


def entries() -> dict[str, Parameters]:
    return {function.name: Parameters.of(function, NAMES) for function in parse(TEXT).entries}


def test_pattern_reaches_every_kernel_with_the_parameter() -> None:
    found = resolve([parse_assumption("*.n=-1")], entries())
    assert found["a"].patterns == {"a_param_1": (0xFFFF_FFFF, 4)}
    assert found["b"].shown == {"n": -1}


def test_a_later_assumption_replaces_an_earlier_one() -> None:
    assert resolve([parse_assumption("*.n=1"), parse_assumption("a.n=0x10")], entries())["a"].shown == {"n": 16}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.n", "KERNEL.PARAMETER=INTEGER"),
        ("n=4", "names no kernel"),
        ("a.n=four", "KERNEL.PARAMETER=INTEGER"),
        ("c.n=4", "no entry is named c"),
        ("a.k=4", "has no parameter k; it has: out, n, scale, box"),
        ("a.scale=1", "not an integer"),
        ("a.box=1", "not an integer"),
        ("a.n=4294967296", "does not fit the 32 bits"),
        ("a.n=-2147483649", "does not fit the 32 bits"),
    ],
)
def test_an_assumption_that_would_change_nothing_is_an_error(text: str, words: str) -> None:
    with pytest.raises(SsmtoolError, match=words):
        resolve([parse_assumption(text)], entries())


def test_settings_may_speak_of_kernels_that_are_not_here() -> None:
    from dataclasses import replace

    assert not resolve([replace(make_assumption("c.n", 4), optional=True)], entries())["a"]


def test_c_names_of_another_count_are_not_used() -> None:
    function = parse(TEXT).entries[1]
    assert Parameters.of(function, {"b": ("x", "y")}).names == ("param_0",)
