"""Mutants whose case does not fit the CPU: what `ssmtool verify` said of their PTX on a card."""

from __future__ import annotations

# name -> (card, date, caught by, what it says)
RESULTS: dict[str, tuple[str, str, str, str]] = {
    "12-offset-32": (
        "NVIDIA H200",
        "2026-11-30",
        "case slots/past-2-to-the-31",
        "not checked (exit code 2): an illegal memory access (700)",
    ),
    "12-offset-32-token": (
        "NVIDIA H200",
        "2026-11-30",
        "case slots/past-2-to-the-31",
        "not checked (exit code 2): an illegal memory access (700)",
    ),
    "slots-offset-32": (
        "NVIDIA H200",
        "2026-11-30",
        "case slots/past-2-to-the-31-s128",
        "fault: an illegal memory access was encountered (700): the kernel read or wrote outside all memory",
    ),
    "step-offset-32": (
        "NVIDIA H200",
        "2026-11-30",
        "case decode-step/past-2-to-the-31",
        "fault: an illegal memory access was encountered (700): the kernel read or wrote outside all memory",
    ),
}
