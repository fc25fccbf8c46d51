from __future__ import annotations

import re
from pathlib import Path

from ssmtool.audit.launches import contract_launches

_CONTRACT = Path(__file__).parents[2] / "docs" / "kernels.md"
# | 8 | `fc_ssm_recurrence_seq` | s, q, ... | as 1 | S | S floats |
_ROW = re.compile(r"^\| (\d+) \| `(\w+)` \|.*\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_shapes_are_those_of_the_contract_page() -> None:
    rows = {
        int(number): (name, grid, block, shared)
        for number, name, grid, block, shared in _ROW.findall(_CONTRACT.read_text())
    }
    assert len(rows) == 15
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
        assert launch.block == threads, name
        floats = {"0": 0, "S floats": size, "2·S floats": 2 * size, "3·S floats": 3 * size,
                  "128 floats": 128, "2·n floats": 2 * n, "blockDim floats": threads}[shared]  # fmt: skip
        assert launch.dynamic_shared_bytes == 4 * floats, name
