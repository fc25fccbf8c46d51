/*
 * The 15 kernels of the Gated-Delta-Net block of Qwen3.5-MoE / Qwen3-Next, fp32, for a Tesla K80 (GK210, sm_37).
 * docs/kernels.md states the contract: symbols, arguments, launch shapes, layouts, operation order, relations.
 *
 *    1 fc_ssm_recurrence            6 fc_ssm_qknorm_gqa                11 fc_ssm_conv1d_silu_slots
 *    2 fc_ssm_conv1d_silu           7 fc_ssm_conv1d_silu_seq           12 fc_ssm_recurrence_slots
 *    3 fc_ssm_gated_norm            8 fc_ssm_recurrence_seq            13 fc_ssm_recurrence_slots_2pass
 *    4 fc_sigmoid                   9 fc_ssm_recurrence_seq_unroll128  14 fc_ssm_decay_gate_nx
 *    5 fc_ssm_decay_gate           10 fc_ssm_recurrence_seq_warp       15 fc_ssm_qknorm_gqa_nx
 *
 * The order of the definitions below is the loader's order; a new kernel goes at the end.
 * Nothing is included: the embedded compiler has no headers, and none are needed.
 *
 * Layouts
 *   state       s[h*S*S + j*S + i] = S_h[i][j]: transposed, row j contiguous over i. One block (or one warp, in
 *               kernel 10) owns one row, so a row is read and written coalesced and no two blocks share a cell.
 *   prefill     position-major: [n][conv_dim], [n][n_v_heads*S], [n][n_v_heads].
 *   slots       slot-major, the same inner layout; states [K][n_v_heads*S*S] and [K][conv_dim*(k-1)].
 *   conv        weight [conv_dim][k], tap k-1 multiplies the newest sample; history [conv_dim][k-1], oldest first.
 *   snaps       image of the state after position t, stacked over t, laid out as the state; NULL means none wanted.
 *   GQA         V-head vh = r*n_k_heads + kh, so kh = vh mod n_k_heads (interleaved), never vh / groups.
 *
 * Why the bits hold
 *   Several kernels must agree bit for bit (8 with n launches of 1, 9 and 10 with 8, 12 with 1, 7 and 11 with 2, ...),
 *   whichever compiler and flags built them. Two habits give that:
 *   - One helper per operation. Kernels that must agree call the same function; they differ in where the operands
 *     come from (memory or a register carried over), and a float survives a round trip through memory unchanged.
 *   - Every multiply, add and subtract that reaches an output is an _rn intrinsic. `a*b + c` leaves the compiler free
 *     to fuse (--fmad=true is the default) and ptxas free to fuse once more, wherever the product stays in a register;
 *     mul.rn, add.rn and sub.rn may not be fused by either. Where one rounding is wanted it is spelled __fmaf_rn.
 *     __fdiv_rn, __frcp_rn and __fsqrt_rn are IEEE whatever --prec-div and --prec-sqrt say; they also take the result
 *     of expf, whose last step is a bare multiply that a bare `1.0f + expf(x)` could absorb.
 *   What is left un-suffixed lies inside expf and log1pf, and no product there feeds a plain add.
 *   Addition is commutative in IEEE arithmetic but not associative: a sum may swap its operands, never regroup them.
 *
 * Offsets are 64-bit: slot 4096 at 32 heads and S = 128 starts at element 2^31.
 */

#if defined(__USE_FAST_MATH__) && __USE_FAST_MATH__ /* NVRTC 11.4 defines it as 0 when the option is off */
#error "--use_fast_math swaps expf for an approximation and flushes denormals: the kernels' bits need neither"
#endif

/* Dynamic shared memory; each kernel says how it divides it. */
extern __shared__ float shared[];

/* ------------------------------------------------------------------------------------------------ shared helpers */

/*
 * Pairwise sums of `arrays` arrays of `len` floats (a power of two), array a at p + a*len, in step: for stride len/2,
 * len/4, ..., 1: p[i] += p[i + stride] for i < stride. The sums end in p[a*len], visible to the whole block.
 * Thread i stored p[a*len + i] just before; the first barrier publishes that. `arrays` is a literal at every call.
 * The loop is kept a loop: its bound is only known at run time, and kernel 9 is the version without it.
 */
static __device__ __forceinline__ void tree_reduce(float *p, int i, int len, int arrays)
{
    __syncthreads();
#pragma unroll 1
    for (int stride = len >> 1; stride > 0; stride >>= 1) {
        if (i < stride) {
#pragma unroll
            for (int a = 0; a < arrays; ++a)
                p[a * len + i] = __fadd_rn(p[a * len + i], p[a * len + i + stride]);
        }
        __syncthreads();
    }
}

/* tree_reduce for one array of 128, unrolled: the same pairs in the same order, without the loop control. */
static __device__ __forceinline__ void tree_reduce_128(float *p, int i)
{
    __syncthreads();
#pragma unroll
    for (int stride = 64; stride > 0; stride >>= 1) {
        if (i < stride)
            p[i] = __fadd_rn(p[i], p[i + stride]);
        __syncthreads();
    }
}

/*
 * Tree sum over the block of one value per thread; every thread gets it. The closing barrier makes p free again:
 * without it a fast warp would overwrite p[0] with its next value while a slow one is still reading the sum.
 */
static __device__ __forceinline__ float tree_sum(float *p, int i, int len, float value, bool unrolled)
{
    p[i] = value;
    if (unrolled)
        tree_reduce_128(p, i);
    else
        tree_reduce(p, i, len, 1);
    const float sum = p[0];
    __syncthreads();
    return sum;
}

/*
 * One butterfly step within a full warp. Kepler's warps run in lockstep and have only the plain form; from sm_70 on
 * (and in the host pass of nvcc, which parses but never runs this) only the _sync form is left.
 */
static __device__ __forceinline__ float lane_xor(float value, int mask)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
/* "declared deprecated": in C++14 mode the compilers warn at each call, though Kepler has no other form. */
#pragma diag_suppress 1444
    return __shfl_xor(value, mask);
#pragma diag_default 1444
#else
    return __shfl_xor_sync(0xffffffffu, value, mask);
#endif
}

/*
 * tree_reduce over 128 values held by one warp, lane L holding elements L, L+32, L+64, L+96 in p0..p3. Strides 64 and
 * 32 pair registers of the same lane; strides 16..1 pair lanes. In the tree only lanes below the stride add; here the
 * partner adds the same two numbers the other way round, which gives the same bits, so every lane ends with the sum
 * and no broadcast is needed.
 */
static __device__ __forceinline__ float tree_sum_warp(float p0, float p1, float p2, float p3)
{
    p0 = __fadd_rn(p0, p2); /* stride 64, elements 0..31 */
    p1 = __fadd_rn(p1, p3); /* stride 64, elements 32..63 */
    p0 = __fadd_rn(p0, p1); /* stride 32 */
    p0 = __fadd_rn(p0, lane_xor(p0, 16));
    p0 = __fadd_rn(p0, lane_xor(p0, 8));
    p0 = __fadd_rn(p0, lane_xor(p0, 4));
    p0 = __fadd_rn(p0, lane_xor(p0, 2));
    p0 = __fadd_rn(p0, lane_xor(p0, 1));
    return p0;
}

/* 1 + exp(-x), the denominator of sigmoid and silu; infinite for x below about -88.7, which both survive. */
static __device__ __forceinline__ float one_plus_exp_neg(float x)
{
    return __fadd_rn(1.0f, expf(-x));
}

static __device__ __forceinline__ float silu(float x)
{
    return __fdiv_rn(x, one_plus_exp_neg(x));
}

/* ssm_a * softplus(alpha + dt). exp(v) overflows from 88.7 on and log1p(exp(v)) is v to the last bit from 20 on. */
static __device__ __forceinline__ float decay_gate(float alpha, float dt, float a)
{
    const float v = __fadd_rn(alpha, dt);
    return __fmul_rn(a, v > 20.0f ? v : log1pf(expf(v)));
}

/* Index of this thread in a one-dimensional grid, 64-bit so that no launch shape can wrap it. */
static __device__ __forceinline__ long long grid_index()
{
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

/* ------------------------------------------------------------------------------------------------ recurrence parts */

/* Step 3: delta = (v - pred) * beta. */
static __device__ __forceinline__ float correction(float v, float pred, float beta)
{
    return __fmul_rn(__fsub_rn(v, pred), beta);
}

/*
 * One position for one state row, by a block of S threads; thread i holds element i and gets its new value back.
 * Both products are rounded before their tree, as the contract has it; the update is one fma. All threads get y.
 */
static __device__ __forceinline__ float row_step(float *p, int i, int len, float r, float k, float q, float v,
                                                 float decay, float beta, float scale, bool unrolled, float *y)
{
    r = __fmul_rn(r, decay);
    const float pred = tree_sum(p, i, len, __fmul_rn(r, k), unrolled);
    r = __fmaf_rn(k, correction(v, pred, beta), r);
    *y = __fmul_rn(scale, tree_sum(p, i, len, __fmul_rn(r, q), unrolled));
    return r;
}

/* One token of one user (kernels 1 and 12): block (j, h) owns row j of head h; `head` = slot*n_v_heads + h. */
static __device__ __forceinline__ void recurrence_token(float *__restrict__ s, const float *__restrict__ q,
                                                        const float *__restrict__ k, const float *__restrict__ v,
                                                        const float *__restrict__ g, const float *__restrict__ beta,
                                                        float *__restrict__ y, int state_size, long long head,
                                                        float scale)
{
    const int i = (int)threadIdx.x;
    const long long row = head * state_size + blockIdx.x;
    const long long cell = row * state_size + i;
    const long long in = head * state_size + i;
    float out;
    s[cell] = row_step(shared, i, state_size, s[cell], k[in], q[in], v[row], expf(g[head]), beta[head], scale, false,
                       &out);
    if (i == 0)
        y[row] = out;
}

/*
 * n positions in one launch (kernels 8 and 9): the row element stays in a register from position to position, which
 * changes no bit against a store and a load. The state is written once, at the end; with n = 0 nothing is touched.
 */
static __device__ __forceinline__ void recurrence_seq(float *__restrict__ s, const float *__restrict__ q,
                                                      const float *__restrict__ k, const float *__restrict__ v,
                                                      const float *__restrict__ g, const float *__restrict__ beta,
                                                      float *__restrict__ y, int state_size, int n_v_heads, int n,
                                                      float scale, float *__restrict__ snaps, bool unrolled)
{
    if (n <= 0)
        return;
    const int i = (int)threadIdx.x;
    const long long width = (long long)n_v_heads * state_size;
    long long head = blockIdx.y;
    long long row = head * state_size + blockIdx.x;
    long long in = head * state_size + i;
    const long long cell = row * state_size + i;
    long long snap = cell;
    float r = s[cell];
    for (int t = 0; t < n; ++t) {
        float out;
        r = row_step(shared, i, state_size, r, k[in], q[in], v[row], expf(g[head]), beta[head], scale, unrolled, &out);
        if (i == 0)
            y[row] = out;
        if (snaps)
            snaps[snap] = r;
        head += n_v_heads;
        row += width;
        in += width;
        snap += width * state_size;
    }
    s[cell] = r;
}

/* ------------------------------------------------------------------------------------------------ convolution parts */

/*
 * The window of one channel for conv_kernel <= 4, in named scalars: an array indexed by a run-time bound would go to
 * local memory. It is aligned to the newest sample: c is always the most recent one, a is used only when
 * conv_kernel is 4, so the shift is the same for every conv_kernel. wx is the tap of the incoming sample.
 */
struct conv_window {
    float a, b, c;
    float wa, wb, wc, wx;
};

/* history: this channel's conv_kernel-1 samples; weight: its conv_kernel taps. Absent ones are never read. */
static __device__ __forceinline__ conv_window conv_load(const float *history, const float *weight, int conv_kernel)
{
    conv_window w;
    w.a = conv_kernel > 3 ? history[conv_kernel - 4] : 0.0f;
    w.b = conv_kernel > 2 ? history[conv_kernel - 3] : 0.0f;
    w.c = conv_kernel > 1 ? history[conv_kernel - 2] : 0.0f;
    w.wa = conv_kernel > 3 ? weight[conv_kernel - 4] : 0.0f;
    w.wb = conv_kernel > 2 ? weight[conv_kernel - 3] : 0.0f;
    w.wc = conv_kernel > 1 ? weight[conv_kernel - 2] : 0.0f;
    w.wx = weight[conv_kernel - 1];
    return w;
}

/* Writes the conv_kernel-1 newest samples, oldest first; none for conv_kernel = 1. */
static __device__ __forceinline__ void conv_store(const conv_window &w, float *history, int conv_kernel)
{
    if (conv_kernel > 3)
        history[conv_kernel - 4] = w.a;
    if (conv_kernel > 2)
        history[conv_kernel - 3] = w.b;
    if (conv_kernel > 1)
        history[conv_kernel - 2] = w.c;
}

/*
 * One sample: the newest tap first, then the history oldest first, then the shift. An absent tap is skipped by a
 * select and not by a zero weight: fma(0, 0, -0) is +0, which silu would hand on.
 */
static __device__ __forceinline__ float conv_step(conv_window &w, float x, int conv_kernel)
{
    float acc = __fmul_rn(x, w.wx);
    acc = conv_kernel > 3 ? __fmaf_rn(w.a, w.wa, acc) : acc;
    acc = conv_kernel > 2 ? __fmaf_rn(w.b, w.wb, acc) : acc;
    acc = conv_kernel > 1 ? __fmaf_rn(w.c, w.wc, acc) : acc;
    w.a = w.b;
    w.b = w.c;
    w.c = x;
    return silu(acc);
}

/*
 * One sample for conv_kernel > 4: the history is shifted where it lies, each sample read before its place is taken.
 * The oldest sample, which only drops out, is handled before the loop. As `if (t > 0)` inside it, it made NVRTC 11.4,
 * 11.7 and 11.8 peel that turn off and hand silu's division the accumulator from before the loop: wrong, silently.
 */
static __device__ __forceinline__ float conv_step_wide(float *history, const float *weight, float x, int conv_kernel)
{
    float acc = __fmul_rn(x, weight[conv_kernel - 1]);
    acc = __fmaf_rn(history[0], weight[0], acc);
#pragma unroll 1
    for (int t = 1; t < conv_kernel - 1; ++t) {
        const float sample = history[t];
        acc = __fmaf_rn(sample, weight[t], acc);
        history[t - 1] = sample;
    }
    history[conv_kernel - 2] = x;
    return silu(acc);
}

/* One token of one user (kernels 2 and 11). `out` may be `qkv`: a thread reads its sample before it writes there. */
static __device__ __forceinline__ void conv_token(const float *qkv, const float *__restrict__ weight,
                                                  float *__restrict__ conv_state, float *out, int conv_dim,
                                                  int conv_kernel, long long slot)
{
    const long long channel = grid_index();
    if (channel >= conv_dim || conv_kernel < 1)
        return;
    const long long at = slot * conv_dim + channel;
    float *history = conv_state + at * (conv_kernel - 1);
    const float *taps = weight + channel * conv_kernel;
    if (conv_kernel > 4) {
        out[at] = conv_step_wide(history, taps, qkv[at], conv_kernel);
        return;
    }
    conv_window w = conv_load(history, taps, conv_kernel);
    out[at] = conv_step(w, qkv[at], conv_kernel);
    conv_store(w, history, conv_kernel);
}

/* ------------------------------------------------------------------------------------------------ qk-norm part */

/*
 * L2 norm of q and k of K-head kh at position t, repeated to kv_groups V-heads (kernels 6 and 15); block of S threads.
 * `row` is that position's conv output [q | k | v]. The divisor is max(norm, eps), not a root of sumsq + eps: the two
 * part company for norms near eps. Shared: S squares of q, then S of k, summed in step.
 */
static __device__ __forceinline__ void qknorm(const float *__restrict__ row, float *__restrict__ qg,
                                              float *__restrict__ kg, int n_k_heads, int kv_groups, int S, int key_dim,
                                              float eps, long long t)
{
    const int i = (int)threadIdx.x;
    const long long kh = blockIdx.x;
    const float q = row[kh * S + i];
    const float k = row[key_dim + kh * S + i];
    shared[i] = __fmul_rn(q, q);
    shared[S + i] = __fmul_rn(k, k);
    tree_reduce(shared, i, S, 2);
    const float qn = __fmul_rn(q, __frcp_rn(fmaxf(__fsqrt_rn(shared[0]), eps)));
    const float kn = __fmul_rn(k, __frcp_rn(fmaxf(__fsqrt_rn(shared[S]), eps)));
    for (int r = 0; r < kv_groups; ++r) {
        const long long vh = (t * kv_groups + r) * n_k_heads + kh;
        qg[vh * S + i] = qn;
        kg[vh * S + i] = kn;
    }
}

/* ------------------------------------------------------------------------------------------------ the kernels */

/* 1: one token. Grid (S, n_v_heads), block S, shared S floats. */
extern "C" __global__ void fc_ssm_recurrence(float *__restrict__ s, const float *__restrict__ q,
                                             const float *__restrict__ k, const float *__restrict__ v,
                                             const float *__restrict__ g, const float *__restrict__ beta,
                                             float *__restrict__ y, int state_size, float scale)
{
    recurrence_token(s, q, k, v, g, beta, y, state_size, blockIdx.y, scale);
}

/* 2: causal depthwise convolution and silu, one token. Grid ceil(conv_dim/256), block 256. Any conv_kernel >= 1. */
extern "C" __global__ void fc_ssm_conv1d_silu(const float *qkv, const float *__restrict__ weight,
                                              float *__restrict__ conv_state, float *out, int conv_dim,
                                              int conv_kernel)
{
    conv_token(qkv, weight, conv_state, out, conv_dim, conv_kernel, 0);
}

/*
 * 3: RMSNorm(y) * weight * silu(z) per head; weight[S] is shared by the heads. Grid n_v_heads, block a power of two
 * (256, or S), shared blockDim floats. S itself may be any size. Lanes past S add +0 to a sum of squares, which is
 * exact, so blocks of S and of 256 agree for a power of two S <= 256. `gated` may be `y` or `z`.
 */
extern "C" __global__ void fc_ssm_gated_norm(const float *y, const float *__restrict__ weight, const float *z,
                                             float *gated, int state_size, float eps)
{
    const int tid = (int)threadIdx.x;
    const int threads = (int)blockDim.x;
    const long long base = (long long)blockIdx.x * state_size;
    float acc = 0.0f;
#pragma unroll 1
    for (int i = tid; i < state_size; i += threads)
        acc = __fmaf_rn(y[base + i], y[base + i], acc);
    const float sum = tree_sum(shared, tid, threads, acc, false);
    const float inv = __frcp_rn(__fsqrt_rn(__fadd_rn(__fdiv_rn(sum, (float)state_size), eps)));
#pragma unroll 1
    for (int i = tid; i < state_size; i += threads)
        gated[base + i] = __fmul_rn(__fmul_rn(__fmul_rn(y[base + i], inv), weight[i]), silu(z[base + i]));
}

/* 4: in place 1 / (1 + exp(-x)). Grid ceil(n/256), block 256. */
extern "C" __global__ void fc_sigmoid(float *x, int n)
{
    const long long i = grid_index();
    if (i < n)
        x[i] = __frcp_rn(one_plus_exp_neg(x[i]));
}

/* 5: log-decay of one token, one value per V-head. Grid ceil(n/256), block 256. `g` may be `alpha`. */
extern "C" __global__ void fc_ssm_decay_gate(const float *alpha, const float *__restrict__ ssm_dt,
                                             const float *__restrict__ ssm_a, float *g, int n)
{
    const long long i = grid_index();
    if (i < n)
        g[i] = decay_gate(alpha[i], ssm_dt[i], ssm_a[i]);
}

/* 6: one token. Grid n_k_heads, block S (a power of two), shared 2*S floats. */
extern "C" __global__ void fc_ssm_qknorm_gqa(const float *__restrict__ conv_out, float *__restrict__ qg,
                                             float *__restrict__ kg, int n_k_heads, int kv_groups, int S, int key_dim,
                                             float eps)
{
    qknorm(conv_out, qg, kg, n_k_heads, kv_groups, S, key_dim, eps, 0);
}

/*
 * 7: n positions of 2, launched as 2. The window stays in registers; the state is written once, at the end.
 * conv_kernel outside 1..4 returns at once and writes nothing. `out` may be `qkv`.
 */
extern "C" __global__ void fc_ssm_conv1d_silu_seq(const float *qkv, const float *__restrict__ weight,
                                                  float *__restrict__ conv_state, float *out, int conv_dim,
                                                  int conv_kernel, int n, float *__restrict__ snaps)
{
    if (conv_kernel < 1 || conv_kernel > 4 || n <= 0)
        return;
    const long long channel = grid_index();
    if (channel >= conv_dim)
        return;
    const long long image = (long long)conv_dim * (conv_kernel - 1);
    const long long first = channel * (conv_kernel - 1);
    conv_window w = conv_load(conv_state + first, weight + channel * conv_kernel, conv_kernel);
#pragma unroll 1
    for (int t = 0; t < n; ++t) {
        const long long at = (long long)t * conv_dim + channel;
        out[at] = conv_step(w, qkv[at], conv_kernel);
        if (snaps)
            conv_store(w, snaps + t * image + first, conv_kernel);
    }
    conv_store(w, conv_state + first, conv_kernel);
}

/* 8: n positions of 1, launched as 1. */
extern "C" __global__ void fc_ssm_recurrence_seq(float *__restrict__ s, const float *__restrict__ q,
                                                 const float *__restrict__ k, const float *__restrict__ v,
                                                 const float *__restrict__ g, const float *__restrict__ beta,
                                                 float *__restrict__ y, int state_size, int n_v_heads, int n,
                                                 float scale, float *__restrict__ snaps)
{
    recurrence_seq(s, q, k, v, g, beta, y, state_size, n_v_heads, n, scale, snaps, false);
}

/* 9: 8 with its tree unrolled for S = 128; another S returns at once and writes nothing. */
extern "C" __global__ void fc_ssm_recurrence_seq_unroll128(float *__restrict__ s, const float *__restrict__ q,
                                                           const float *__restrict__ k, const float *__restrict__ v,
                                                           const float *__restrict__ g,
                                                           const float *__restrict__ beta, float *__restrict__ y,
                                                           int state_size, int n_v_heads, int n, float scale,
                                                           float *__restrict__ snaps)
{
    if (state_size != 128)
        return;
    recurrence_seq(s, q, k, v, g, beta, y, state_size, n_v_heads, n, scale, snaps, true);
}

/*
 * 10: 8 with one warp per state row. Grid (S/4, n_v_heads), block 128: warp w of block b owns row 4*b + w. Another S
 * than 128 returns at once and writes nothing. Lane L keeps elements L, L+32, L+64, L+96 in registers.
 * Shared 2*n floats: the head's n decays, then its n betas, so that exp is taken once per block and position and not
 * by every thread. That one barrier apart, the warps run on their own.
 */
extern "C" __global__ void fc_ssm_recurrence_seq_warp(float *__restrict__ s, const float *__restrict__ q,
                                                      const float *__restrict__ k, const float *__restrict__ v,
                                                      const float *__restrict__ g, const float *__restrict__ beta,
                                                      float *__restrict__ y, int state_size, int n_v_heads, int n,
                                                      float scale, float *__restrict__ snaps)
{
    if (state_size != 128 || n <= 0)
        return;
    float *decays = shared;
    float *betas = shared + n;
#pragma unroll 1
    for (int t = (int)threadIdx.x; t < n; t += (int)blockDim.x) {
        const long long head = (long long)t * n_v_heads + blockIdx.y;
        decays[t] = expf(g[head]);
        betas[t] = beta[head];
    }
    __syncthreads();

    const int lane = (int)(threadIdx.x & 31u);
    const int j = (int)(blockIdx.x * 4u + (threadIdx.x >> 5));
    const long long image = (long long)n_v_heads * 128 * 128;
    const long long cell = ((long long)blockIdx.y * 128 + j) * 128 + lane;
    float r0 = s[cell];
    float r1 = s[cell + 32];
    float r2 = s[cell + 64];
    float r3 = s[cell + 96];
    for (int t = 0; t < n; ++t) {
        const long long base = ((long long)t * n_v_heads + blockIdx.y) * 128;
        const float *kt = k + base + lane;
        const float *qt = q + base + lane;
        const float k0 = kt[0], k1 = kt[32], k2 = kt[64], k3 = kt[96];
        const float decay = decays[t];
        r0 = __fmul_rn(r0, decay);
        r1 = __fmul_rn(r1, decay);
        r2 = __fmul_rn(r2, decay);
        r3 = __fmul_rn(r3, decay);
        const float pred = tree_sum_warp(__fmul_rn(r0, k0), __fmul_rn(r1, k1), __fmul_rn(r2, k2), __fmul_rn(r3, k3));
        const float delta = correction(v[base + j], pred, betas[t]);
        r0 = __fmaf_rn(k0, delta, r0);
        r1 = __fmaf_rn(k1, delta, r1);
        r2 = __fmaf_rn(k2, delta, r2);
        r3 = __fmaf_rn(k3, delta, r3);
        const float out = tree_sum_warp(__fmul_rn(r0, qt[0]), __fmul_rn(r1, qt[32]), __fmul_rn(r2, qt[64]),
                                        __fmul_rn(r3, qt[96]));
        if (lane == 0)
            y[base + j] = __fmul_rn(scale, out);
        if (snaps) {
            float *snap = snaps + t * image + cell;
            snap[0] = r0;
            snap[32] = r1;
            snap[64] = r2;
            snap[96] = r3;
        }
    }
    s[cell] = r0;
    s[cell + 32] = r1;
    s[cell + 64] = r2;
    s[cell + 96] = r3;
}

/* 11: 2 for K independent users. Grid (ceil(conv_dim/256), K), block 256. `out` may be `qkv`. */
extern "C" __global__ void fc_ssm_conv1d_silu_slots(const float *qkv, const float *__restrict__ weight,
                                                    float *__restrict__ conv_state, float *out, int conv_dim,
                                                    int conv_kernel)
{
    conv_token(qkv, weight, conv_state, out, conv_dim, conv_kernel, blockIdx.y);
}

/* 12: 1 for K independent users. Grid (S, n_v_heads, K), block S, shared S floats. */
extern "C" __global__ void fc_ssm_recurrence_slots(float *__restrict__ s, const float *__restrict__ q,
                                                   const float *__restrict__ k, const float *__restrict__ v,
                                                   const float *__restrict__ g, const float *__restrict__ beta,
                                                   float *__restrict__ y, int state_size, int n_v_heads, float scale)
{
    const long long head = (long long)blockIdx.z * n_v_heads + blockIdx.y;
    recurrence_token(s, q, k, v, g, beta, y, state_size, head, scale);
}

/*
 * 13: 12 with one fused reduction. Shared 3*S floats: r*k, r*q and k*q, with r decayed but not yet updated, summed in
 * step. The updated row is r + k*delta, so its product with q is oq + qk*delta: y is regrouped and only close to 12's,
 * while pred, and with it the state, keeps 12's bits. The closing multiply and add are two roundings, as written.
 */
extern "C" __global__ void fc_ssm_recurrence_slots_2pass(float *__restrict__ s, const float *__restrict__ q,
                                                         const float *__restrict__ k, const float *__restrict__ v,
                                                         const float *__restrict__ g, const float *__restrict__ beta,
                                                         float *__restrict__ y, int state_size, int n_v_heads,
                                                         float scale)
{
    const int i = (int)threadIdx.x;
    const int len = state_size;
    const long long head = (long long)blockIdx.z * n_v_heads + blockIdx.y;
    const long long row = head * len + blockIdx.x;
    const long long cell = row * len + i;
    const float ki = k[head * len + i];
    const float qi = q[head * len + i];
    const float r = __fmul_rn(s[cell], expf(g[head]));
    shared[i] = __fmul_rn(r, ki);
    shared[len + i] = __fmul_rn(r, qi);
    shared[2 * len + i] = __fmul_rn(ki, qi);
    tree_reduce(shared, i, len, 3);
    const float delta = correction(v[row], shared[0], beta[head]);
    s[cell] = __fmaf_rn(ki, delta, r);
    if (i == 0)
        y[row] = __fmul_rn(scale, __fadd_rn(shared[len], __fmul_rn(shared[2 * len], delta)));
}

/* 14: 5 over n positions, total = n*n_heads. Grid ceil(total/256), block 256. `g` may be `alpha`. */
extern "C" __global__ void fc_ssm_decay_gate_nx(const float *alpha, const float *__restrict__ ssm_dt,
                                                const float *__restrict__ ssm_a, float *g, int n_heads, int total)
{
    const long long i = grid_index();
    if (i < total) {
        const int head = (int)i % n_heads;
        g[i] = decay_gate(alpha[i], ssm_dt[head], ssm_a[head]);
    }
}

/*
 * 15: 6 over n positions, and a plain copy of v. Grid (n_k_heads, n), block S, shared 2*S floats. A position of
 * conv_out is [q key_dim | k key_dim | v val_dim]; block kh copies the kh-th of n_k_heads equal slices of v.
 */
extern "C" __global__ void fc_ssm_qknorm_gqa_nx(const float *__restrict__ conv_out, float *__restrict__ qg,
                                                float *__restrict__ kg, float *__restrict__ vg, int n_k_heads,
                                                int kv_groups, int S, int key_dim, int val_dim, float eps)
{
    const long long t = blockIdx.y;
    const float *row = conv_out + t * (2ll * key_dim + val_dim);
    qknorm(row, qg, kg, n_k_heads, kv_groups, S, key_dim, eps, t);
    const int slice = val_dim / n_k_heads;
    const long long first = (long long)blockIdx.x * slice;
    const float *from = row + 2ll * key_dim + first;
    float *to = vg + t * val_dim + first;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < slice; i += (int)blockDim.x)
        to[i] = from[i];
}
