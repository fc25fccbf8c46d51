"""`--require`: a machine that lost what it is there for fails, instead of checking less."""

from __future__ import annotations

from ssmtool.ci.model import Context, Done
from ssmtool.findings import Finding, Outcome, Severity
from ssmtool.wording import plural

_PREFIX = "require/"


def require_step(context: Context) -> Done:
    """Each word of `--require` against this machine: a missing part is an error with the command that mends it."""
    from ssmtool.doctor.model import Verdict
    from ssmtool.doctor.run import examine

    words = context.options.require
    report = examine(context.project.root, words)
    outcome = Outcome()
    found = {}
    for check in report.checks:
        if not check.id.startswith(_PREFIX):
            continue
        word, result = check.id[len(_PREFIX) :], check.result
        found[word] = {"here": check.verdict is Verdict.OK, "found": result.found}
        if check.verdict is not Verdict.OK:
            finding = Finding(
                "ci/required-missing",
                Severity.ERROR,
                f"--require {word}: {result.found}",
                effect=result.means or "what was asked for is not checked on this machine",
                fix=result.mend or f"ssmtool doctor --require {word}",
            )
            outcome.findings.append(finding)
    here = sum(each["here"] is True for each in found.values())
    return Done(
        outcome,
        f"{here} of {plural(len(words), 'required part')} here",
        {"required": found},
    )
