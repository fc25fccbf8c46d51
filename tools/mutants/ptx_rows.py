"""Mutations of the checked-in PTX, kernel by kernel: what a broken compiler, a hand edit or a bad merge would do."""

# Rows hold texts as they stand in the kernels; broken lines would hide what is replaced.
# ruff: noqa: E501

from __future__ import annotations

from model import Mutant

_SUB = r"sub\.rn\.f32 (%f\d+), (%f\d+), (%f\d+);"
_FMA = r"fma\.rn\.f32 (%f\d+), (%f\d+), (%f\d+), (%f\d+);"
_BARRIER = r"bar\.sync 0;"
_HALF = r"shr\.s32 (%r\d+), (%r\d+), 1;"
_MORE = r"setp\.gt\.s32 (%p\d+), (%r\d+), 3;"
_BELOW = r"setp\.ge\.s64 (%p\d+), (%rd\d+), (%rd\d+);"
_ADD = r"(?<=\t)add\.rn\.f32"
_POWER_OF_TWO = "the length is a power of two by contract, and {} for 1, 2, 4, 8, ..."

# (name, kernel, nth, find, put, imitates[, equivalent])
_Row = tuple[str, str, int, str, str, str] | tuple[str, str, int, str, str, str, str]

_RECURRENCE: tuple[_Row, ...] = (
    ("k1-swapped", "fc_ssm_recurrence", 0, _SUB, r"sub.rn.f32 \1, \3, \2;", "swapped operands: pred - v"),
    ("k1-fma-swapped", "fc_ssm_recurrence", 3, _FMA, r"fma.rn.f32 \1, \2, \4, \3;", "swapped operands: k*r + delta"),
    ("k1-barrier-0", "fc_ssm_recurrence", 0, _BARRIER, "", "dropped barrier, before the first tree"),
    ("k1-barrier-1", "fc_ssm_recurrence", 1, _BARRIER, "", "dropped barrier, in the first tree"),
    ("k1-barrier-2", "fc_ssm_recurrence", 2, _BARRIER, "", "dropped barrier, after the first sum is read"),
    ("k1-barrier-5", "fc_ssm_recurrence", 5, _BARRIER, "", "dropped barrier, the last",
     "after it no thread touches shared memory again, so it orders nothing"),
    ("k1-tree-end-2", "fc_ssm_recurrence", 0, _MORE, r"setp.gt.s32 \1, \2, 2;", "off-by-one bound of the tree",
     _POWER_OF_TWO.format("x > 2 is x > 3")),
    ("k1-tree-end-4", "fc_ssm_recurrence", 0, _MORE, r"setp.gt.s32 \1, \2, 4;", "off-by-one bound of the tree"),
    ("k1-stride", "fc_ssm_recurrence", 0, r"mul\.wide\.u32 (%rd\d+), (%r\d+), 4;", r"mul.wide.u32 \1, \2, 8;",
     "wrong stride: every second head's decay"),
    ("k1-shared-offset", "fc_ssm_recurrence", 0, r"\[shared\]", "[shared+4]", "wrong state space offset"),
    ("k1-predicate", "fc_ssm_recurrence", 0, r"@%p7 bra \S+;", "", "removed predicate: every thread stores y",
     "every thread of the block has the same sum, read from the same place, and stores the same bits to one address"),
    ("k1-exp-immediate", "fc_ssm_recurrence", 0, "0f3FB8AA3B", "0f3FB8AA3C", "wrong immediate: log2(e) one ulp off"),
    ("k8-barrier-0", "fc_ssm_recurrence_seq", 0, _BARRIER, "", "dropped barrier"),
    ("k8-barrier-5", "fc_ssm_recurrence_seq", 5, _BARRIER, "", "dropped barrier, the last of a position"),
    ("k8-stride", "fc_ssm_recurrence_seq", 0, r"mul\.wide\.s32 (%rd\d+), (%r\d+), (%r\d+);",
     r"mul.wide.s32 \1, \3, \3;", "wrong stride between positions: S*S for heads*S"),
    ("k8-start-1", "fc_ssm_recurrence_seq", 0, r"mov\.u32 (%r\d+), 0;", r"mov.u32 \1, 1;",
     "off-by-one: the last position is left out"),
    ("k8-register", "fc_ssm_recurrence_seq", 0, r"mul\.rn\.f32 (%f\d+), %f40, %f3;", r"mul.rn.f32 \1, %f6, %f3;",
     "wrong register: y from the old row"),
    ("k8-guard", "fc_ssm_recurrence_seq", 0, r"setp\.lt\.s32 (%p\d+), (%r\d+), 1;", r"setp.lt.s32 \1, \2, 2;",
     "wrong immediate: n = 1 does nothing"),
    ("k8-snaps-test", "fc_ssm_recurrence_seq", 0, r"setp\.eq\.s64 (%p\d+), (%rd\d+), 0;", r"setp.eq.s64 \1, \2, 1;",
     "wrong immediate: snapshots are stored through NULL"),
    ("k9-offset", "fc_ssm_recurrence_seq_unroll128", 0, r"\+256\]", "+252]", "wrong offset in the first step of the tree"),
    ("k9-barrier", "fc_ssm_recurrence_seq_unroll128", 1, _BARRIER, "", "dropped barrier"),
    ("k9-barrier-warp", "fc_ssm_recurrence_seq_unroll128", 6, _BARRIER, "", "dropped barrier within one warp",
     "the threads that it orders are of one warp, which runs in lockstep on sm_37; from sm_70 on it would be a race"),
    ("k9-bound", "fc_ssm_recurrence_seq_unroll128", 0, r"setp\.gt\.s32 (%p\d+), (%r\d+), 31;",
     r"setp.gt.s32 \1, \2, 30;", "off-by-one bound of the tree"),
    ("k9-guard", "fc_ssm_recurrence_seq_unroll128", 0, r"setp\.ne\.s32 (%p\d+), (%r\d+), 128;",
     r"setp.gt.s32 \1, \2, 256;", "the guard on S accepts others"),
    ("k9-sign", "fc_ssm_recurrence_seq_unroll128", 5, _ADD, "sub.rn.f32", "another instruction: subtract for add"),
    ("k10-rounding", "fc_ssm_recurrence_seq_warp", 3, r"fma\.rn\.f32", "fma.rz.f32", "another rounding"),
    ("k10-lane-mask", "fc_ssm_recurrence_seq_warp", 0, r"mov\.u32 (%r\d+), 31;", r"mov.u32 \1, 15;",
     "wrong immediate: shuffles clamp at lane 15"),
    ("k10-shuffle-kind", "fc_ssm_recurrence_seq_warp", 4, r"shfl\.bfly\.b32", "shfl.down.b32",
     "another shuffle: only lane 0 has the sum"),
    ("k10-barrier", "fc_ssm_recurrence_seq_warp", 0, _BARRIER, "", "dropped barrier: the decays are not there yet"),
    ("k10-row", "fc_ssm_recurrence_seq_warp", 0, r"shr\.u32 (%r\d+), (%r\d+), 5;", r"shr.u32 \1, \2, 6;",
     "wrong immediate: two warps on one row"),
    ("k10-stride", "fc_ssm_recurrence_seq_warp", 0, r"shl\.b64 (%rd\d+), (%rd\d+), 16;", r"shl.b64 \1, \2, 15;",
     "wrong stride between snapshots"),
    ("k10-y-lane", "fc_ssm_recurrence_seq_warp", 0, r"setp\.ne\.s32 (%p\d+), (%r\d+), 0;", r"setp.ne.s32 \1, \2, 7;",
     "wrong lane stores y", "the butterfly leaves the sum in every lane of the warp, the same bits"),
    ("k12-slot", "fc_ssm_recurrence_slots", 0, r"%ctaid\.z", "%ctaid.y", "wrong register: the head for the slot"),
    ("k12-rounding", "fc_ssm_recurrence_slots", 0, r"mul\.rn\.f32", "mul.rp.f32", "another rounding of the decay"),
    ("k12-store", "fc_ssm_recurrence_slots", 0, r"\t+st\.global\.f32 [^;]*%f6;\n", "", "the state is not written back"),
    ("k13-products", "fc_ssm_recurrence_slots_2pass", 2, r"mul\.rn\.f32 (%f\d+), (%f\d+), (%f\d+);",
     r"mul.rn.f32 \1, \2, \2;", "wrong register: r*r for r*q"),
    ("k13-barrier", "fc_ssm_recurrence_slots_2pass", 1, _BARRIER, "", "dropped barrier"),
    ("k13-suffix", "fc_ssm_recurrence_slots_2pass", 4, r"mul\.rn\.f32", "mul.f32", "dropped rounding suffix of delta",
     "executes as the same multiplication; its uses are factors of `fma.rn` and `mul.rn`, into which nothing can be fused"),
    ("k13-suffixes", "fc_ssm_recurrence_slots_2pass", 0, r"mul\.rn(\.f32 %f42[\s\S]*?)add\.rn", r"mul\1add",
     "dropped rounding suffixes: ptxas may fuse qk*delta into the sum",
     "executes as the same two operations unless an assembler fuses them, which `audit-ptx` counts"),
    ("k13-delta", "fc_ssm_recurrence_slots_2pass", 0, r"ld\.shared\.f32 (%f\d+), \[shared\];",
     r"ld.shared.f32 \1, [%rd36];", "wrong register: another thread's sum"),
)  # fmt: skip

_CONVOLUTION: tuple[_Row, ...] = (
    ("k2-bound", "fc_ssm_conv1d_silu", 0, _BELOW, r"setp.gt.s64 \1, \2, \3;", "off-by-one bound of the channels"),
    ("k2-wide-step", "fc_ssm_conv1d_silu", 0, r"\+-4\]", "+-8]", "wrong offset: the wide filter's history moves by two"),
    ("k2-wide-end", "fc_ssm_conv1d_silu", 0, r"setp\.lt\.s32 (%p\d+), (%r\d+), (%r19);", r"setp.le.s32 \1, \2, \3;",
     "off-by-one bound of the taps"),
    ("k2-tap", "fc_ssm_conv1d_silu", 0, r"add\.s32 (%r\d+), (%r4), -2;", r"add.s32 \1, \2, -3;", "wrong immediate"),
    ("k2-guard", "fc_ssm_conv1d_silu", 0, r"setp\.gt\.s32 (%p\d+), (%r\d+), 4;", r"setp.gt.s32 \1, \2, 3;",
     "the wide path for filters of 4 taps",
     "both paths do the same operations in the same order; the contract has one formula for all filters"),
    ("k2-order", "fc_ssm_conv1d_silu", 0, r"neg\.f32 (%f\d+), (%f\d+);", r"mov.f32 \1, \2;", "a sign lost"),
    ("k7-window", "fc_ssm_conv1d_silu_seq", 0, r"mov\.f32 %f124, %f123;", "mov.f32 %f124, %f125;", "wrong register"),
    ("k7-suffix", "fc_ssm_conv1d_silu_seq", 0, r"mul\.rn\.f32", "mul.f32", "dropped rounding suffix",
     "executes as the same multiplication unless an assembler fuses it, and its only uses are the addends of `fma.rn`"),
    ("k7-snap-stride", "fc_ssm_conv1d_silu_seq", 0, r"shl\.b64 %rd13, (%rd\d+), 2;", r"shl.b64 %rd13, \1, 1;",
     "wrong stride between snapshots"),
    ("k7-guard", "fc_ssm_conv1d_silu_seq", 0, r"setp\.gt\.u32 (%p\d+), (%r\d+), 3;", r"setp.gt.u32 \1, \2, 4;",
     "the guard on 5 taps accepts them"),
    ("k7-final", "fc_ssm_conv1d_silu_seq", 0, r"st\.global\.f32 \[%rd7\+8\], %f123;", "st.global.f32 [%rd7+8], %f124;",
     "wrong register in the history"),
    ("k11-slot", "fc_ssm_conv1d_silu_slots", 0, r"%ctaid\.y", "%ctaid.z", "wrong register: every user on slot 0"),
    ("k11-space", "fc_ssm_conv1d_silu_slots", 0, r"ld\.global\.f32", "ld.shared.f32", "wrong state space"),
    ("k11-division", "fc_ssm_conv1d_silu_slots", 1, r"div\.rn\.f32", "div.approx.f32", "another division"),
    ("k11-division-wide", "fc_ssm_conv1d_silu_slots", 0, r"div\.rn\.f32", "div.approx.f32", "another division, for filters of more than 4 taps"),
)  # fmt: skip

_OTHERS: tuple[_Row, ...] = (
    ("k3-square", "fc_ssm_gated_norm", 0, r"fma\.rn\.f32 (%f44), (%f9), %f9, (%f44);", r"fma.rn.f32 \1, \2, \3, \3;",
     "wrong register in the sum of squares"),
    ("k3-step", "fc_ssm_gated_norm", 0, r"mul\.wide\.s32 (%rd5), (%r\d+), 4;", r"mul.wide.s32 \1, \2, 2;",
     "wrong stride of the loop"),
    ("k3-bound", "fc_ssm_gated_norm", 0, r"setp\.lt\.s32 %p2, (%r\d+), (%r\d+);", r"setp.le.s32 %p2, \1, \2;",
     "off-by-one bound of the loop"),
    ("k3-barrier", "fc_ssm_gated_norm", 1, _BARRIER, "", "dropped barrier"),
    ("k3-barrier-last", "fc_ssm_gated_norm", 2, _BARRIER, "", "dropped barrier, the last",
     "after it no thread touches shared memory again, so it orders nothing"),
    ("k3-root", "fc_ssm_gated_norm", 0, r"sqrt\.rn\.f32", "sqrt.approx.f32", "another root",
     "not another number but a less exact one: within the 16 ulp that a norm is allowed, and no other kernel has the same bits"),
    ("k4-bound", "fc_sigmoid", 0, _BELOW, r"setp.gt.s64 \1, \2, \3;", "off-by-one bound"),
    ("k4-index", "fc_sigmoid", 0, r"%ntid\.x", "%nctaid.x", "wrong register: the grid for the block"),
    ("k4-predicate", "fc_sigmoid", 0, r"@(%p\d+) bra", r"@!\1 bra", "negated predicate"),
    ("k4-unguarded", "fc_sigmoid", 0, r"@%p\d+ bra \S+;", "", "removed predicate: no bound at all"),
    ("k4-suffix", "fc_sigmoid", 0, _ADD, "add.f32", "dropped rounding suffix: ptxas may fuse expf's product into it",
     "executes as the same addition unless an assembler fuses it, which `audit-ptx` counts"),
    ("k4-ftz", "fc_sigmoid", 0, r"mul\.f32", "mul.ftz.f32", "subnormal numbers flushed in exp",
     "what is flushed is below 2^-126, and is added to 1"),
    ("k4-sat", "fc_sigmoid", 0, r"cvt\.sat\.f32\.f32", "cvt.f32.f32", "dropped modifier: exp does not clamp"),
    ("k4-reciprocal", "fc_sigmoid", 0, r"rcp\.rn\.f32", "rcp.approx.ftz.f32", "another reciprocal"),
    ("k5-branch", "fc_ssm_decay_gate", 0, "0f41A00000", "0f42A00000", "wrong immediate: the branch at 80, not 20",
     "between 20 and 80, log1p(exp(v)) and v differ by less than exp(-20), which the last bit of v does not show"),
    ("k5-branch-low", "fc_ssm_decay_gate", 0, "0f41A00000", "0f40A00000", "wrong immediate: the branch at 5"),
    ("k5-branch-high", "fc_ssm_decay_gate", 0, "0f41A00000", "0f43A00000", "wrong immediate: the branch at 320"),
    ("k5-compare", "fc_ssm_decay_gate", 0, r"setp\.gt\.f32", "setp.gtu.f32", "NaN takes the branch",
     "there v is the result, a NaN, as log1p(exp(NaN)) is"),
    ("k5-operands", "fc_ssm_decay_gate", 0, r"ld\.global\.nc\.f32 (%f\d+), \[%rd15\]", r"ld.global.nc.f32 \1, [%rd13]",
     "wrong register: dt for a"),
    ("k5-coefficient", "fc_ssm_decay_gate", 0, "0f3EAAAAE6", "0f3EAAABE6", "wrong immediate in log1p"),
    ("k6-stride", "fc_ssm_qknorm_gqa", 0, r"mul\.wide\.s32 (%rd\d+), (%r\d+), 4;", r"mul.wide.s32 \1, \2, 8;",
     "wrong stride"),
    ("k6-max", "fc_ssm_qknorm_gqa", 1, r"max\.f32", "min.f32", "another instruction: min for max"),
    ("k6-barrier", "fc_ssm_qknorm_gqa", 1, _BARRIER, "", "dropped barrier"),
    ("k6-swapped", "fc_ssm_qknorm_gqa", 0, r"st\.global\.f32 \[(%rd\d+)\], %f3;", r"st.global.f32 [\1], %f4;",
     "wrong register: k where q belongs, in the unrolled loop"),
    ("k6-swapped-rest", "fc_ssm_qknorm_gqa", 4, r"st\.global\.f32 \[(%rd\d+)\], %f3;", r"st.global.f32 [\1], %f4;",
     "wrong register: k where q belongs, in the loop for the rest"),
    ("k14-modulo", "fc_ssm_decay_gate_nx", 0, r"rem\.s32", "div.s32", "another instruction: div for rem"),
    ("k14-narrow", "fc_ssm_decay_gate_nx", 0, r"cvt\.u32\.u64 (%r\d+), (%rd\d+);", r"cvt.u8.u64 \1, \2;",
     "a conversion of another width"),
    ("k14-bound", "fc_ssm_decay_gate_nx", 0, _BELOW, r"setp.gt.s64 \1, \2, \3;", "off-by-one bound"),
    ("k15-groups", "fc_ssm_qknorm_gqa_nx", 0, r"and\.b32 (%r\d+), (%r\d+), 3;", r"and.b32 \1, \2, 1;",
     "wrong immediate in the unrolled loop over the groups"),
    ("k15-slice", "fc_ssm_qknorm_gqa_nx", 0, r"setp\.ge\.s32 (%p9), (%r\d+), (%r\d+);", r"setp.gt.s32 \1, \2, \3;",
     "off-by-one bound of v's slice",
     "a slice has kv_groups*S elements and a block S threads: no thread's number is the slice's length, or the loop's own test ends it"),
    ("k15-position", "fc_ssm_qknorm_gqa_nx", 0, r"mul\.wide\.s32 (%rd\d+), (%r\d+), 2;", r"mul.wide.s32 \1, \2, 1;",
     "wrong stride between positions"),
    ("no-kernels", "", 0, r"(?s)\.visible \.entry.*", "", "18: an empty PTX table, as a host without a compiler makes"),
)  # fmt: skip

ROWS: tuple[Mutant, ...] = tuple(
    Mutant(row[0], row[1], row[3], row[4], row[5], row[2], row[6] if len(row) == 7 else "")
    for row in (*_RECURRENCE, *_CONVOLUTION, *_OTHERS)
)
