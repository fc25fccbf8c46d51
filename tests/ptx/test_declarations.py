from __future__ import annotations

import struct

import pytest

from ssmtool.ptx import PtxSyntaxError, Variable
from ssmtool.ptx.declarations import parse_declaration
from ssmtool.ptx.initialisers import Relocation, initial_value
from ssmtool.ptx.source import SourceText


def declare(text: str) -> tuple[SourceText, list[Variable]]:
    source = SourceText(text)
    return source, parse_declaration(source, 0, len(text))


@pytest.mark.parametrize(
    ("text", "size", "align"),
    [
        (".local .align 16 .b8 __local_depot0[96]", 96, 16),
        (".shared .f32 x", 4, 4),
        (".const .align 8 .b64 a[3][0x2]", 48, 8),
        (".global .v4 .f32 q[2]", 32, 16),
        (".extern .shared .align 16 .b8 dynamic[]", 0, 16),
        (".shared .b16 a[(1 << 4) + 1]", 34, 2),
        (".global .b8 s[] = {1, 2, 3}", 3, 1),
        (".global .b32 m[][2] = {{1, 2}, {3, 4}, {5, 6}}", 24, 4),
        (".reg .pred p", 1, 1),
        (".global .attribute(.managed) .s32 g", 4, 4),
    ],
)
def test_size_and_alignment(text: str, size: int, align: int) -> None:
    _, (variable,) = declare(text)
    assert (variable.size, variable.alignment) == (size, align)


def test_one_declaration_may_declare_many() -> None:
    _, variables = declare(".reg .b32 %r<5>, a, %s1<2>")
    assert [(v.name, v.count, v.type) for v in variables] == [("%r", 5, "b32"), ("a", None, "b32"), ("%s1", 2, "b32")]
    source, variables = declare(".global .u32 a, b[2] = {1, 2}, c = 3")
    assert [initial_value(source, v).data.hex() for v in variables] == ["00000000", "0100000002000000", "03000000"]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (".const .b32 x", bytes(4)),
        (".const .u8 x[4] = {1, 0xFF, -1}", b"\x01\xff\xff\0"),
        (".const .s16 x[2] = {-2, 1 + 2}", struct.pack("<hh", -2, 3)),
        (".const .f32 x[3] = {0f3F800000, 2.5, 3}", struct.pack("<fff", 1, 2.5, 3)),
        (".const .f64 x = 0dBFF0000000000000", struct.pack("<d", -1)),
        (".const .b32 x[2][2] = {{1}, {2, 3}}", struct.pack("<IIII", 1, 0, 2, 3)),
        (".const .b32 x[2][2] = {1, {2, 3}}", struct.pack("<IIII", 1, 0, 2, 3)),
        (".const .b32 x[2][2] = {1, 2, 3}", struct.pack("<IIII", 1, 2, 3, 0)),
        (".const .v2 .f32 x[2] = {{1.0, 2.0}, {3.0}}", struct.pack("<ffff", 1, 2, 3, 0)),
        (".const .b64 x = 0xFFFFFFFFFFFFFFFFU", b"\xff" * 8),
        (".const .b8 x[2] = {}", bytes(2)),
    ],
)
def test_initial_bytes(text: str, data: bytes) -> None:
    source, (variable,) = declare(text)
    initial = initial_value(source, variable)
    assert initial.data == data
    assert initial.relocations == ()


def test_addresses_in_initialisers_are_relocations() -> None:
    source, (variable,) = declare(".global .u64 p[5] = {a, b+8, generic(c), generic(d)-4, generic(e+2)}")
    assert initial_value(source, variable).relocations == (
        Relocation(0, 8, "a", 0, False, 0),
        Relocation(8, 8, "b", 8, False, 0),
        Relocation(16, 8, "c", 0, True, 0),
        Relocation(24, 8, "d", -4, True, 0),
        Relocation(32, 8, "e", 2, True, 0),
    )


def test_an_address_spelled_byte_by_byte() -> None:
    source, (variable,) = declare(".global .b8 p[4] = {7, 0xFF(a), 0xFF00(a+4), 0xFF0000(generic(a))}")
    initial = initial_value(source, variable)
    assert initial.data == b"\x07\0\0\0"
    assert initial.relocations == (
        Relocation(1, 1, "a", 0, False, 0),
        Relocation(2, 1, "a", 4, False, 8),
        Relocation(3, 1, "a", 0, True, 16),
    )


@pytest.mark.parametrize(
    "text",
    [
        ".global .b32",
        ".global .b32 x y",
        ".global .b32 x[-1]",
        ".global .b32 x[a]",
        ".global .align .b32 x",
        ".global .b32 x[2] = {1, 2",
        ".global .b32 x[2] = {1, 2}}",
        ".global .b32 x[1.5]",
    ],
)
def test_malformed_declarations_are_errors(text: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        declare(text)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    "text",
    [
        ".global .b32 x[2] = {1, 2, 3}",
        ".global .b32 x[2] = {{1}}",
        ".global .b32 x[2][2] = {{1, 2, 3}}",
        ".global .b32 x = 1 2",
        ".global .b8 x = 0xFF0(a)",
        ".global .b32 x = generic(5)",
        ".global .f32 x = 1e300",
    ],
)
def test_malformed_initialisers_are_errors(text: str) -> None:
    source, (variable,) = declare(text)
    with pytest.raises(PtxSyntaxError):
        initial_value(source, variable)
