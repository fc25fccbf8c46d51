"""`ssmtool ci` for a pull request: a line, then what is folded away; never more than 200 lines of markdown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ssmtool.report.ci import COLUMNS, step_rows, worst_nmse
from ssmtool.report.formats.markdown import code, escape
from ssmtool.wording import plural

MOST_LINES = 200
_FINDINGS = 15
_SKIPS = 15
_KERNELS = 60


def render_pull_request(document: dict[str, Any]) -> str:
    """Markdown from the report's structure. Every text is escaped: a kernel's name is shown and cannot be markup."""
    base = document.get("base")
    lines = [
        f"## ssmtool ci: {_WORDS[document['verdict']]}{' (partial)' if document['partial'] else ''}",
        "",
    ]
    if base is not None:
        lines += [
            f"Since {code(base['revision'])} ({code(base['commit'][:12])}): {escape(base['line'])}",
            "",
        ]
    lines += [escape(document["headline"]), ""]
    lines += [*_table(COLUMNS, step_rows(document)), ""]
    lines += _findings(document["findings"])
    tail = [f"Reproduce: {code(_command(document))}"]
    blocks = [_kernels(document["kernels"])]
    if base is not None:
        blocks += [_changed(each) for each in base["kernels"] if each["change"] == "changed"]
        blocks += [_named(base["kernels"], change) for change in ("new", "gone")]
        blocks += _compilers(base["compilers"])
    blocks.append(_skips(document["skips"]))
    blocks = [block for block in blocks if block]
    left = 0
    for block in blocks:
        # Two lines are kept for saying that something was left out.
        if left or len(lines) + len(block) + len(tail) + 2 > MOST_LINES:
            left += 1
        else:
            lines += block
    if left:
        lines += [
            "",
            f"{plural(left, 'more table')} left out here: `ssmtool ci --html` and `--format json` have all.",
        ]
    return "\n".join([*lines, *tail]) + "\n"


_WORDS = {"ok": "ok", "wrong": "wrong", "unchecked": "not checked"}


def _command(document: dict[str, Any]) -> str:
    """The command with the commit instead of a name that moves."""
    command, base = document["command"], document.get("base")
    if base is not None:
        command = command.replace(f"--base {shlex.quote(base['revision'])}", f"--base {base['commit'][:12]}")
    return f"ssmtool {command}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [
        list(columns),
        ["---"] * len(columns),
        *([escape(cell) for cell in row] for row in rows),
    ]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _folded(title: str, table: list[str]) -> list[str]:
    return [
        f"<details><summary>{escape(title)}</summary>",
        "",
        *table,
        "",
        "</details>",
        "",
    ]


def _more(count: int, most: int) -> list[str]:
    return [f"... and {count - most} more", ""] if count > most else []


def _findings(findings: Sequence[dict[str, Any]]) -> list[str]:
    if not findings:
        return []
    order = sorted(findings, key=lambda each: ("error", "warning", "note").index(each["severity"]))
    rows = [
        [
            each["severity"],
            each["rule"],
            each.get("kernel", ""),
            _place(each),
            each["message"],
            each.get("fix", ""),
        ]
        for each in order[:_FINDINGS]
    ]
    table = _table(("severity", "rule", "kernel", "place", "what", "mend it"), rows)
    return [*table, "", *_more(len(findings), _FINDINGS)]


def _place(finding: dict[str, Any]) -> str:
    return ":".join(str(finding[key]) for key in ("path", "line", "column") if key in finding)


def _skips(skips: Sequence[dict[str, Any]]) -> list[str]:
    if not skips:
        return []
    rows = [[each["check"], each["reason"], each.get("fix", "")] for each in skips[:_SKIPS]]
    more = len(skips) - _SKIPS
    table = _table(
        ("not checked", "why", "mend it"),
        [*rows, *([[f"and {more} more", "", ""]] if more > 0 else [])],
    )
    return _folded(plural(len(skips), "check") + " skipped", table)


def _kernels(kernels: Sequence[dict[str, Any]]) -> list[str]:
    """All kernels in one folded table."""
    if not kernels:
        return []
    rows = [_kernel_row(each) for each in kernels[:_KERNELS]]
    more = len(kernels) - _KERNELS
    if more > 0:
        rows.append([f"and {more} more", *[""] * 6])
    columns = (
        "kernel",
        "verdict",
        "loads",
        "local on the path",
        "registers",
        "worst NMSE",
        "vectors",
    )
    return _folded(plural(len(kernels), "kernel"), _table(columns, rows))


def _kernel_row(kernel: dict[str, Any]) -> list[str]:
    ladder, audit = kernel.get("ladder"), kernel.get("audit")
    local = "-" if audit is None else f"{audit['local']['path_loads']}+{audit['local']['path_stores']}"
    ptxas = (kernel.get("resources") or {}).get("ptxas")
    vectors = kernel.get("vectors") or []
    worst = worst_nmse(vectors)
    return [
        kernel["name"],
        kernel["verdict"],
        "-" if ladder is None or not ladder["has_loader"] else "yes" if ladder["loads"] else "no",
        local,
        str(ptxas["registers"]) if ptxas else "-",
        "-" if worst is None else worst if isinstance(worst, str) else f"{worst:.1e}",
        f"{sum(each['status'] == 'ok' for each in vectors)} of {len(vectors)}",
    ]


def _changed(change: dict[str, Any]) -> list[str]:
    """One kernel that is not as it was: every number then and now."""
    side = {
        **dict.fromkeys(change["worse"], "worse"),
        **dict.fromkeys(change["better"], "better"),
    }
    rows = [[name.replace("_", " "), str(then), str(now), ""] for name, (then, now) in change["numbers"].items()]
    for row in rows:
        row[3] = side.get(f"{row[0]} {row[1]} -> {row[2]}", "")
    if change["verified"]:
        then, now = change["verified"]
        rows.append(
            [
                "numbers (today's vectors)",
                then,
                now,
                "" if then == now else "better" if now == "ok" else "worse",
            ]
        )
    word = "worse" if change["worse"] else "better" if change["better"] else change["change"]
    title = f"{change['kernel']}: {word}"
    if change["reasons"] and change["change"] == "changed":
        title += f" ({'; '.join(change['reasons'])})"
    if not rows:
        return [escape(title), ""]
    return _folded(title, _table(("number", "then", "now", ""), rows))


def _named(changes: Sequence[dict[str, Any]], change: str) -> list[str]:
    """The kernels that only one side has, in one line."""
    names = [escape(each["kernel"]) for each in changes if each["change"] == change]
    return [f"{change.capitalize()}: {', '.join(names)}", ""] if names else []


def _compilers(compilers: dict[str, list[str]]) -> list[list[str]]:
    then, now = (
        ", ".join(compilers["then"]) or "not recorded",
        ", ".join(compilers["now"]) or "not recorded",
    )
    return [] if then == now else [[f"Compiler of the header: {escape(then)} then, {escape(now)} now.", ""]]
