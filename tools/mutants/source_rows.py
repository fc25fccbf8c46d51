"""Mutations of kernels/ssm_gated_delta.cu: what people who write such kernels get wrong, one row each.

The first word of a name is the mistake's place in the list of docs/mutants.md, where it has one.
"""

# Rows hold texts as they stand in the kernels; broken lines would hide what is replaced.
# ruff: noqa: E501

from __future__ import annotations

from model import SOURCE, Mutant

# The row of the state that a block owns, in kernels 1 and 12, and in 8 and 9.
_TOKEN_CELL = (
    "const long long cell = row * state_size + i;\n    const long long in = head * state_size + i;\n    float out;"
)
_SEQ_CELL = "const long long cell = row * state_size + i;\n    long long snap = cell;"
_STEP = "    r = __fmul_rn(r, decay);\n    const float pred = tree_sum(p, i, len, __fmul_rn(r, k), unrolled);"
_UPDATE = "r = __fmaf_rn(k, correction(v, pred, beta), r);"
_READ = "*y = __fmul_rn(scale, tree_sum(p, i, len, __fmul_rn(r, q), unrolled));"
_NORM_HEAD = "const long long vh = (t * kv_groups + r) * n_k_heads + kh;"
_Q_NORM = "__frcp_rn(fmaxf(__fsqrt_rn(shared[0]), eps))"
_GATE = "v > 20.0f ? v : log1pf(expf(v))"
_SHIFT = "    w.a = w.b;\n    w.b = w.c;\n    w.c = x;\n"
_SEQ_WINDOW = "conv_window w = conv_load(conv_state + first, weight + channel * conv_kernel, conv_kernel);"
_SNAP = "        if (snaps)\n            snaps[snap] = r;\n"
_SEQ_STEP = (
    "        r = row_step(shared, i, state_size, r, k[in], q[in], v[row], expf(g[head]), beta[head], scale, unrolled, &out);\n"
    "        if (i == 0)\n            y[row] = out;\n"
)
_SEQ_LOOP = "    for (int t = 0; t < n; ++t) {\n        float out;\n"
_SLOT_HEAD = "const long long head = (long long)blockIdx.z * n_v_heads + blockIdx.y;"
_SLOT_CONV = "conv_token(qkv, weight, conv_state, out, conv_dim, conv_kernel, blockIdx.y);"
_STORE_NEW = "s[cell] = row_step(shared, i, state_size, s[cell],"
_TAPS = (
    "    w.wa = conv_kernel > 3 ? weight[conv_kernel - 4] : 0.0f;\n"
    "    w.wb = conv_kernel > 2 ? weight[conv_kernel - 3] : 0.0f;\n"
    "    w.wc = conv_kernel > 1 ? weight[conv_kernel - 2] : 0.0f;\n"
    "    w.wx = weight[conv_kernel - 1];\n"
)
_FLIPPED = (
    "    w.wa = weight[3 % conv_kernel];\n    w.wb = weight[2 % conv_kernel];\n"
    "    w.wc = weight[1 % conv_kernel];\n    w.wx = weight[0];\n"
)


def _row(name: str, find: str, put: str, imitates: str, equivalent: str = "", *, needs_card: bool = False) -> Mutant:
    return Mutant(name, SOURCE, find, put, imitates, 0, equivalent, needs_card)


ROWS: tuple[Mutant, ...] = (
    _row("1-grouped-heads", _NORM_HEAD, "const long long vh = t * kv_groups * n_k_heads + kh * kv_groups + r;",
         "heads grouped, vh div groups, not interleaved"),
    _row("2-state-transposed", _TOKEN_CELL, _TOKEN_CELL.replace("row * state_size + i", "(head * state_size + i) * "
         "state_size + blockIdx.x", 1), "the state transposed in decode, not in prefill"),
    _row("2-state-transposed-seq", _SEQ_CELL, _SEQ_CELL.replace("row * state_size + i", "(head * state_size + i) * "
         "state_size + blockIdx.x"), "the state transposed in prefill, not in decode"),
    _row("2-state-read-transposed", _STORE_NEW, _STORE_NEW.replace("s[cell],", "s[(head * state_size + i) * state_size "
         "+ blockIdx.x],"), "the state transposed where it is read"),
    _row("3-rsqrt-eps", "fmaxf(__fsqrt_rn(shared[0]), eps)", "__fsqrt_rn(__fadd_rn(shared[0], eps))",
         "sqrt(sum + eps) for max(norm, eps)"),
    _row("3-eps-added", "fmaxf(__fsqrt_rn(shared[0]), eps)", "__fadd_rn(__fsqrt_rn(shared[0]), eps)", "norm + eps"),
    _row("3-eps-squared", "fmaxf(__fsqrt_rn(shared[S]), eps)", "__fsqrt_rn(fmaxf(shared[S], eps))",
         "sqrt(max(sum, eps)), of k"),
    _row("3-no-eps", "fmaxf(__fsqrt_rn(shared[S]), eps)", "__fsqrt_rn(shared[S])", "no eps: a norm of 0 divides by 0"),
    _row("4-rms-norm", _Q_NORM, "__frcp_rn(fmaxf(__fsqrt_rn(__fdiv_rn(shared[0], (float)S)), eps))",
         "RMS norm for the L2 norm"),
    _row("5-softplus-branch", _GATE, "log1pf(expf(v))", "softplus without its branch: 89 becomes infinite"),
    _row("5-infinity-times-0", "return __fmul_rn(a, " + _GATE + ");", "const float f = " + _GATE + ";\n    return f == "
         "0.0f ? 0.0f : __fmul_rn(a, f);", "infinity times a softplus of 0 taken as 0"),
    _row("5-a-log", "return __fmul_rn(a, v > 20.0f", "return __fmul_rn(-expf(a), v > 20.0f", "ssm_a taken as A_log"),
    _row("6-decay-clamped", "expf(g[head])", "expf(fmaxf(g[head], -5.0f))", "strong decay clamped at exp(-5)"),
    _row("6-decay-quotients", _SEQ_LOOP + _SEQ_STEP, "    float sum = 0.0f;\n" + _SEQ_LOOP + "        const float before = "
         "expf(sum);\n        sum += g[head];\n" + _SEQ_STEP.replace("expf(g[head])", "expf(sum) / before"),
         "decays as quotients of running products, which underflow"),
    _row("7-linear-decay", "expf(g[head])", "(g[head])", "g taken as the decay, not its logarithm"),
    _row("7-decay-twice", "expf(g[head])", "expf(expf(g[head]))", "exp of what is already a decay"),
    _row("7-no-decay", _STEP, _STEP.replace("    r = __fmul_rn(r, decay);\n", ""), "no decay at all"),
    _row("8-short-prompt", _SEQ_WINDOW, _SEQ_WINDOW + "\n    if (n < conv_kernel - 1) {\n        w.a = 0.0f;\n        w.b "
         "= 0.0f;\n    }", "a prompt of 1 or 2 tokens leaves the history short"),
    _row("8-history-stale", _SHIFT, "", "the history is not shifted"),
    _row("8-history-activated", _SHIFT + "    return silu(acc);", "    w.a = w.b;\n    w.b = w.c;\n    w.c = silu(acc);\n"
         "    return w.c;", "the output kept in the history, not the sample"),
    _row("9-taps-flipped", _TAPS, _FLIPPED, "the filter's taps flipped"),
    _row("9-taps-flipped-wide", "acc = __fmaf_rn(sample, weight[t], acc);", "acc = __fmaf_rn(sample, "
         "weight[conv_kernel - 1 - t], acc);", "the same for filters of more than 4 taps"),
    _row("10-chunk-of-two", "    s[cell] = r;\n}", "    if (n != 2)\n        s[cell] = r;\n}",
         "the state is lost at the end of a chunk of two positions"),
    _row("10-chunk-history", _SEQ_WINDOW, _SEQ_WINDOW + "\n    w.a = w.b = w.c = 0.0f;",
         "each chunk starts with an empty history"),
    _row("11-slot-0-for-all", _SLOT_HEAD, "const long long head = blockIdx.y + 0ll * n_v_heads;",
         "every user on the state of slot 0"),
    _row("11-next-slot", _SLOT_CONV, _SLOT_CONV.replace("blockIdx.y", "blockIdx.y + 1"),
         "a padding index lands on a live slot"),
    _row("11-reused-slot", "recurrence_token(s, q, k, v, g, beta, y, state_size, head, scale);", "if (blockIdx.z) s[(head "
         "* state_size + blockIdx.x) * state_size + threadIdx.x] = 0.0f;\n    recurrence_token(s, q, k, v, g, beta, y, "
         "state_size, head, scale);", "every slot but the first taken as that of a new user"),
    _row("12-offset-32", "const long long cell = row * len + i;", "const int cell = (int)(row * len + i);",
         "32-bit offsets in kernel 13", needs_card=True),
    _row("12-offset-32-token", _TOKEN_CELL, _TOKEN_CELL.replace("const long long cell", "const int cell").replace(
         "row * state_size + i;", "(int)(row * state_size + i);", 1), "32-bit offsets in kernels 1 and 12",
         needs_card=True),
    _row("13-no-snapshot", _SNAP, "", "no snapshot is taken"),
    _row("13-snapshot-before", _SEQ_STEP + _SNAP, _SNAP + _SEQ_STEP, "snaps[t] is the state before position t"),
    _row("13-snapshot-late", "        snap += width * state_size;\n", "        snap += t ? width * state_size : 0;\n",
         "snaps[t] is that of position t + 1"),
    _row("14-no-guard", "    if (n <= 0)\n        return;\n    const int i", "    if (n < 0)\n        return;\n    const int "
         "i", "n = 0 goes on: the state is read and written back",
         "the loop has no turn, so each thread stores the bits that it has loaded"),
    _row("14-no-guard-one", "    if (n <= 0)\n        return;\n    const int i", "    if (n <= 0)\n        n = 1;\n    "
         "const int i", "n = 0 does one position"),
    _row("14-conv-no-guard", "conv_kernel > 4 || n <= 0)", "conv_kernel > 4)\n        return;\n    if (n < 1 && "
         "(n = 1, false))", "n = 0 does one position, in kernel 7"),
    _row("15-bf16-state", _UPDATE, _UPDATE + "\n    r = __uint_as_float((__float_as_uint(r) + 0x8000u) & 0xffff0000u);",
         "the state kept in bf16"),
    _row("15-fp16-state", _UPDATE, _UPDATE + "\n    r = __uint_as_float((__float_as_uint(r) + 0x1000u) & 0xffffe000u);",
         "the state kept with fp16's 11 bits"),
    _row("16-no-scale", "*y = __fmul_rn(scale, tree_sum(p", "*y = __fmul_rn(1.0f, tree_sum(p", "1/sqrt(S) left out"),
    _row("16-scale-twice", "*y = __fmul_rn(scale, tree_sum(p", "*y = __fmul_rn(scale * scale, tree_sum(p",
         "1/sqrt(S) applied twice"),
    _row("16-weight-plus-one", "inv), weight[i])", "inv), 1.0f + weight[i])", "the norm's weight taken as 1 + w"),
    _row("17-no-kernel", 'extern "C" __global__ void fc_sigmoid(', "static __device__ void fc_sigmoid(",
         "a kernel that the PTX does not have"),
    _row("17-no-extern-c", 'extern "C" __global__ void fc_ssm_decay_gate_nx(', "__global__ void fc_ssm_decay_gate_nx(",
         "a kernel whose symbol is mangled"),
    _row("unfused-update", _UPDATE, "r = __fadd_rn(__fmul_rn(k, correction(v, pred, beta)), r);",
         "the update's product rounded before it is added"),
    _row("y-from-old-state", f"{_UPDATE}\n    {_READ}", f"{_READ}\n    {_UPDATE}", "y from the state before its update"),
    _row("predict-before-decay", _STEP, "    const float pred = tree_sum(p, i, len, __fmul_rn(r, k), unrolled);\n    r = "
         "__fmul_rn(r, decay);", "the prediction read before the decay"),
    _row("no-delta", "__fmul_rn(__fsub_rn(v, pred), beta)", "__fmul_rn(v, beta)", "v written without what the state "
         "predicts"),
    _row("no-beta", "__fmul_rn(__fsub_rn(v, pred), beta)", "__fsub_rn(v, pred)", "beta left out"),
    _row("qk-swapped", "recurrence_seq(s, q, k, v, g, beta, y, state_size, n_v_heads, n, scale, snaps, false);",
         "recurrence_seq(s, k, q, v, g, beta, y, state_size, n_v_heads, n, scale, snaps, false);", "q and k swapped in "
         "prefill"),
    _row("lost-warp", "if (unrolled)\n        tree_reduce_128(p, i);", "if (unrolled)\n        tree_reduce_128(p, i & 31);",
         "sums over the first warp alone"),
    _row("wrong-tree", "if (i < stride)\n            p[i] = __fadd_rn(p[i], p[i + stride]);", "if (i < stride)\n            "
         "p[i] = __fadd_rn(p[i], p[2 * stride - 1 - i]);", "the tree pairs other elements: a sum that is right, of other "
         "bits"),
    _row("butterfly-mask", "lane_xor(p0, 4)", "lane_xor(p0, 5)", "a butterfly step pairs other lanes"),
    _row("head-divided", "(int)i % n_heads", "(int)i / n_heads", "index div heads for index mod heads"),
    _row("no-closing-barrier", "    const float sum = p[0];\n    __syncthreads();", "    const float sum = p[0];",
         "the sum is overwritten while a slow warp still reads it"),
    _row("prefill-stride", "        row += width;", "        row += width + (t > 100);", "the 102nd position lands one row on"),
    _row("tail-block", "if (i < total) {", "if (i < total - total % 2) {", "an odd tail is left out"),
    _row("v-from-k", "const float *from = row + 2ll * key_dim + first;", "const float *from = row + 1ll * key_dim + first;",
         "v copied from where k is"),
    _row("gate-sigmoid", "silu(z[base + i])", "__frcp_rn(one_plus_exp_neg(z[base + i]))", "sigmoid for silu in the gate"),
    _row("fast-exp", "return __fadd_rn(1.0f, expf(-x));", "return __fadd_rn(1.0f, __expf(-x));", "the approximate exp"),
    _row("bare-add", "return __fadd_rn(1.0f, expf(-x));", "return 1.0f + expf(-x);", "the compiler fuses expf's last product into the sum",
         "one rounding fewer, in all kernels alike: within every tolerance by design, and relations compare kernels with each other"),
)  # fmt: skip
