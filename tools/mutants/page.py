"""The verdicts in words: on the terminal, and as docs/mutants.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from model import Mutant
from on_cards import RESULTS
from trial import Verdict

_MISTAKES = (
    "V-heads paired with K-heads in groups, not interleaved",
    "the state transposed between prefill and decode",
    "forms of eps in the L2 norm",
    "RMS norm for the L2 norm",
    "softplus without its branch; infinity times zero",
    "strong decay",
    "a linear g where its logarithm is meant",
    "short prompts and the convolution's history",
    "the filter's taps flipped",
    "chunks of one and two positions",
    "a slot used again; a padding index on a live slot",
    "32-bit offsets",
    "the wrong snapshot after a partial accept",
    "a length of 0",
    "states in half precision",
    "1/sqrt(S) missing or twice; the weight as 1 + w",
    "a kernel that the PTX does not have",
    "an empty PTX table",
)


def exit_code(chosen: Sequence[Mutant], verdicts: Sequence[Verdict]) -> int:
    """2 where one could not be tried, 1 where one is not as its row says, else 0."""
    if any(verdict.error for verdict in verdicts):
        return 2
    return int(any(_surprise(*pair) for pair in zip(chosen, verdicts, strict=True)))


def _surprise(mutant: Mutant, verdict: Verdict) -> bool:
    if verdict.not_tried:
        return False
    # An equivalent mutant changes no output: verify must pass it, and only the checkers of the text may see it.
    return verdict.by not in ("", "audit-ptx") if mutant.equivalent else not verdict.caught


def _state(mutant: Mutant, verdict: Verdict) -> str:
    if verdict.error:
        return "ERROR"
    if verdict.not_tried:
        return "caught on a card" if mutant.name in RESULTS else "not tried"
    if _surprise(mutant, verdict):
        return "WRONGLY CAUGHT" if mutant.equivalent else "SURVIVES"
    if verdict.caught:
        return "caught"
    return "gap" if mutant.equivalent.startswith("a gap:") else "equivalent"


def line(mutant: Mutant, verdict: Verdict) -> str:
    """One mutant on the terminal."""
    text = verdict.error or verdict.not_tried or verdict.by or mutant.equivalent
    return f"{_state(mutant, verdict):10} {verdict.seconds:5.1f} s  {mutant.name:26} {text}"


def _count(chosen: Sequence[Mutant], verdicts: Sequence[Verdict]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pair in zip(chosen, verdicts, strict=True):
        found[_state(*pair)] = found.get(_state(*pair), 0) + 1
    return found


def summary(chosen: Sequence[Mutant], verdicts: Sequence[Verdict], seconds: float) -> str:
    """The last line: the score."""
    counts = ", ".join(f"{number} {state}" for state, number in sorted(_count(chosen, verdicts).items()))
    return f"{len(chosen)} mutants: {counts}; {seconds:.0f} s"


def write(path: Path, chosen: Sequence[Mutant], verdicts: Sequence[Verdict], seconds: float) -> None:
    """The page."""
    from ssmtool.files import write_atomic

    pairs = list(zip(chosen, verdicts, strict=True))
    counts = _count(chosen, verdicts)
    equivalent = [pair for pair in pairs if pair[0].equivalent]
    lost = [pair for pair in pairs if _state(*pair) == "SURVIVES"]
    untried = counts.get("not tried", 0)
    on_cards = counts.get("caught on a card", 0)
    gaps = [pair for pair in pairs if _state(*pair) == "gap"]
    tried = len(pairs) - untried - counts.get("equivalent", 0)
    caught = on_cards + sum(verdict.caught for _, verdict in pairs)
    date = datetime.now(timezone.utc).date().isoformat()
    lines = [
        "# Mutants",
        "",
        "Is a wrong kernel caught? `make mutants` makes wrong ones, tries each, and writes this page; nothing",
        "here is written by hand. A mutant is a row in `tools/mutants/`: one text replaced in the source, which",
        "CUDA 11.4's compiler then compiles, or one in the checked-in PTX. It is verified on the CPU, with every",
        "check: cases of the changed kernels that were made to expose mistakes, the quick ones, their relations",
        "(two rounds), then all others that are not large, up to the first failure. What passes goes to",
        "`audit-ptx` with the project's budgets.",
        "",
        f"**{caught} of {tried} caught** ({date}, {seconds:.0f} s on 2 processors). "
        f"{counts.get('equivalent', 0)} more are not seen by verify for a good reason, {len(gaps)} because of a gap; "
        f"both are listed with the reason. {on_cards} of the caught have a case of 8.5 GiB and were tried on a card; "
        f"{untried} were not tried; {len(lost)} survive unexplained.",
        "",
        "## What people get wrong",
        "",
        "The first number of a mutant's name, where it has one.",
        "",
        *_mistakes(pairs),
        "",
        "## Mutants that verify does not see, and why",
        "",
        "| mutant | what | why | what still sees it |",
        "|---|---|---|---|",
        *(
            f"| `{m.name}` | {_cell(m.imitates)} | {_cell(m.equivalent)} | {_cell(v.says) if v.caught else 'nothing'} |"
            for m, v in equivalent
        ),
        "",
    ]
    if lost:
        lines += ["## Survivors", "", "| mutant | what |", "|---|---|"]
        lines += [f"| `{m.name}` | {_cell(m.imitates)} |" for m, _ in lost] + [""]
    for title, in_source in (("Mutations of the source", True), ("Mutations of the PTX", False)):
        lines += [f"## {title}", "", "| mutant | what | caught by | it says |", "|---|---|---|---|"]
        for mutant, verdict in pairs:
            if mutant.in_source == in_source and not mutant.equivalent:
                by, says = verdict.by or verdict.not_tried, verdict.says
                if verdict.not_tried and mutant.name in RESULTS:
                    card, day, by, says = RESULTS[mutant.name]
                    by = f"{by} on an {card} ({day})"
                lines.append(f"| `{mutant.name}` | {_cell(mutant.imitates)} | {by} | {_cell(says)} |")
        lines.append("")
    write_atomic(path, "\n".join(lines).encode())


def _mistakes(pairs: Sequence[tuple[Mutant, Verdict]]) -> list[str]:
    lines = ["| | mistake | mutants |", "|---|---|---|"]
    for number, words in enumerate(_MISTAKES, 1):
        of = [pair for pair in pairs if pair[0].name.startswith(f"{number}-")]
        if number == len(_MISTAKES):
            of = [pair for pair in pairs if pair[0].name == "no-kernels"]
        told = ", ".join(f"{mutant.name} ({_state(mutant, verdict)})" for mutant, verdict in of)
        lines.append(f"| {number} | {words} | {told} |")
    return lines


def _cell(text: str, limit: int = 150) -> str:
    """Text for a table: one line, no bars, not too long, no address of this run."""
    text = re.sub(r"0x[0-9a-f]{6,}", "an address", " ".join(text.split())).replace("|", "\\|")
    return text if len(text) <= limit else text[: limit - 4].rsplit(" ", 1)[0] + " ..."
