"""The kernels of a normalised PTX text as the header records them: text, digest, parameters.

Only the cut into entries is needed here, on every `build --check`; the front end in `ssmtool.ptx` reads operands too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from ssmtool.header import EntryRecord, sha256

#   .visible .entry fc_ssm_recurrence(
_ENTRY = re.compile(r"^(?:\.visible |\.weak |\.extern )*\.entry ([\w$%]+)", re.MULTILINE)
#   	.param .u64 .ptr .global .align 4 fc_ssm_recurrence_param_0,
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+)?(?:\.\w+\s+(?:\d+\s+)?)*([\w$%]+)(\[\d+\])?"
)


class EntryText(msgspec.Struct, frozen=True):
    """One `.entry`: its name, its parameters as (PTX type, PTX name), and its text up to the next entry or the end."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    text: str


def split_entries(ptx: str) -> list[EntryText]:
    """The entries of a normalised PTX text, in order."""
    matches = list(_ENTRY.finditer(ptx))
    entries = []
    ends = [match.start() for match in matches[1:]] + [len(ptx)]
    for match, end in zip(matches, ends, strict=False):
        text = ptx[match.start() : end]
        head = text[: text.find("{")]
        parameters = tuple((found[2] + (found[4] or ""), found[3]) for found in _PARAMETER.finditer(head))
        entries.append(EntryText(match[1], parameters, text))
    return entries


def digest(entry: EntryText) -> str:
    """The first 12 hex digits of the SHA-256 of the entry's text."""
    return sha256(entry.text)[:12]


def entry_digests(ptx: str) -> dict[str, str]:
    """Entry name -> digest, in the order of the PTX."""
    return {entry.name: digest(entry) for entry in split_entries(ptx)}


def record_entries(ptx: str, source_names: Mapping[str, Sequence[str]]) -> tuple[EntryRecord, ...]:
    """The entries as the header records them.

    `source_names` gives each kernel's parameter names as the C source has them; a kernel that it lacks, or has with
    another number of parameters, keeps the names of the PTX.
    """
    records = []
    for entry in split_entries(ptx):
        names = source_names.get(entry.name, ())
        if len(names) != len(entry.parameters):
            names = [name for _, name in entry.parameters]
        pairs = zip(entry.parameters, names, strict=True)
        records.append(
            EntryRecord(entry.name, ", ".join(f"{type_} {name}" for (type_, _), name in pairs), digest(entry))
        )
    return tuple(records)
