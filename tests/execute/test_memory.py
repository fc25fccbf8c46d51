"""ld and st of every type, vector width, space and address shape, against bytes counted in NumPy and struct."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from execute.small import kernel, run, words

from ssmtool.execute import KernelFaultError, Module, UnsupportedError

INTEGERS = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64")
REALS = ("f32", "f64")
FORMS = [(kind, count) for kind in (*INTEGERS, *REALS) for count in (1, 2, 4) if count * int(kind[1:]) <= 128]
BYTES = 4096
DATA = np.random.default_rng(3).integers(0, 256, BYTES, dtype=np.uint8)
THREADS = 45  # not whole warps

SHAPES = {"shared by all": lambda _: 3, "a step": lambda i: i, "scattered": lambda i: (i * 13 + 5) % 64}
_INDEX = {
    "shared by all": "mov.u32 %r0, 3;",
    "a step": "mov.u32 %r0, %i;",
    "scattered": "mad.lo.u32 %r0, %i, 13, 5; and.b32 %r0, %r0, 63;",
}
# How 4096 bytes get into a space, and where they then lie (64-bit registers and 32-bit ones).
_PLACES = {
    "global": ("", "", "%rd0"),
    "": ("", "", "%rd0"),
    "shared": (".shared .align 16 .b8 s[4096];", "shared", "s"),
    "local": (".local .align 16 .b8 l[4096];", "local", "l"),
    "const": ("", "", "c"),
}
_CONST = f".const .align 16 .b8 c[{BYTES}] = {{{', '.join(map(str, DATA))}}};\n"


def _copied(space: str, name: str) -> str:
    """Every thread copies all the bytes: no barrier is needed, since all write the same."""
    return f"""
    mov.u64 %rd5, {name}; mov.u64 %rd6, %rd0; mov.u32 %r5, 0;
    COPY: ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd6]; st.{space}.v4.u32 [%rd5], {{%r1, %r2, %r3, %r4}};
    add.u64 %rd5, %rd5, 16; add.u64 %rd6, %rd6, 16; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 256; @%p1 bra COPY;
    """


def _registers(kind: str, count: int) -> list[str]:
    stem = {"f32": "%f", "f64": "%fd"}.get(kind, "%rd1")
    return [f"{stem}{k}" for k in range(count)]


def _listed(registers: list[str]) -> str:
    return registers[0] if len(registers) == 1 else f"{{{', '.join(registers)}}}"


def _as_word(kind: str, data: bytes) -> int:
    """What a 64-bit register holds after a load: signed types extended by sign, others by zero."""
    value = int.from_bytes(data, "little", signed=kind[0] == "s")
    return value & (2**64 - 1)


def _loads(space: str, shape: str) -> str:
    head, copied, base = _PLACES[space]
    lines = [_copied(copied, base)] if copied else []
    lines += [_INDEX[shape], "ld.param.u64 %rd1, [out];", f"mad.wide.u32 %rd1, %i, {32 * len(FORMS)}, %rd1;"]
    for number, (kind, count) in enumerate(FORMS):
        size = count * int(kind[1:]) // 8
        lines.append(f"mov.u64 %rd3, {base}; mad.wide.u32 %rd3, %r0, {size}, %rd3;")
        found = _registers(kind, count)
        dot = f".{space}" if space else ""
        lines.append(
            f"ld{dot}{'' if count == 1 else f'.v{count}'}.{kind} {_listed(found)}, [%rd3+{16 * (number % 3)}];"
        )
        for k, register in enumerate(found):
            real = {
                "f32": f"mov.b32 %r7, {register}; cvt.u64.u32 %rd2{k}, %r7;",
                "f64": f"mov.b64 %rd2{k}, {register};",
            }
            lines.append(real.get(kind, f"mov.u64 %rd2{k}, {register};"))
        # By twos: the bounds of the stores are half of what LLVM compiles here.
        for k in range(0, count, 2):
            words = f"{{%rd2{k}, %rd2{k + 1}}}" if count > 1 else "%rd20"
            lines.append(f"st.global{'.v2' if count > 1 else ''}.u64 [%rd1+{32 * number + 8 * k}], {words};")
    return kernel("\n".join(lines), ".param .u64 data, .param .u64 out", _CONST if space == "const" else "", head)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("space", _PLACES)
def test_loads_of_every_type_and_width(space: str, shape: str) -> None:
    out = np.zeros((THREADS, len(FORMS), 4), np.uint64)
    run(_loads(space, shape), [DATA.copy(), out], THREADS)
    wanted = np.zeros_like(out)
    for number, (kind, count) in enumerate(FORMS):
        size = int(kind[1:]) // 8
        for thread in range(THREADS):
            at = SHAPES[shape](thread) * size * count + 16 * (number % 3)
            for k in range(count):
                wanted[thread, number, k] = _as_word(kind, DATA[at + k * size : at + (k + 1) * size].tobytes())
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize(
    "word",
    ["volatile", "relaxed.gpu", "acquire.sys", "weak", "ca", "cg", "cs", "lu", "cv", "nc", "L1::evict_last", "L2::64B"],
)
def test_a_load_s_hints_change_nothing(word: str) -> None:
    dot = f"ld.{word}.global" if word in ("volatile", "weak") or "." in word else f"ld.global.{word}"
    out = np.zeros(32, np.uint32)
    body = "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %i, 4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2;"
    run(
        kernel(f"{body} {dot}.u32 %r1, [%rd3]; st.global.u32 [%rd1], %r1;", ".param .u64 a, .param .u64 out"),
        [DATA, out],
    )
    assert np.array_equal(out, DATA[:128].view(np.uint32))


def test_ldu_loads() -> None:
    out = np.zeros(2, np.uint32)
    body = "ld.param.u64 %rd1, [out]; ldu.global.v2.u32 {%r1, %r2}, [%rd0+8]; st.global.v2.u32 [%rd1], {%r1, %r2};"
    run(kernel(body, ".param .u64 a, .param .u64 out"), [DATA, out])
    assert np.array_equal(out, DATA[8:16].view(np.uint32))


@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16", "u32", "s32"])
def test_a_narrow_load_fills_whatever_register_it_is_given(kind: str) -> None:
    size = int(kind[1:]) // 8
    lines, wanted = (
        ["ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %i, 24, %rd1;", f"mad.wide.u32 %rd2, %i, {size}, %rd0;"],
        [],
    )
    for at, (register, bits) in enumerate((("%h1", 16), ("%r1", 32), ("%rd9", 64))):
        if bits >= int(kind[1:]):
            lines.append(f"ld.global.{kind} {register}, [%rd2]; st.global.b{bits} [%rd1+{8 * at}], {register};")
            wanted.append((at, bits))
    out = np.zeros((32, 3), np.uint64)
    run(kernel("\n".join(lines), ".param .u64 a, .param .u64 out"), [DATA, out])
    for at, bits in wanted:
        for thread in range(32):
            data = DATA[thread * size : (thread + 1) * size].tobytes()
            assert int(out[thread, at]) == _as_word(kind, data) & ((1 << bits) - 1)


def _stores(space: str, shape: str) -> str:
    head, copied, base = _PLACES[space]
    lines = [_copied(copied, base)] if copied else []
    lines += [_INDEX[shape], "mul.lo.u32 %r1, %i, 16843009; add.u32 %r1, %r1, 305419896; cvt.u64.u32 %rd10, %r1;"]
    lines += ["not.b64 %rd11, %rd10; shl.b64 %rd12, %rd10, 7; xor.b64 %rd13, %rd11, %rd12;"]
    lines += [f"mov.b64 %fd{k}, %rd1{k}; cvt.u32.u64 %r2, %rd1{k}; mov.b32 %f{k}, %r2;" for k in range(4)]
    lines += ["setp.ne.u32 %p2, %i, 7;"]
    for kind, count in _stored():
        size = count * int(kind[1:]) // 8
        lines.append(f"mov.u64 %rd3, {base}; mad.wide.u32 %rd3, %r0, {size}, %rd3;")
        dot = f".{space}" if space else ""
        guard = "@%p2 " if kind[0] == "u" else ""
        vector = "" if count == 1 else f".v{count}"
        lines.append(
            f"{guard}st{dot}{vector}.{kind} [%rd3+{_offset(kind, count)}], {_listed(_registers(kind, count))};"
        )
    if copied:  # and out again, by the first thread of shared memory, by every thread from its own part of local memory
        lines.append("bar.sync 0;" if space == "shared" else "")
        lines.append(
            f"ld.param.u64 %rd6, [out]; mad.wide.u32 %rd6, %i, {BYTES if space == 'local' else 0}, %rd6; "
            f"mov.u64 %rd5, {base}; mov.u32 %r5, 0;"
        )
        lines.append(
            f"BACK: ld.{space}.u32 %r1, [%rd5]; st.global.u32 [%rd6], %r1; add.u64 %rd5, %rd5, 4;"
            " add.u64 %rd6, %rd6, 4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 1024; @%p1 bra BACK;"
        )
    return kernel("\n".join(lines), ".param .u64 data, .param .u64 out", head=head)


def _stored() -> list[tuple[str, int]]:
    """Forms whose places in the 4096 bytes do not meet."""
    return [("b8", 1), ("u8", 2), ("s16", 1), ("u16", 4), ("u32", 1), ("f32", 2), ("b32", 4), ("f64", 1)]


def _offset(kind: str, count: int) -> int:
    before = _stored()[: _stored().index((kind, count))]
    return sum(-(-64 * c * int(k[1:]) // 8 // 16) * 16 for k, c in before)


def _after_stores(data: bytes, threads: list[int], shape: str) -> bytes:
    made = bytearray(data)
    for kind, count in _stored():
        size = int(kind[1:]) // 8
        for i in threads:
            if kind[0] == "u" and i == 7:
                continue
            first = (i * 16843009 + 305419896) & 0xFFFFFFFF
            second = ~first & (2**64 - 1)
            third = first << 7 & (2**64 - 1)
            values = [first, second, third, second ^ third]
            at = _offset(kind, count) + SHAPES[shape](i) * size * count
            for k in range(count):
                made[at + k * size : at + (k + 1) * size] = (values[k] & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return bytes(made)


@pytest.mark.parametrize("check", ["bounds", "none"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("space", ["global", "", "shared", "local"])
def test_stores_of_every_type_and_width_touch_their_bytes_only(space: str, shape: str, check: str) -> None:
    data, out = DATA.copy(), np.zeros((40, BYTES), np.uint8)
    run(_stores(space, shape), [data, out], 40, check=check)
    if space == "local":
        for thread in range(40):
            assert out[thread].tobytes() == _after_stores(DATA.tobytes(), [thread], shape), thread
    else:
        found = out[0] if space == "shared" else data
        assert found.tobytes() == _after_stores(DATA.tobytes(), list(range(40)), shape)


def test_of_several_lanes_at_one_place_one_wins_whole() -> None:
    out = np.zeros(4, np.uint32)
    run(kernel("mov.u32 %r1, %i; not.b32 %r2, %i; st.global.v2.u32 [%rd0], {%r1, %r2};"), [out])
    assert out[0] < 32
    assert out[1] == ~out[0] & 0xFFFFFFFF


@pytest.mark.parametrize(("kind", "count"), [("u16", 1), ("u32", 1), ("u64", 1), ("u32", 2), ("u32", 4), ("u8", 4)])
def test_an_access_must_be_aligned_to_its_whole_size(kind: str, count: int) -> None:
    registers = _listed(_registers(kind, count))
    vector = "" if count == 1 else f".v{count}"
    size = count * int(kind[1:]) // 8
    with pytest.raises(KernelFaultError, match=f"no multiple of {size}"):
        run(kernel(f"ld.global{vector}.{kind} {registers}, [%rd0+{size // 2}];"), [np.zeros(64, np.uint8)])


def test_memory_of_a_thread_and_of_a_block_starts_anew() -> None:
    """Dynamic shared memory lies behind the static, aligned; local memory is apart for each thread."""
    head = ".shared .align 4 .b8 first[20]; .local .align 8 .b8 l[16];"
    module = ".extern .shared .align 16 .b8 rest[];\n"
    body = """
    mov.u32 %r1, first; mov.u32 %r2, rest; sub.u32 %r3, %r2, %r1; and.b32 %r4, %r2, 15;
    mov.u64 %rd5, l; st.local.u32 [%rd5+4], %i; ld.local.u32 %r5, [%rd5+4];
    shl.b32 %r6, %i, 2; add.u32 %r6, %r6, %r2; st.shared.u32 [%r6], %i; bar.sync 0; ld.shared.u32 %r7, [rest+12];
    st.global.u32 [%rd1], %r3; st.global.u32 [%rd1+4], %r4; st.global.u32 [%rd1+8], %r5; st.global.u32 [%rd1+12], %r7;
    """
    found = words(body, 4, 64, head=head, module=module, shared_bytes=256, grid=3)
    assert (found[:, 0] == 32).all()
    assert (found[:, 1] == 0).all()
    assert (found[:, 2] == np.tile(np.arange(64), 3)).all()
    assert (found[:, 3] == 3).all()


def test_generic_addresses_reach_every_space() -> None:
    head = ".shared .align 4 .b8 s[256]; .local .align 4 .b8 l[8];"
    module = ".global .align 4 .u32 g[2] = {11, 22};\n.const .align 4 .u32 c[2] = {33, 44};\n"
    body = """
    mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5; mov.u64 %rd6, l; cvta.local.u64 %rd6, %rd6;
    mov.u64 %rd7, g; cvta.global.u64 %rd7, %rd7; mov.u64 %rd8, c; cvta.const.u64 %rd8, %rd8;
    mad.wide.u32 %rd9, %i, 4, %rd5; st.u32 [%rd9], %i; st.u32 [%rd6+4], %i; bar.sync 0;
    ld.u32 %r1, [%rd9]; ld.u32 %r2, [%rd6+4]; ld.u32 %r3, [%rd7+4]; ld.u32 %r4, [%rd8];
    cvta.to.shared.u64 %rd10, %rd9; ld.shared.u32 %r5, [%rd10];
    cvta.to.local.u64 %rd10, %rd6; ld.local.u32 %r6, [%rd10+4];
    isspacep.shared %p1, %rd9; isspacep.local %p2, %rd6; isspacep.global %p3, %rd7; isspacep.global %p4, %rd9;
    isspacep.shared %p5, %rd6; isspacep.local %p6, %rd7;
    selp.u32 %r7, 1, 0, %p1; selp.u32 %r8, 2, 0, %p2; selp.u32 %r9, 4, 0, %p3; selp.u32 %r10, 8, 0, %p4;
    selp.u32 %r11, 16, 0, %p5; selp.u32 %r12, 32, 0, %p6;
    or.b32 %r7, %r7, %r8; or.b32 %r7, %r7, %r9; or.b32 %r7, %r7, %r10; or.b32 %r7, %r7, %r11; or.b32 %r7, %r7, %r12;
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r7};
    """
    found = words(body, 8, 64, head=head, module=module)
    own = np.arange(64)
    for column, wanted in enumerate((own, own, 22, 33, own, own, 7)):
        assert (found[:, column] == wanted).all(), column


def test_module_variables_have_their_initial_values_addresses_of_others_among_them() -> None:
    module = """
    .global .align 8 .u64 table[3] = {g, g+4, 5};
    .global .align 4 .f32 g[3] = {1.5, 0f40200000, 3};
    .const .align 2 .s16 c[4] = {-1, -2};
    .global .align 4 .u32 plain = 77;
    """
    body = """
    ld.global.u64 %rd5, [table+8]; ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [g+8]; ld.const.s16 %r1, [c+2];
    ld.const.s16 %r2, [c+6]; ld.global.u32 %r3, [plain]; st.global.f32 [%rd1], %f1; st.global.f32 [%rd1+4], %f2;
    st.global.u32 [%rd1+8], %r1; st.global.u32 [%rd1+12], %r2; st.global.u32 [%rd1+16], %r3; mov.u64 %rd6, plain;
    atom.global.add.u32 %r4, [plain], 1;
    """
    (first, *_) = words(body, 5, 32, module=module)
    assert struct.pack("<5I", *map(int, first)) == struct.pack("<ffiII", 2.5, 3.0, -2, 0, 77)


def test_parameters_of_every_type_and_a_struct_by_value() -> None:
    params = ".param .u64 out, .param .u8 a, .param .s16 b, .param .f64 c, .param .align 8 .b8 d[24]"
    body = """
    ld.param.u8 %r1, [a]; ld.param.s16 %r2, [b]; ld.param.f64 %fd1, [c]; ld.param.u64 %rd5, [d+16];
    ld.param.v2.u32 {%r3, %r4}, [d+8]; ld.param.s8 %r5, [d+1];
    st.global.v4.u32 [%rd0], {%r1, %r2, %r3, %r4}; st.global.f64 [%rd0+16], %fd1; st.global.u64 [%rd0+24], %rd5;
    st.global.u32 [%rd0+32], %r5;
    """
    out = np.zeros(10, np.uint32)
    given = bytes([0, 0x80, 0, 0, 0, 0, 0, 0]) + struct.pack("<IIQ", 5, 6, 1 << 60)
    run(kernel(body, params), [out, 200, -3, 2.5, given])
    wanted = struct.pack("<IiIIdQi", 200, -3, 5, 6, 2.5, 1 << 60, -128)
    assert out.tobytes()[:36] == wanted


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd0, {%r1}];", "tex"),
        ("suld.b.1d.b32.trap %r1, [%rd0, {%r1}];", "suld"),
        ("ld.global.b128 %rd1, [%rd0];", "b128"),
        ("st.const.u32 [%rd0], %r1;", "const"),
        ("cp.async.ca.shared.global [%rd0], [%rd1], 4;", "cp.async"),
        ("red.async.relaxed.cluster.global.add.u32 [%rd0], %r1, [%rd1];", "red.async"),
        ("ld.global.v2.u32 %r1, [%rd0];", "v2"),
        ("mbarrier.init.shared.b64 [%rd0], 1;", "mbarrier"),
    ],
)
def test_what_is_not_executed_is_refused_before_anything_runs(body: str, word: str) -> None:
    out = np.zeros(64, np.uint32)
    with pytest.raises(UnsupportedError, match=word) as caught:
        Module(kernel(f"st.global.u32 [%rd0], 1;\n{body}")).launch("k", 1, 32, [out])
    assert caught.value.line is not None
    assert not out.any()


def test_volatile_and_plain_mov_forms() -> None:
    body = """
    mov.u32 %r1, 0x12345678; mov.b32 {%h1, %h2}, %r1; mov.b32 %r2, {%h2, %h1}; mov.b64 %rd5, {%r1, %r2};
    mov.b64 {%r3, %r4}, %rd5; mov.b64 {%h3, %h4, %h5, %h6}, %rd5; mov.b64 %rd6, {%h6, %h5, %h4, %h3};
    mov.b64 {%r5, _}, %rd6; mov.f32 %f1, 0f3F800000; mov.b32 %r6, %f1; mov.f64 %fd1, 0d3FF0000000000000;
    mov.b64 %rd7, %fd1; shr.u64 %rd7, %rd7, 32; cvt.u32.u64 %r7, %rd7; mov.pred %p1, %p1; setp.eq.u32 %p1, %i, 3;
    mov.pred %p2, %p1; selp.b32 %r8, 1, 0, %p2;
    st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r8};
    """
    found = words(body, 8)
    wanted = [0x56781234, 0x12345678, 0x56781234, 0x12345678, 0x3F800000, 0x3FF00000]
    assert (found[:, :6] == wanted).all()
    assert found[:, 6].tolist() == [int(i == 3) for i in range(32)]
