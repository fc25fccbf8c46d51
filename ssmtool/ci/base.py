"""`--base REV`: what changed for the better or worse against a git revision.

The header as it was then is audited, measured and, for the kernels whose text differs, verified with today's vectors;
kernels with the same text cannot have other numbers and are not run again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ssmtool.ci.auditing import assumptions_of
from ssmtool.ci.model import Context, Done
from ssmtool.ci.provenance import git
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Outcome, Skip
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.audit.compare import KernelChange
    from ssmtool.audit.inputs import Input
    from ssmtool.project import Project
    from ssmtool.toolchain.ptxas_report import Resources

# Changes of one kind that the one line names; the rest are counted.
_NAMED = 3
#  "compiler":{"kind":"nvrtc","version":"11.4.152"} in a header's provenance block
_COMPILER = re.compile(rb'"compiler":\s*\{"kind":\s*"(\w+)",\s*"version":\s*"([\w.]+)"\}')


@dataclass
class Change:
    """One kernel then and now. `numbers` are name -> (then, now) of those that differ; `verified` the same in words."""

    kernel: str
    change: str
    numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    better: list[str] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)
    reasons: tuple[str, ...] = ()
    verified: tuple[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """The change as JSON data."""
        return {
            "kernel": self.kernel,
            "change": self.change,
            "numbers": {name: list(pair) for name, pair in self.numbers.items()},
            "better": self.better,
            "worse": self.worse,
            "reasons": list(self.reasons),
            "verified": list(self.verified) if self.verified else None,
        }


def resolve(project: Project, revision: str) -> str:
    """The commit of a revision. Raises SsmtoolError when git does not know it: asked before the long work."""
    if not revision or revision.startswith("-") or ":" in revision:
        raise SsmtoolError(f'"{revision}" is not a git revision', hint="ssmtool ci --base HEAD~1")
    if git(project.root, "rev-parse", "--git-dir") is None:
        raise SsmtoolError("--base wants git, and a project in a git repository", path=project.root)
    commit = git(project.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise SsmtoolError(
            f'git does not know the revision "{revision}"',
            hint="git fetch, or fetch-depth: 0 in a workflow",
        )
    return commit


def base_step(context: Context) -> Done:
    """The comparison. Raises SsmtoolError when there is no header then or now."""
    from ssmtool.audit.compare import compare_results, read_old
    from ssmtool.audit.inputs import read_input
    from ssmtool.audit.kernels import audit

    project, revision = context.project, context.options.base or "HEAD"
    commit = resolve(project, revision)
    optional = [replace(each, optional=True) for each in assumptions_of(project)]
    if context.audit is None:
        context.inputs = read_input(str(project.header_path), project.show)
        context.audit = audit(context.inputs, optional)
    old = read_old(f"git:{commit}", (), project.root, str(project.header_path))
    outcome = Outcome()
    before = _resources(old, outcome)
    now = context.resources or _resources(context.inputs, outcome)
    changes = [
        _change(
            each,
            before.get(each.kernel),
            now.get(each.kernel),
            _texts(old),
            _texts(context.inputs),
        )
        for each in compare_results(audit(old, optional), context.audit)
    ]
    _verified(context, old, changes, outcome)
    line = words(changes)
    data = {
        "revision": revision, "commit": commit, "line": line, "kernels": [each.to_json() for each in changes],
        "compilers": _compilers(project, commit),
    }  # fmt: skip
    return Done(outcome, f"{revision} ({commit[:12]}): {line}", {"base": data})


def words(changes: Sequence[Change]) -> str:
    """One line: what is worse, what is better, what is new or gone, and how many are the same."""
    parts = []
    sides = {
        "worse": [f"{each.kernel}: {what}" for each in changes for what in each.worse],
        "better": [f"{each.kernel}: {what}" for each in changes for what in each.better],
    }
    for word, told in sides.items():
        if told:
            more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
            parts.append(f"{word}: {', '.join(told[:_NAMED])}{more}")
    for word in ("new", "gone"):
        names = [each.kernel for each in changes if each.change == word]
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            parts.append(f"{word}: {', '.join(names[:_NAMED])}{more}")
    other = sum(each.change == "changed" and not each.better and not each.worse for each in changes)
    if other:
        parts.append(f"{plural(other, 'kernel')} changed, neither better nor worse")
    same = sum(each.change == "same" for each in changes)
    if same == len(changes):
        return f"nothing changed in the PTX of {plural(same, 'kernel')}"
    return "; ".join([*parts, f"{same} the same"])


def _change(
    change: KernelChange,
    before: Resources | None,
    now: Resources | None,
    old: Mapping[str, str],
    new: Mapping[str, str],
) -> Change:
    from ssmtool.audit.budgets import WORDS, measured

    if change.before is None or change.after is None:
        return Change(change.kernel, "new" if change.before is None else "gone")
    numbers = dict(change.numbers)
    if before is not None and now is not None:
        then, today = measured(change.before, before), measured(change.after, now)
        numbers |= {name: (then[name], today[name]) for name in then if then[name] != today[name]}
    # The class `barrier` of the instruction mix is `barriers` again, unless there are fences.
    numbers = {name: pair for name, pair in numbers.items() if numbers.get(f"{name}s") != pair}
    same = old.get(change.kernel) == new.get(change.kernel)
    found = Change(
        change.kernel,
        "same" if same and not numbers else "changed",
        numbers,
        reasons=change.reasons,
    )
    for name, (then_value, value) in numbers.items():
        if name in WORDS:
            side = found.worse if value > then_value else found.better
            side.append(f"{name.replace('_', ' ')} {then_value} -> {value}")
    return found


def _texts(inputs: Sequence[Input]) -> dict[str, str]:
    """Kernel -> its text."""
    from ssmtool.build.entries import split_entries

    return {entry.name: entry.text.rstrip() for each in inputs for entry in split_entries(each.module.text)}


def _resources(inputs: Sequence[Input], outcome: Outcome) -> dict[str, Resources]:
    from ssmtool.audit.resources import measure

    found = {}
    for each in inputs:
        report = measure(each.module.text, each.module.target, name=each.name)
        if isinstance(report, Skip):
            skip = Skip(f"{report.check} of the base", report.reason, report.fix)
            outcome.skips += [] if skip in outcome.skips else [skip]
            continue
        found.update({item.name: item for item in report.entries})
    return found


def _verified(context: Context, old: Sequence[Input], changes: Sequence[Change], outcome: Outcome) -> None:
    """Run the old text of changed kernels on today's vectors, where today's text was verified."""
    from ssmtool.ci.verifying import Wanted, by_kernel, verify
    from ssmtool.verify.loaded import Text

    changed = [each for each in changes if each.change == "changed"]
    if not changed:
        return
    if not context.numbers:
        outcome.skips.append(
            Skip(
                "numbers of the base",
                "the step verify did not run",
                "ssmtool ci --base REV",
            )
        )
        return
    names = {each.kernel for each in changed}
    texts = [Text(each.module, each.parameters) for each in old]
    try:
        found, _ = verify(context, Wanted(texts, names))
    except SsmtoolError as error:
        outcome.skips.append(Skip("numbers of the base", str(error), error.hint))
        return
    then = by_kernel(found, sorted(names))
    for each in changed:
        pair = (
            then[each.kernel]["numbers"],
            context.numbers.get(each.kernel, "not checked"),
        )
        each.verified = pair
        if pair == ("ok", "wrong"):
            each.worse.insert(0, "numbers were right and are wrong")
        elif pair == ("wrong", "ok"):
            each.better.insert(0, "numbers were wrong and are right")


def _compilers(project: Project, commit: str) -> dict[str, list[str]]:
    """The compilers that the header's record names, then and now."""
    import subprocess

    from ssmtool.files import read_bytes

    shown = subprocess.run(
        ["git", "-C", str(project.header_path.parent), "show", f"{commit}:./{project.header_path.name}"],
        capture_output=True, check=False, timeout=20,
    )  # fmt: skip
    return {
        "then": _named(shown.stdout),
        "now": _named(read_bytes(project.header_path)),
    }


def _named(header: bytes) -> list[str]:
    found = (f"{kind.decode()} {version.decode()}" for kind, version in _COMPILER.findall(header))
    return list(dict.fromkeys(found))
