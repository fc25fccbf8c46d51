"""What a build's report says of PTX that changed."""

from __future__ import annotations

import difflib

import pytest

from ssmtool.report.build import only_renamed

OLD = """.reg .b32 %r<9>;
$L__BB0_1:
ld.global.f32 %f1, [%rd4+12];
fma.rn.f32 %f3, %f1, %f2, 0f3F800000;
@%p1 bra $L__BB0_1;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
ret;
"""


def diff(new: str) -> str:
    return "\n".join(difflib.unified_diff(OLD.splitlines(), new.splitlines(), "a", "b", n=2, lineterm=""))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("%f3", "%f17", True),
        ("$L__BB0_1", "$L__BB2_41", True),
        ("%r<9>", "%r<12>", True),
        ("%rd4+12", "%rd5+12", True),
        ("%p1", "%p4", True),
        ("%rd4+12", "%rd4+16", False),
        ("0f3F800000", "0f40000000", False),
        ("%tid.x", "%tid.y", False),
        ("%f1, %f2", "%r1, %f2", False),
        ("@%p1", "@!%p1", False),
        ("mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;", "mov.u32 %r3, %ctaid.x;\nmov.u32 %r2, %tid.x;", False),
    ],
)
def test_only_numbers_of_labels_and_registers_are_names(old: str, new: str, expected: bool) -> None:
    assert old in OLD
    assert only_renamed(diff(OLD.replace(old, new))) is expected
