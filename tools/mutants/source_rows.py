"""Mutations of the kernels' sources: what people who write such kernels get wrong, one row each.

The first word of a name is the mistake's place in the list of docs/mutants.md, where it has one; rows of the fast
kernels begin with `slots` (kernel 16), `multi` (17), `step` (18) or, where they share what is changed, `fast`.
"""

# Rows hold texts as they stand in the kernels; broken lines would hide what is replaced.
# ruff: noqa: E501

from __future__ import annotations

from model import FAST_SOURCE, SOURCE, Mutant

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


def _fast(name: str, find: str, put: str, imitates: str, equivalent: str = "", *, needs_card: bool = False) -> Mutant:
    return Mutant(name, FAST_SOURCE, find, put, imitates, 0, equivalent, needs_card)


_BASE: tuple[Mutant, ...] = (
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
         "that product is by a power of two, so it is exact (or so small that 1 is the sum): the same bits, fused or not"),
)  # fmt: skip

# What the fast kernels do otherwise: rows in lanes, sums merged, positions staged, one launch for six.
_OWN = "const long long own = head * 128 + first + (lane >> row_shift<ROWS>());"
_FIRST = "(int)(blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5)) * ROWS;"
_KEEP_GIVE = "            const float keep = upper ? p[i + half] : p[i];\n            const float give = upper ? p[i] : p[i + half];\n"
_ROW_STORE = "        quad_update(r[i], k, lane_read(delta, i << row_shift<ROWS>()));\n        quad_store(cell + i * 128, r[i]);\n"
_MULTI_UPDATE = "                quad_update(r[i], k_now, i == 0 ? delta : lane_xor(delta, i << shift));\n"
_MULTI_READ = "                o[i] = quad_dot(r[i], q_now);\n"
_MULTI_UPDATES = (
    "#pragma unroll\n            for (int i = 0; i < ROWS; ++i) {\n" + _MULTI_UPDATE + _MULTI_READ + "            }\n"
    "            own_rows_halve<ROWS>(o);\n"
)
_MULTI_SNAP = (
    "            if (SNAPS) {\n                own_rows_store<ROWS>(snaps, r, own, lane);\n"
    "                snaps += width * 128;\n            }\n"
)
_MULTI_NEXT = (
    "            k_now = get[0];\n            q_now = get[32];\n            get += 64;\n"
    "            rows_predict<ROWS>(r, p, k_now, lane_read(decays, t));\n"
)
_CHANNEL = "((i >> 7) * (long long)n_k_heads + kh) * 128 + (i & 127);\n        const long long at = blockIdx.y"
_STEP_HEAD = "const long long vh = (long long)group * n_k_heads + kh;"
_HISTORY = "    acc = __fmaf_rn(a, taps[0], acc);\n    acc = __fmaf_rn(b, taps[1], acc);\n    acc = __fmaf_rn(c, taps[2], acc);\n"
_STEP_CELL = "float *cell = s + ((user_heads + vh) * 128 + first) * 128 + lane;"
_STEP_INV = "__frcp_rn(__fsqrt_rn(__fadd_rn(__fdiv_rn(sum, 128.0f), norm_eps)))"

_FAST: tuple[Mutant, ...] = (
    _fast("fast-quad-pairs", "quad_dot(const quad &x, const quad &y)\n{\n    const float ac = __fadd_rn(__fmul_rn(x.a, y.a), "
          "__fmul_rn(x.c, y.c));\n    const float bd = __fadd_rn(__fmul_rn(x.b, y.b), __fmul_rn(x.d, y.d));",
          "quad_dot(const quad &x, const quad &y)\n{\n    const float ac = __fadd_rn(__fmul_rn(x.a, y.a), "
          "__fmul_rn(x.b, y.b));\n    const float bd = __fadd_rn(__fmul_rn(x.c, y.c), __fmul_rn(x.d, y.d));",
          "strides 32 and 64 of the tree exchanged: a sum that is right, of other bits"),
    _fast("fast-quad-fused", "const float bd = __fadd_rn(__fmul_rn(x.b, y.b), __fmul_rn(x.d, y.d));",
          "const float bd = __fmaf_rn(x.b, y.b, __fmul_rn(x.d, y.d));", "a product fused into the sum"),
    _fast("fast-lanes-order", "    for (; mask > 0; mask >>= 1)\n        sum = __fadd_rn(sum, lane_xor(sum, mask));",
          "    for (int bit = 1; bit <= mask; bit <<= 1)\n        sum = __fadd_rn(sum, lane_xor(sum, bit));",
          "the last butterflies from the smallest stride up: other pairs"),
    _fast("slots-row-shift", "ROWS == 8 ? 2 : ROWS == 4 ? 3 : 4", "ROWS == 8 ? 2 : ROWS == 4 ? 2 : 4",
          "four rows finish in the lanes of eight"),
    _fast("slots-give-keep", _KEEP_GIVE, _KEEP_GIVE.replace("keep", "x").replace("give", "keep").replace("float x", "float give"),
          "the half that a lane should keep is given away"),
    _fast("slots-own-row", _OWN, _OWN.replace("(lane >> row_shift<ROWS>())", "(lane & (ROWS - 1))"),
          "v and y of the row lane mod 8, not lane div 4"),
    _fast("slots-one-writer", "return (lane & ((1 << row_shift<ROWS>()) - 1)) == 0;", "return lane == 0;",
          "only lane 0 stores a result, as when a warp had one row"),
    _fast("slots-warps-of-a-block", _FIRST, "(int)blockIdx.x * ROWS;", "the warps of a block on the same rows"),
    _fast("slots-delta-lane", "lane_read(delta, i << row_shift<ROWS>())", "lane_read(delta, i)",
          "delta read from lane i, not from the lane that has row i's"),
    _fast("slots-stored-early", _ROW_STORE, "        quad_store(cell + i * 128, r[i]);\n" + _ROW_STORE.splitlines()[0] + "\n",
          "the rows stored before their update"),
    _fast("slots-size-guard", "    if (state_size != 128)\n        return;\n    const unsigned int warps",
          "    const unsigned int warps", "no guard on the state size"),
    _fast("slots-shape-guard", "else if (warps == 64u)", "else", "any other shape taken for two rows a warp"),
    _fast("slots-offset-32", "float *cell = s + (head * 128 + first) * 128 + lane;",
          "float *cell = s + (int)((head * 128 + first) * 128 + lane);", "32-bit offsets in kernel 16", needs_card=True),
    _fast("multi-tree-order", "        for (int i = 0; i < half; ++i) {\n            o[i] = __fadd_rn(o[i], lane_xor(o[i + half], mask));\n"
          "            p[i] = __fadd_rn(p[i], lane_xor(p[i + half], mask));\n        }\n        mask >>= 1;\n    }\n",
          "        for (int i = 0; i < half; ++i) {\n            o[i] = __fadd_rn(o[i], lane_xor(o[i + half], mask));\n"
          "            p[i] = __fadd_rn(p[i], lane_xor(p[i + half], mask));\n        }\n        mask >>= 1;\n    }\n    if (ROWS == 8) {\n"
          "        o[0] = __fadd_rn(o[0], lane_xor(o[0], 1));\n        p[0] = __fadd_rn(p[0], lane_xor(p[0], 1));\n"
          "        o[0] = __fadd_rn(o[0], lane_xor(o[0], 2));\n        p[0] = __fadd_rn(p[0], lane_xor(p[0], 2));\n        mask = 0;\n    }\n",
          "the last two butterflies of eight rows exchanged: a sum that is right, of other bits"),
    _fast("multi-tree-pairs", "p[i] = __fadd_rn(p[i], lane_xor(p[i + ROWS / 2], 16));", "p[i] = __fadd_rn(p[i], lane_xor(p[i + ROWS / 2], 8));",
          "the first level pairs lanes eight apart"),
    _fast("multi-row-order", "r[i] = quad_load(s + first * 128 + lane + (i ^ own) * 128u);", "r[i] = quad_load(s + first * 128 + lane + i * 128u);",
          "every lane holds row i in register i, without the selects that this needs"),
    _fast("multi-delta-lane", "lane_xor(delta, i << shift)", "lane_xor(delta, i)", "delta of another lane"),
    _fast("multi-four-rows", "blockIdx.y * 128ll + (blockIdx.x * 4u + warp) * ROWS;", "blockIdx.y * 128ll + (blockIdx.x * 4u + warp) * 8;",
          "warps of four rows eight apart"),
    _fast("multi-shape-guard", "} else if (gridDim.x == 8u) {", "} else {", "any other shape taken for four rows a warp"),
    _fast("multi-fetch-past-the-end", "if (next + (int)(thread >> 5) < n) {", "if (next < n) {", "k and q fetched past the last position"),
    _fast("multi-value-past-the-end", "if (next + (int)(thread & 3) < n) {", "if (next + (int)(thread & 3) <= n) {", "v fetched one position too far"),
    _fast("multi-value-stale", "        values = v_next;\n        if ((t", "        if ((t", "v is that of the first four positions"),
    _fast("multi-staged-late", "rows_predict<ROWS>(r, p, k_now, lane_read(decays, t));", "rows_predict<ROWS>(r, p, k_now, lane_read(decays, t - 1));",
          "the decay of the position before"),
    _fast("multi-staged-shift", "if (staged + STAGED < n) {\n        g_next = g[(staged + STAGED)", "if (staged + STAGED < n) {\n        g_next = g[(staged + STAGED - 1)",
          "after 16 positions the decays are one behind"),
    _fast("multi-staged-third", "const int ahead = t + STAGED + (int)(thread & (STAGED - 1));", "const int ahead = t + STAGED + 1 + (int)(thread & (STAGED - 1));",
          "after 32 positions decays and betas are one ahead"),
    _fast("multi-beta-stale", "            betas = beta_next;\n", "", "betas are not staged anew after 16 positions"),
    _fast("multi-past-decay", "            g_next = 0.0f; /* its exp is 1 */\n", "", "the position after the last decays the state: n is a multiple of 16"),
    _fast("multi-end", "(int)opaque(next <= n ? next : n + 1);", "(int)opaque(next);", "the last group has all its four positions"),
    _fast("multi-last-update", "        if (t > n)\n            break;", "        if (t >= n)\n            break;", "the last position is lost where n is a multiple of four"),
    _fast("multi-barrier-first", "    __syncthreads();\n\n    quad k_now", "    quad k_now", "no barrier before the first group is read"),
    _fast("multi-barrier", "        __syncthreads();\n    }\n    own_rows_store", "    }\n    own_rows_store", "no barrier between the groups"),
    _fast("multi-ring-half", "ring + ((t & GROUP) + (thread >> 5)) * 64", "ring + (thread >> 5) * 64", "the next group put where this one is read"),
    _fast("multi-ring-wrap", "ring + (t & (2 * GROUP - 1)) * 64", "ring + (t & (GROUP - 1)) * 64", "every group read from the first half"),
    _fast("multi-snapshot-before", _MULTI_UPDATES + _MULTI_SNAP, _MULTI_SNAP + _MULTI_UPDATES, "snaps[t] is the state before the update of t"),
    _fast("multi-snapshot-decayed", _MULTI_SNAP + _MULTI_NEXT, _MULTI_NEXT + _MULTI_SNAP, "snaps[t] has the decay of position t + 1"),
    _fast("multi-snapshot-stride", "snaps += width * 128;", "snaps += 128ll * 128;", "snapshots of one head's length"),
    _fast("multi-guard", "if (state_size != 128 || n <= 0 || ", "if (n <= 0 || ", "no guard on the state size"),
    _fast("multi-no-length-guard", "if (state_size != 128 || n <= 0 || ", "if (state_size != 128 || ",
          "n = 0 goes on: k, q and v are read where there may be none"),
    _fast("multi-y-from-old-state", _MULTI_UPDATE + _MULTI_READ, _MULTI_READ + _MULTI_UPDATE, "y from the state before its update"),
    _fast("step-grouped-heads", _STEP_HEAD, "const long long vh = kh * kv_groups + group;", "heads grouped, not interleaved"),
    _fast("step-values-grouped", _CHANNEL, "((i >> 7) < 2 ? (i >> 7) * (long long)n_k_heads + kh : 2ll * n_k_heads + kh * kv_groups + "
          "(i >> 7) - 2) * 128 + (i & 127);\n        const long long at = blockIdx.y", "v taken as grouped, all else interleaved"),
    _fast("step-history-first", _HISTORY, _HISTORY.replace("(c,", "(x,").replace("(b,", "(c,").replace("(a,", "(b,"),
          "the history is moved on before it is used"),
    _fast("step-history-activated", "    history[2] = x;\n    return silu(acc);", "    return history[2] = silu(acc);",
          "the output kept in the history, not the sample"),
    _fast("step-history-slot", "conv_state + at * 3", "conv_state + channel * 3", "every user on the history of slot 0"),
    _fast("step-qkv-slot", "conv_channel(qkv[at],", "conv_channel(qkv[channel],", "every user on the projections of the first"),
    _fast("step-state-slot", _STEP_CELL, _STEP_CELL.replace("(user_heads + vh)", "vh"), "every user on the state of slot 0"),
    _fast("step-barrier-conv", "    __syncthreads();\n\n    const quad q", "    const quad q",
          "no barrier after the convolution"),
    _fast("step-barrier-norm", "    __syncthreads();\n\n#pragma unroll 1\n    for (int i = (int)threadIdx.x; i < kv_groups",
          "\n#pragma unroll 1\n    for (int i = (int)threadIdx.x; i < kv_groups", "no barrier before the norm"),
    _fast("step-eps-of-norm", "normalised(quad_load(conv_out + lane), qk_eps)", "normalised(quad_load(conv_out + lane), norm_eps)",
          "the gated norm's eps for q"),
    _fast("step-eps-of-qk", _STEP_INV, _STEP_INV.replace("norm_eps", "qk_eps"), "the eps of q and k for the gated norm"),
    _fast("step-rsqrt-eps", "fmaxf(__fsqrt_rn(sum_of_squares(x)), eps)", "__fsqrt_rn(__fadd_rn(sum_of_squares(x), eps))",
          "sqrt(sum + eps) for max(norm, eps)"),
    _fast("step-gate-sigmoid", "silu(z[at])", "__frcp_rn(one_plus_exp_neg(z[at]))", "sigmoid for silu in the gate"),
    _fast("step-beta-raw", "__frcp_rn(one_plus_exp_neg(beta[user_heads + vh]))", "beta[user_heads + vh]", "beta without its sigmoid"),
    _fast("step-beta-head", "one_plus_exp_neg(beta[user_heads + vh])", "one_plus_exp_neg(beta[user_heads + kh])", "beta of the K-head"),
    _fast("step-alpha-slot", "alpha[user_heads + vh]", "alpha[vh]", "every user with the decay of the first"),
    _fast("step-dt-head", "ssm_dt[vh]", "ssm_dt[kh]", "ssm_dt of the K-head"),
    _fast("step-softplus-branch", "v > 20.0f ? v : log1pf(expf(v))", "log1pf(expf(v))", "softplus without its branch"),
    _fast("step-no-scale", "q, v, decay, b, scale, lane", "q, v, decay, b, 1.0f, lane", "1/sqrt(S) left out"),
    _fast("step-value-row", "conv_out[(2 + group) * 128 + first + own]", "conv_out[(2 + group) * 128 + first + (lane & 7)]",
          "v of another of the eight rows"),
    _fast("step-room", "shared + (2 + kv_groups) * 128;", "shared + (1 + kv_groups) * 128;", "the outputs where the last head's v is"),
    _fast("step-norm-head", "quad_load(ys + (i & ~127) + lane)", "quad_load(ys + lane)", "every V-head normed by the first's sum"),
    _fast("step-norm-sum", "return tree_lanes(quad_dot(x, x), 16);", "return tree_lanes(__fmaf_rn(x.a, x.a, __fmaf_rn(x.b, x.b, "
          "__fmaf_rn(x.c, x.c, __fmul_rn(x.d, x.d)))), 16);", "sums of squares by fma: right, of other bits"),
    _fast("step-mean", "__fdiv_rn(sum, 128.0f)", "__fmul_rn(sum, 0.0078125f)", "a product for the quotient by 128",
          "128 is a power of two: product and quotient are the same number, rounded once if it is subnormal"),
    _fast("step-threads", "i += (int)blockDim.x", "i += 512", "a block of 128 or 256 threads leaves channels out"),
    _fast("step-weight-plus-one", "norm_weight[i & 127]", "(1.0f + norm_weight[i & 127])", "the norm's weight taken as 1 + w"),
    _fast("step-guard", "if (state_size != 128 || conv_kernel != 4)", "if (state_size != 128)", "a filter of 3 taken for one of 4"),
    _fast("step-offset-32", _STEP_CELL, _STEP_CELL.replace("((user_heads", "(int)(((user_heads").replace("+ lane;", "+ lane);"),
          "32-bit offsets in kernel 18", needs_card=True),
)  # fmt: skip

ROWS: tuple[Mutant, ...] = (*_BASE, *_FAST)
