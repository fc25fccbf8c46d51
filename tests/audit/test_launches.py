from __future__ import annotations

import re
from pathlib import Path

import pytest

from ssmtool.audit.launches import (
    Launch,
    contract_launches,
    fast_launches,
    launches_of,
    parse_launch,
    settings_launches,
)
from ssmtool.errors import SsmtoolError
from ssmtool.project import LaunchSettings
from ssmtool.ptx import Function, parse

_CONTRACT = Path(__file__).parents[2] / "docs" / "kernels.md"
# | 8 | `fc_ssm_recurrence_seq` | s, q, ... | as 1 | S | S floats |
_ROW = re.compile(r"^\| (\d+) \| `(\w+)` \|.*\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_shapes_are_those_of_the_contract_page() -> None:
    rows = {
        int(number): (name, grid, block, shared)
        for number, name, grid, block, shared in _ROW.findall(_CONTRACT.read_text())
    }
    assert len(rows) == 18
    size, heads, n, users, keys = 64, 6, 10, 3, 2
    words = {
        "S": size,
        "n_v_heads": heads,
        "n_k_heads": keys,
        "n": n,
        "K": users,
        "S/4": 16,
        "ceil(conv_dim/256)": 3,
        "ceil(n/256)": 1,
        "ceil(total/256)": 1,
    }  # conv_dim = (2*2 + 6) * 64 = 640; total = 6 * 10
    launches = contract_launches(n_v_heads=heads, n_k_heads=keys, state_size=size, positions=n, slots=users)
    for number, launch in enumerate(launches, 1):
        name, grid, block, shared = rows[number]
        while grid.startswith("as "):
            grid = rows[int(grid.removeprefix("as "))][1]
        while block.startswith("as "):
            block = rows[int(block.removeprefix("as "))][2]
        while shared.startswith("as "):
            shared = rows[int(shared.removeprefix("as "))][3]
        parts = [words[part.strip()] for part in re.sub(r"^\((.*)\)$", r"\1", grid).split(", ")]
        assert launch.kernel == name
        assert launch.grid == (*parts, *[1] * (3 - len(parts))), name
        threads = {"256": 256, "128": 128, "S": size, "256 or S": 256}[block]
        assert launch.block == (threads, 1, 1), name
        floats = {"0": 0, "S floats": size, "2·S floats": 2 * size, "3·S floats": 3 * size,
                  "128 floats": 128, "2·n floats": 2 * n, "blockDim floats": threads}[shared]  # fmt: skip
        assert launch.dynamic_shared_bytes == 4 * floats, name


def test_fast_shapes_are_those_of_the_contract_page() -> None:
    text = _CONTRACT.read_text()
    slots, multi, step = fast_launches(n_v_heads=6, n_k_heads=2, slots=3)
    assert "| (128/(R·W), n_v_heads, K) | 32·W | 0 |" in text  # R = 8, W = 1
    assert slots == Launch("fc_ssm_recurrence_slots_warp", (16, 6, 3), (32, 1, 1))
    assert "| as 8 | (32/R, n_v_heads) | 128 | 0 |" in text  # R = 8
    assert multi == Launch("fc_ssm_recurrence_seq_warp_multi", (4, 6, 1), (128, 1, 1))
    assert "| (n_k_heads, K) | 512 | (2 + 2·kv_groups)·128 floats |" in text
    assert step == Launch("fc_ssm_decode_step", (2, 3, 1), (512, 1, 1), (2 + 2 * 3) * 128 * 4)


def entries(directives: str = "") -> list[Function]:
    text = f".version 7.4\n.target sm_37\n.address_size 64\n.entry mine(){directives} {{ ret; }}\n"
    return parse(text + ".entry fc_sigmoid() { ret; }\n").entries


def test_a_launch_as_it_is_written() -> None:
    assert parse_launch("k=128,32/16,8,2/512") == Launch("k", (128, 32, 1), (16, 8, 2), 512)
    assert parse_launch(" a*=1/1 ") == Launch("a*", (1, 1, 1), (1, 1, 1), 0)
    given = settings_launches([LaunchSettings("k", 7, (16, 8), 4)], optional=True)
    assert given == [Launch("k", (7, 1, 1), (16, 8, 1), 4, optional=True)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k=1", "not of the form"),
        ("k", "not of the form"),
        ("=1/1", "not of the form"),
        ("k=1/1,1,1,1", "not of the form"),
        ("k=-1/1", "not of the form"),
        ("k=1/32.0", "not of the form"),
        ("k=1/\u0663", "not of the form"),  # an Arabic digit is a digit to Python
        ("k=0/32", "grid size x is 0"),
        ("k=1/0", "block size x is 0"),
        ("k=1/1025", "block size x is 1025"),
        ("k=1/64,32", "2048 threads a block"),
        ("k=1/1,1,65", "block size z is 65"),
        ("k=1,65536/1", "grid size y is 65536"),
        ("k=2147483648/1", "grid size x"),
        ("k=1/32/49153", "49153 shared bytes"),
        ("k=" + "9" * 5000 + "/1", "grid size x"),  # int() refuses so many digits with an error of its own
    ],
)
def test_a_launch_no_device_takes_is_refused(text: str, words: str) -> None:
    with pytest.raises(SsmtoolError, match=words):
        parse_launch(text)


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), 0, -3])
def test_settings_are_held_to_the_same(grid: int | tuple[int, ...]) -> None:
    with pytest.raises(SsmtoolError, match="launch of k"):
        settings_launches([LaunchSettings("k", grid, 32)], optional=False)


def test_the_users_launch_replaces_the_contracts_and_the_last_one_counts() -> None:
    found = launches_of(entries(), [parse_launch("*=1/64"), parse_launch("mine=2/32")])
    assert (found["fc_sigmoid"].threads, found["mine"].grid) == (64, (2, 1, 1))
    assert launches_of(entries(), [])["fc_sigmoid"].threads == 256
    assert "mine" not in launches_of(entries(), [])


def test_a_launch_for_no_kernel_is_an_error_unless_it_is_the_settings_for_another_file() -> None:
    with pytest.raises(SsmtoolError, match="did you mean mine"):
        launches_of(entries(), [parse_launch("mime=1/32")])
    assert launches_of(entries(), settings_launches([LaunchSettings("mime", 1, 32)], optional=True)).keys() == {
        "fc_sigmoid"
    }


def test_what_the_kernel_itself_forbids() -> None:
    with pytest.raises(SsmtoolError, match=r"\.reqntid wants 64 x 1 x 1"):
        launches_of(entries(" .reqntid 64"), [parse_launch("mine=1/32,2")])
    with pytest.raises(SsmtoolError, match=r"\.maxntid allows 64"):
        launches_of(entries(" .maxntid 32, 2, 1"), [parse_launch("mine=1/65")])
    assert launches_of(entries(" .maxntid 32, 2, 1"), [parse_launch("mine=1/64")])["mine"].threads == 64
