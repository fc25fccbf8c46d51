/*
 * Faster kernels with the bits of those in ssm_gated_delta.cu, fp32, state size 128, for a Tesla K80 (GK210, sm_37).
 * docs/kernels.md states the contract; the numbers go on from that file's 15.
 *
 *   16 fc_ssm_recurrence_slots_warp        12's bits: several state rows per warp, in registers
 *   17 fc_ssm_recurrence_seq_warp_multi    8's bits: eight or four state rows per warp, their sums merged
 *   18 fc_ssm_decode_step                  the bits of 11, 15, 14, 4, 12 and 3 in a chain, in one launch
 *
 * This is a module of its own, so that the 15 keep their indices. Layouts, offsets and the habits that keep the bits
 * (every product and sum that reaches an output is an _rn intrinsic) are those of ssm_gated_delta.cu.
 *
 * How a warp sums several rows
 *   Lane L holds elements L, L+32, L+64, L+96 of each of its rows. The tree's strides 64 and 32 pair registers of one
 *   lane, 16 to 1 pair lanes. A butterfly for each row would take 5 shuffles a row, of which each lane needs one
 *   result. Instead, where the tree pairs lanes L and L^16, the lane gives away its partial sums of one half of the
 *   rows and takes those of the other half: the pairs are the same and half of the sums are left. After log2(rows)
 *   such levels a lane has one sum, of row L >> row_shift, which a butterfly finishes: 7 + 2 shuffles for 8 rows, not
 *   40. The steps between the two sums (delta, y, the load of v) are then done for all rows at once, a row in a lane.
 */

#if defined(__USE_FAST_MATH__) && __USE_FAST_MATH__ /* NVRTC 11.4 defines it as 0 when the option is off */
#error "--use_fast_math swaps expf for an approximation and flushes denormals: the kernels' bits need neither"
#endif

/* Dynamic shared memory; only kernel 18 has some. */
extern __shared__ float shared[];

/* --------------------------------------------------------------------------------------------------------- lanes */

/* Kepler's warps run in lockstep and have only the plain form; from sm_70 on only the _sync form is left. */
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

/* The value of lane `lane` mod 32: the hardware takes the low five bits, so a position serves as it is. */
static __device__ __forceinline__ float lane_read(float value, int lane)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#pragma diag_suppress 1444
    return __shfl(value, lane);
#pragma diag_default 1444
#else
    return __shfl_sync(0xffffffffu, value, lane);
#endif
}

/* The value of lane `lane` mod 4 of the four lanes that this one is of. */
static __device__ __forceinline__ float lane_of_four(float value, int lane)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#pragma diag_suppress 1444
    return __shfl(value, lane, 4);
#pragma diag_default 1444
#else
    return __shfl_sync(0xffffffffu, value, lane, 4);
#endif
}

/* The same number, of which the compiler knows nothing: it would keep addresses in registers over the loop. */
static __device__ __forceinline__ unsigned int opaque(unsigned int number)
{
    asm volatile("" : "+r"(number));
    return number;
}

/* ---------------------------------------------------------------------------------------------------------- rows */

/* Elements L, L+32, L+64 and L+96 of a vector of 128, in lane L; read and written at once in shared memory. */
struct __align__(16) quad {
    float a, b, c, d;
};

static __device__ __forceinline__ quad quad_load(const float *from)
{
    quad x;
    x.a = from[0];
    x.b = from[32];
    x.c = from[64];
    x.d = from[96];
    return x;
}

/* For what is read once in a launch: past the L1, where the card has one that loads go through. */
static __device__ __forceinline__ quad quad_load_once(const float *from)
{
    quad x;
    x.a = __ldcg(from);
    x.b = __ldcg(from + 32);
    x.c = __ldcg(from + 64);
    x.d = __ldcg(from + 96);
    return x;
}

static __device__ __forceinline__ void quad_store(float *to, const quad &x)
{
    to[0] = x.a;
    to[32] = x.b;
    to[64] = x.c;
    to[96] = x.d;
}

static __device__ __forceinline__ void quad_scale(quad &x, float factor)
{
    x.a = __fmul_rn(x.a, factor);
    x.b = __fmul_rn(x.b, factor);
    x.c = __fmul_rn(x.c, factor);
    x.d = __fmul_rn(x.d, factor);
}

/* Step 4 of the recurrence: x = fma(k, delta, x). */
static __device__ __forceinline__ void quad_update(quad &x, const quad &k, float delta)
{
    x.a = __fmaf_rn(k.a, delta, x.a);
    x.b = __fmaf_rn(k.b, delta, x.b);
    x.c = __fmaf_rn(k.c, delta, x.c);
    x.d = __fmaf_rn(k.d, delta, x.d);
}

/* The rounded products and the tree's strides 64 and 32: a lane's partial sum. */
static __device__ __forceinline__ float quad_dot(const quad &x, const quad &y)
{
    const float ac = __fadd_rn(__fmul_rn(x.a, y.a), __fmul_rn(x.c, y.c));
    const float bd = __fadd_rn(__fmul_rn(x.b, y.b), __fmul_rn(x.d, y.d));
    return __fadd_rn(ac, bd);
}

/* Strides `mask` to 1 by butterflies; every lane of a group of 2*mask ends with the group's sum. */
static __device__ __forceinline__ float tree_lanes(float sum, int mask)
{
#pragma unroll
    for (; mask > 0; mask >>= 1)
        sum = __fadd_rn(sum, lane_xor(sum, mask));
    return sum;
}

/* Lane L finishes the sum of row L >> row_shift. ROWS is a power of two up to 8. */
template <int ROWS> static __device__ __forceinline__ int row_shift()
{
    return ROWS == 8 ? 2 : ROWS == 4 ? 3 : 4;
}

/*
 * Sums of ROWS rows from each lane's partial sums, p[i] that of row i. A lane keeps the rows whose number has the bit
 * that its own number has and gives the others away; which they are is a select.
 */
template <int ROWS> static __device__ __forceinline__ float tree_rows(float (&p)[ROWS], int lane)
{
    int mask = 16;
#pragma unroll
    for (int half = ROWS / 2; half > 0; half >>= 1) {
        const bool upper = (lane & mask) != 0;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float keep = upper ? p[i + half] : p[i];
            const float give = upper ? p[i] : p[i + half];
            p[i] = __fadd_rn(keep, lane_xor(give, mask));
        }
        mask >>= 1;
    }
    return tree_lanes(p[0], mask);
}

/*
 * The same without the selects, for rows that a lane holds in an order of its own: p[i] is the partial sum of row
 * i ^ (L >> row_shift). What lane L keeps in p[i], lane L^mask then has in p[i + half]. This is the level of stride 16.
 */
template <int ROWS> static __device__ __forceinline__ void own_rows_halve(float (&p)[ROWS])
{
#pragma unroll
    for (int i = 0; i < ROWS / 2; ++i)
        p[i] = __fadd_rn(p[i], lane_xor(p[i + ROWS / 2], 16));
}

/* The levels after it, of two sums in turn: while the shuffles of one are on their way, the other adds. */
template <int ROWS> static __device__ __forceinline__ void own_rows_finish(float (&p)[ROWS], float (&o)[ROWS])
{
    int mask = 8;
#pragma unroll
    for (int half = ROWS / 4; half > 0; half >>= 1) {
#pragma unroll
        for (int i = 0; i < half; ++i) {
            o[i] = __fadd_rn(o[i], lane_xor(o[i + half], mask));
            p[i] = __fadd_rn(p[i], lane_xor(p[i + half], mask));
        }
        mask >>= 1;
    }
#pragma unroll
    for (; mask > 0; mask >>= 1) {
        o[0] = __fadd_rn(o[0], lane_xor(o[0], mask));
        p[0] = __fadd_rn(p[0], lane_xor(p[0], mask));
    }
}

/* The rows of a warp, register i of a lane holding row i ^ own, to `to`, its row 0: pieces of 128 / ROWS bytes. */
template <int ROWS>
static __device__ __forceinline__ void own_rows_store(float *to, const quad (&r)[ROWS], unsigned int own, int lane)
{
    const unsigned int byte = opaque(own * 512u);
    to += lane;
#pragma unroll
    for (unsigned int i = 0; i < ROWS; ++i)
        quad_store((float *)((char *)to + (byte ^ (i * 512u))), r[i]);
}

/* Step 3 of the recurrence: delta = (v - pred) * beta. */
static __device__ __forceinline__ float correction(float v, float pred, float beta)
{
    return __fmul_rn(__fsub_rn(v, pred), beta);
}

/* Whether this lane stores the result of its row: one lane of each row does. */
template <int ROWS> static __device__ __forceinline__ bool row_writer(int lane)
{
    return (lane & ((1 << row_shift<ROWS>()) - 1)) == 0;
}

/*
 * One position for ROWS rows, which every lane holds in the same order; v is that of row L >> row_shift, and so is the
 * result, y. Writes the rows back to `cell` (this lane's first element of row 0).
 */
template <int ROWS>
static __device__ __forceinline__ float rows_step(quad (&r)[ROWS], float *cell, const quad &k, const quad &q, float v,
                                                  float decay, float beta, float scale, int lane)
{
    float p[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        quad_scale(r[i], decay);
        p[i] = quad_dot(r[i], k);
    }
    const float delta = correction(v, tree_rows<ROWS>(p, lane), beta);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        quad_update(r[i], k, lane_read(delta, i << row_shift<ROWS>()));
        quad_store(cell + i * 128, r[i]);
        p[i] = quad_dot(r[i], q);
    }
    return __fmul_rn(scale, tree_rows<ROWS>(p, lane));
}

template <int ROWS>
static __device__ __forceinline__ void slots_rows(float *__restrict__ s, const float *__restrict__ q,
                                                  const float *__restrict__ k, const float *__restrict__ v,
                                                  const float *__restrict__ g, const float *__restrict__ beta,
                                                  float *__restrict__ y, int n_v_heads, float scale)
{
    const int lane = (int)(threadIdx.x & 31u);
    const int first = (int)(blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5)) * ROWS;
    const long long head = (long long)blockIdx.z * n_v_heads + blockIdx.y;
    const long long own = head * 128 + first + (lane >> row_shift<ROWS>());
    float *cell = s + (head * 128 + first) * 128 + lane;
    quad r[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        r[i] = quad_load_once(cell + i * 128);
    const quad kh = quad_load(k + head * 128 + lane);
    const quad qh = quad_load(q + head * 128 + lane);
    const float out = rows_step<ROWS>(r, cell, kh, qh, v[own], expf(g[head]), beta[head], scale, lane);
    if (row_writer<ROWS>(lane))
        y[own] = out;
}

/* -------------------------------------------------------------------------------------------------- the recurrence */

/*
 * 16: kernel 12's bits, S = 128. The launch's shape says how many rows a warp takes: grid (128 / (rows*warps),
 * n_v_heads, K), a block of `warps` whole warps, rows 2, 4 or 8. Eight rows and blocks of one warp move most bytes,
 * two rows and 128 threads end soonest when there are only one or two users. Every shape gives the same bits. Another
 * state_size, or a shape that is none of these, returns at once and writes nothing. No shared memory.
 */
extern "C" __global__ void fc_ssm_recurrence_slots_warp(float *__restrict__ s, const float *__restrict__ q,
                                                        const float *__restrict__ k, const float *__restrict__ v,
                                                        const float *__restrict__ g, const float *__restrict__ beta,
                                                        float *__restrict__ y, int state_size, int n_v_heads,
                                                        float scale)
{
    if (state_size != 128)
        return;
    const unsigned int warps = gridDim.x * (blockDim.x >> 5);
    if (warps == 16u)
        slots_rows<8>(s, q, k, v, g, beta, y, n_v_heads, scale);
    else if (warps == 32u)
        slots_rows<4>(s, q, k, v, g, beta, y, n_v_heads, scale);
    else if (warps == 64u)
        slots_rows<2>(s, q, k, v, g, beta, y, n_v_heads, scale);
}

/* Positions whose k and q a block has in shared memory; as many more are on their way to it. */
#define GROUP 4
/* Positions whose decay and beta a warp has at hand, one in each lane of a half warp: exp once per position. */
#define STAGED 16

/* Steps 1 and 2 of the recurrence for the rows of a warp: decays them, and the partial sums of prediction. */
template <int ROWS>
static __device__ __forceinline__ void rows_predict(quad (&r)[ROWS], float (&p)[ROWS], const quad &k, float decay)
{
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        quad_scale(r[i], decay);
        p[i] = quad_dot(r[i], k);
    }
    own_rows_halve<ROWS>(p);
}

/*
 * Kernel 17 for ROWS rows a warp. Register i of lane L holds row i ^ (L >> row_shift) of them, the order that the sums
 * want. The state is loaded and stored once, so that its scattered order costs nothing.
 *
 * A round of the loop ends position t - 1 (update, y) and begins position t (decay, prediction, delta), so that both
 * of its sums are under way at once. The position after the last begins too, with a decay of 1, which leaves every bit
 * that fma has made; nothing else of it is kept.
 *
 * Each warp of the block fetches one position of the next group's k and q, in registers while this group is worked on,
 * then in the half of `ring` that no warp reads any more: who is past the barrier before a group has done with the
 * group before that. `ring` is [2 * GROUP positions][k, q][lane], a quad each.
 */
template <int ROWS, bool SNAPS>
static __device__ __forceinline__ void seq_rows(float *__restrict__ s, const float *__restrict__ q,
                                                const float *__restrict__ k, const float *__restrict__ v,
                                                const float *__restrict__ g, const float *__restrict__ beta,
                                                float *__restrict__ y, int n_v_heads, int n, float scale,
                                                float *__restrict__ snaps, quad *ring)
{
    const int lane = (int)(threadIdx.x & 31u);
    const int warp = (int)(threadIdx.x >> 5);
    const int shift = row_shift<ROWS>();
    const unsigned int own = (unsigned int)lane >> shift;
    const long long width = (long long)n_v_heads * 128;
    const long long first = blockIdx.y * 128ll + (blockIdx.x * 4u + warp) * ROWS; /* row */
    quad r[ROWS];
#pragma unroll
    for (unsigned int i = 0; i < ROWS; ++i)
        r[i] = quad_load(s + first * 128 + lane + (i ^ own) * 128u);
    if (SNAPS)
        snaps += first * 128;
    y += first + own;
    g += blockIdx.y;
    beta += blockIdx.y;

    /* What this lane fetches: of k and q the position of its warp's number in a group, of v that of its own mod 4. */
    long long at_kq = warp * width + blockIdx.y * 128ll + lane;
    long long at_v = (lane & 3) * width + first + own;
    if (warp >= n)
        at_kq -= warp * width; /* past the last position; whatever is read there is not kept */
    quad k_next = quad_load_once(k + at_kq);
    quad q_next = quad_load_once(q + at_kq);
    float v_next = 0.0f;
    if ((lane & 3) < n)
        v_next = __ldcg(v + at_v);
    ring[warp * 64 + lane] = k_next;
    ring[warp * 64 + 32 + lane] = q_next;
    float values = v_next;
    const int staged = lane & (STAGED - 1);
    float decays = 1.0f;
    float betas = 0.0f;
    if (staged < n) {
        decays = expf(g[staged * (long long)n_v_heads]);
        betas = beta[staged * (long long)n_v_heads];
    }
    float g_next = 0.0f;
    float beta_next = 0.0f;
    if (staged + STAGED < n) {
        g_next = g[(staged + STAGED) * (long long)n_v_heads];
        beta_next = beta[(staged + STAGED) * (long long)n_v_heads];
    }
    __syncthreads();

    quad k_now = ring[lane];
    quad q_now = ring[32 + lane];
    float p[ROWS], o[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS / 2; ++i)
        o[i] = 0.0f; /* there is no position before */
    rows_predict<ROWS>(r, p, k_now, lane_read(decays, 0));
    own_rows_finish<ROWS>(p, o);
    float delta = correction(lane_of_four(values, 0), p[0], lane_read(betas, 0));
    const unsigned int quiet = opaque(lane & ((1u << shift) - 1)); /* 0 in the lane of each row that stores y */
    int t = 1;
#pragma unroll 1
    for (;;) {
        const unsigned int thread = opaque(threadIdx.x); /* addresses from it are made anew in each group */
        const int next = (t & ~(GROUP - 1)) + GROUP;
        if (next + (int)(thread >> 5) < n) {
            at_kq += GROUP * width;
            k_next = quad_load_once(k + at_kq);
            q_next = quad_load_once(q + at_kq);
        }
        if (next + (int)(thread & 3) < n) {
            at_v += GROUP * width;
            v_next = __ldcg(v + at_v);
        }
        const quad *get = ring + (t & (2 * GROUP - 1)) * 64 + (thread & 31);
        const int end = (int)opaque(next <= n ? next : n + 1);
#pragma unroll 1
        for (; t < end; ++t) {
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                quad_update(r[i], k_now, i == 0 ? delta : lane_xor(delta, i << shift));
                o[i] = quad_dot(r[i], q_now);
            }
            own_rows_halve<ROWS>(o);
            if (SNAPS) {
                own_rows_store<ROWS>(snaps, r, own, lane);
                snaps += width * 128;
            }
            k_now = get[0];
            q_now = get[32];
            get += 64;
            rows_predict<ROWS>(r, p, k_now, lane_read(decays, t));
            own_rows_finish<ROWS>(p, o);
            delta = correction(lane_of_four(values, t), p[0], lane_read(betas, t));
            if (quiet == 0)
                *y = __fmul_rn(scale, o[0]);
            y += width;
        }
        if (t > n)
            break;
        quad *put = ring + ((t & GROUP) + (thread >> 5)) * 64 + (thread & 31);
        put[0] = k_next;
        put[32] = q_next;
        values = v_next;
        if ((t & (STAGED - 1)) == 0) {
            decays = expf(g_next);
            betas = beta_next;
            g_next = 0.0f; /* its exp is 1 */
            const int ahead = t + STAGED + (int)(thread & (STAGED - 1));
            if (ahead < n) {
                g_next = g[ahead * (long long)n_v_heads];
                beta_next = beta[ahead * (long long)n_v_heads];
            }
        }
        __syncthreads();
    }
    own_rows_store<ROWS>(s + first * 128, r, own, lane);
}

/*
 * 17: kernel 8's bits, S = 128. The launch's shape says how many rows a warp takes: grid (4, n_v_heads) for eight,
 * (8, n_v_heads) for four, block 128. Eight take fewest instructions, which is what a K80 waits for; four hide the
 * latency of their sums on a card with more multiprocessors, and store snapshots in whole sectors of 32 bytes. Both
 * give the same bits. Another state_size or shape returns at once and writes nothing. 8 KB of static shared memory, a
 * barrier every four positions, any n.
 */
extern "C" __global__ void __launch_bounds__(128)
    fc_ssm_recurrence_seq_warp_multi(float *__restrict__ s, const float *__restrict__ q, const float *__restrict__ k,
                                     const float *__restrict__ v, const float *__restrict__ g,
                                     const float *__restrict__ beta, float *__restrict__ y, int state_size,
                                     int n_v_heads, int n, float scale, float *__restrict__ snaps)
{
    __shared__ quad ring[2 * GROUP * 64];
    if (state_size != 128 || n <= 0 || blockDim.x != 128u)
        return;
    if (gridDim.x == 4u) {
        if (snaps)
            seq_rows<8, true>(s, q, k, v, g, beta, y, n_v_heads, n, scale, snaps, ring);
        else
            seq_rows<8, false>(s, q, k, v, g, beta, y, n_v_heads, n, scale, snaps, ring);
    } else if (gridDim.x == 8u) {
        if (snaps)
            seq_rows<4, true>(s, q, k, v, g, beta, y, n_v_heads, n, scale, snaps, ring);
        else
            seq_rows<4, false>(s, q, k, v, g, beta, y, n_v_heads, n, scale, snaps, ring);
    }
}

/* ------------------------------------------------------------------------------------------------- the decode step */

/* 1 + exp(-x), the denominator of sigmoid and silu. */
static __device__ __forceinline__ float one_plus_exp_neg(float x)
{
    return __fadd_rn(1.0f, expf(-x));
}

static __device__ __forceinline__ float silu(float x)
{
    return __fdiv_rn(x, one_plus_exp_neg(x));
}

/* Kernel 5: ssm_a * softplus(alpha + dt). */
static __device__ __forceinline__ float decay_gate(float alpha, float dt, float a)
{
    const float v = __fadd_rn(alpha, dt);
    return __fmul_rn(a, v > 20.0f ? v : log1pf(expf(v)));
}

/* Kernel 11 for one channel and four taps: `history` has its three samples and gets the next three. */
static __device__ __forceinline__ float conv_channel(float x, const float *__restrict__ taps, float *history)
{
    const float a = history[0];
    const float b = history[1];
    const float c = history[2];
    float acc = __fmul_rn(x, taps[3]);
    acc = __fmaf_rn(a, taps[0], acc);
    acc = __fmaf_rn(b, taps[1], acc);
    acc = __fmaf_rn(c, taps[2], acc);
    history[0] = b;
    history[1] = c;
    history[2] = x;
    return silu(acc);
}

/* The tree sum of 128 squares: kernels 3 and 6. */
static __device__ __forceinline__ float sum_of_squares(const quad &x)
{
    return tree_lanes(quad_dot(x, x), 16);
}

/* x / max(|x|, eps), as kernel 6 has it. */
static __device__ __forceinline__ quad normalised(quad x, float eps)
{
    quad_scale(x, __frcp_rn(fmaxf(__fsqrt_rn(sum_of_squares(x)), eps)));
    return x;
}

/*
 * 18: one token of K users from the projections to the gated output: the bits of 11 (conv_kernel 4), 15, 14, 4, 12 and
 * 3 one after the other. Grid (n_k_heads, K), block 512, shared (2 + 2*kv_groups)*128 floats: a block has one K-head,
 * which is the least that the flow of data allows, for its V-heads share the convolved q and k, whose history may be
 * moved on only once. alpha and beta are [K][n_v_heads] as projected, before softplus and sigmoid; ssm_dt and ssm_a
 * [n_v_heads]; z and gated [K][n_v_heads*128]; norm_weight [128]. `gated` may be `z`.
 * Another state_size than 128 or conv_kernel than 4 returns at once and writes nothing.
 */
extern "C" __global__ void __launch_bounds__(512)
    fc_ssm_decode_step(float *__restrict__ s, const float *__restrict__ qkv, const float *__restrict__ conv_weight,
                       float *__restrict__ conv_state, const float *__restrict__ alpha,
                       const float *__restrict__ ssm_dt, const float *__restrict__ ssm_a,
                       const float *__restrict__ beta, const float *z, const float *__restrict__ norm_weight,
                       float *gated, int n_k_heads, int kv_groups, int state_size, int conv_kernel, float scale,
                       float qk_eps, float norm_eps)
{
    if (state_size != 128 || conv_kernel != 4)
        return;
    const int lane = (int)(threadIdx.x & 31u);
    const int warp = (int)(threadIdx.x >> 5);
    const int warps = (int)(blockDim.x >> 5);
    const int own = lane >> row_shift<8>();
    const long long kh = blockIdx.x;
    const long long n_v_heads = (long long)n_k_heads * kv_groups;
    const long long user_heads = blockIdx.y * n_v_heads; /* V-heads of the users before this one */
    float *conv_out = shared;                            /* q, k, and v of each V-head: (2 + kv_groups)*128 */
    float *ys = shared + (2 + kv_groups) * 128;          /* kv_groups*128 */

    /* Part p of the channels is 128 channels of q (0), k (1) or of v of the group p - 2. */
    const long long conv_dim = (2 + kv_groups) * (long long)n_k_heads * 128;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < (2 + kv_groups) * 128; i += (int)blockDim.x) {
        const long long channel = ((i >> 7) * (long long)n_k_heads + kh) * 128 + (i & 127);
        const long long at = blockIdx.y * conv_dim + channel;
        conv_out[i] = conv_channel(qkv[at], conv_weight + channel * 4, conv_state + at * 3);
    }
    __syncthreads();

    const quad q = normalised(quad_load(conv_out + lane), qk_eps);
    const quad k = normalised(quad_load(conv_out + 128 + lane), qk_eps);
#pragma unroll 1
    for (int rows = warp; rows < kv_groups * 16; rows += warps) { /* eight rows of one V-head at a time */
        const int group = rows >> 4;
        const int first = (rows & 15) * 8;
        const long long vh = (long long)group * n_k_heads + kh;
        float *cell = s + ((user_heads + vh) * 128 + first) * 128 + lane;
        quad r[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            r[i] = quad_load_once(cell + i * 128);
        const float decay = expf(decay_gate(alpha[user_heads + vh], ssm_dt[vh], ssm_a[vh]));
        const float b = __frcp_rn(one_plus_exp_neg(beta[user_heads + vh]));
        const float v = conv_out[(2 + group) * 128 + first + own];
        const float out = rows_step<8>(r, cell, k, q, v, decay, b, scale, lane);
        if (row_writer<8>(lane))
            ys[group * 128 + first + own] = out;
    }
    __syncthreads();

#pragma unroll 1
    for (int i = (int)threadIdx.x; i < kv_groups * 128; i += (int)blockDim.x) { /* whole warps, each in one head */
        const float sum = sum_of_squares(quad_load(ys + (i & ~127) + lane));
        const float inv = __frcp_rn(__fsqrt_rn(__fadd_rn(__fdiv_rn(sum, 128.0f), norm_eps)));
        const long long at = (user_heads + (long long)(i >> 7) * n_k_heads + kh) * 128 + (i & 127);
        gated[at] = __fmul_rn(__fmul_rn(__fmul_rn(ys[i], inv), norm_weight[i & 127]), silu(z[at]));
    }
}
