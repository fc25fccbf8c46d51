"""A run's structure without running anything: one hostile kernel, one plain one."""

from __future__ import annotations

from typing import Any

from ssmtool.ci.document import document
from ssmtool.ci.model import Done, Run, Step
from ssmtool.findings import Finding, Outcome, Severity, Skip

HOSTILE = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>\"'`&\u202e${7*7}{{7*7}}"


def sample(name: str = HOSTILE) -> dict[str, Any]:
    """A report with every part, each text of it hostile."""
    vector = {
        "name": name, "device": name, "status": "wrong", "check": "all", "seconds": 0.1, "nmse": 1e-14,
        "nmse_limit": 1e-11, "max_abs_over_rms": 1e-6, "max_ulp": 3, "nonfinite": 0, "policies": [name], "reason": name,
    }  # fmt: skip
    kernel: dict[str, Any] = {
        "module": name,
        "parameters": name,
        "digest": "0123456789ab",
        "ladder": {
            "kernel": name, "source_line": 3, "source_path": name, "ptx_index": 0, "header_index": 0,
            "loader_index": None, "counted": False, "loads": False, "note": name, "has_loader": True,
        },
        "audit": {
            "counts": {"instructions": 12},
            "local": {"declared_bytes": 12, "static_loads": 1, "static_stores": 1, "path_loads": 1, "path_stores": 1},
            "path": {
                "accesses": [
                    {"line": 9, "kind": "load", "executed": True, "source": name, "guarding": {"condition": name}}
                ]
            },
        },
        "local": name,
        "limits": [
            {"number": "registers", "what": name, "value": 40, "budget": 32, "baseline": 30, "change": 10,
             "verdict": "over budget"}
        ],
        "resources": {"remark": name, "ptxas": {"registers": 40}, "driver": {"local_bytes": 0, "registers": 40}},
        "occupancy": {"grid": [1, 1, 1], "block": [32, 1, 1], "warps": 64, "fraction": 1.0, "limiter": name},
        "graph": f"<svg xmlns='http://www.w3.org/2000/svg'><title>{name.replace('<', '&lt;')}</title></svg>",
        "numbers": "wrong",
        "vectors": [vector, {**vector, "name": "second", "status": "ok", "nmse": "nan", "nmse_limit": None}],
        "relations": [
            {"name": "R1/x", "title": name, "device": name, "rounds": 3, "equal": 2, "status": "wrong", "reason": name}
        ],
        "devices": [{"name": name, "devices": name, "status": "ok", "runs": 2, "equal": 1, "notes": [name]}],
        "error_decades": {"0": 1, "1e-14": 4, "not finite": 1},
    }  # fmt: skip
    outcome = Outcome(
        findings=[Finding("verify/mismatch", Severity.ERROR, name, name, name, 3, 4, name, name)],
        skips=[Skip(name, name, name)],
        required_skips=[Skip("required", name)],
    )
    base = {
        "revision": name, "commit": "0123456789abcdef", "line": name, "compilers": {"then": [name], "now": []},
        "kernels": [
            {"kernel": name, "change": "changed", "numbers": {"registers": [30, 40]}, "better": [],
             "worse": ["registers 30 -> 40"], "reasons": [name], "verified": ["ok", "wrong"]},
            {"kernel": "gone", "change": "gone", "numbers": {}, "better": [], "worse": [], "reasons": [],
             "verified": None},
        ],
    }  # fmt: skip
    plain = {"ladder": {**kernel["ladder"], "loads": True, "note": ""}}
    done = Done(
        outcome,
        name,
        {"base": base, "loaders": [{"constant": name, "lines": [name]}]},
        {name: kernel, **{f"plain{number}": plain for number in range(6)}},
    )
    modules = {"modules": [{"source": name, "constant": name, "state": name}]}
    run = Run(
        [Step("build", Done(Outcome(), name, modules), 0.2), Step("verify", done, 1.5)],
        provenance={"time": "2026-11-30", "devices": [name], "commit": None},
    )
    return document(run, command="ci")
