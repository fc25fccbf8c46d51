"""The steps in their order, each timed and guarded: one that falls over is told, and the others still run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ssmtool.ci.model import (
    BASE,
    REQUIRE,
    STEPS,
    Context,
    Done,
    Run,
    Step,
    StepFunction,
)
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Finding, Outcome, Severity, Skip


def functions() -> dict[str, StepFunction]:
    """Every step's function; they import what they need when they run."""
    from ssmtool.ci.auditing import audit_step
    from ssmtool.ci.base import base_step
    from ssmtool.ci.checking import build_step, registry_step
    from ssmtool.ci.required import require_step
    from ssmtool.ci.verifying import verify_step

    return {
        REQUIRE: require_step, "build": build_step, "registry": registry_step, "audit-ptx": audit_step,
        "verify": verify_step, BASE: base_step,
    }  # fmt: skip


def run(
    context: Context,
    *,
    tell: Callable[[Step], None] | None = None,
    steps: Mapping[str, StepFunction] | None = None,
) -> Run:
    """Run the steps that the options ask for. `tell` is called after each; `steps` replaces functions in tests.

    Ctrl-C ends it with what there is, marked `partial`. Raises nothing that a user can cause.
    """
    table = {**functions(), **(steps or {})}
    options = context.options
    names = [
        *([REQUIRE] if options.require else []),
        *STEPS,
        *([BASE] if options.base else []),
    ]
    whole = Run()
    for name in names:
        if name in STEPS and name not in options.steps:
            whole.steps.append(_left_out(name))
            continue
        if whole.partial:
            whole.steps.append(_not_reached(name))
            continue
        started = time.perf_counter()
        try:
            step = Step(name, _guarded(name, table[name], context))
        except KeyboardInterrupt:
            whole.partial = True
            step = _not_reached(name)
        step.seconds = time.perf_counter() - started
        whole.steps.append(step)
        if tell is not None:
            tell(step)
    from ssmtool.ci.provenance import provenance

    whole.provenance = provenance(context)
    return whole


def _left_out(name: str) -> Step:
    reason = "left out by --only or --skip"
    return Step(
        name,
        Done(
            Outcome(skips=[Skip(f"step {name}", reason, f"ssmtool ci --only {name}")]),
            reason,
        ),
        ran=False,
    )


def _not_reached(name: str) -> Step:
    reason = "the run was interrupted before it ended"
    skip = Skip(f"step {name}", reason, f"ssmtool ci --only {name}" if name in STEPS else None)
    return Step(name, Done(Outcome(required_skips=[skip]), reason), ran=False)


def _guarded(name: str, function: StepFunction, context: Context) -> Done:
    """The step's result; an error is one too, with the verdict that its exit code stands for."""
    try:
        return function(context)
    except SsmtoolError as error:
        return Done(_error(name, error), str(error))
    except MemoryError:
        reason = "this machine has no memory left for it"
        return Done(Outcome(required_skips=[Skip(f"step {name}", reason)]), reason)
    except Exception as error:
        # Not the product's fault: the link is unchecked, and why is a finding that cannot be overlooked.
        words = f"the step {name} crashed: {type(error).__name__}: {error}"
        finding = Finding(
            "ci/crashed", Severity.WARNING, words,
            effect="this link was not checked; it is a fault of ssmtool", fix=f"ssmtool {_alone(name)}",
        )  # fmt: skip
        return Done(
            Outcome(
                findings=[finding],
                required_skips=[Skip(f"step {name}", words, finding.fix)],
            ),
            words,
        )


def _alone(name: str) -> str:
    """The command that runs the step by itself."""
    return {
        "build": "build --check",
        REQUIRE: "doctor",
        BASE: "audit-ptx --compare git:REVISION",
    }.get(name, name)


def _error(name: str, error: SsmtoolError) -> Outcome:
    if error.exit_code != 1:
        return Outcome(required_skips=[Skip(f"step {name}", str(error), error.hint)])
    finding = Finding(
        "ci/product", Severity.ERROR, error.message, path=error.path, line=error.line, column=error.column,
        fix=error.hint or f"ssmtool {_alone(name)}",
    )  # fmt: skip
    return Outcome(findings=[finding])
