/* Variants of kernel 7 (n positions of the causal convolution) for the audit's tests; not part of the product.
 *
 * generic: the history in an array indexed under a run-time bound, which the compiler must keep in local memory.
 * fast:    the same, behind a branch that holds the case conv_kernel == 4 in named scalars.
 */
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

__device__ __forceinline__ void generic_body(const float *qkv, const float *weight, float *conv_state, float *out,
                                             int conv_dim, int conv_kernel, int n, float *snaps, int c)
{
    float hist[3];
    for (int t = 0; t < conv_kernel - 1; ++t)
        hist[t] = conv_state[c * (conv_kernel - 1) + t];
    for (int p = 0; p < n; ++p) {
        const float x = qkv[(long long)p * conv_dim + c];
        float acc = x * weight[c * conv_kernel + conv_kernel - 1];
        for (int t = 0; t < conv_kernel - 1; ++t)
            acc = fmaf(hist[t], weight[c * conv_kernel + t], acc);
        out[(long long)p * conv_dim + c] = silu(acc);
        for (int t = 0; t < conv_kernel - 2; ++t)
            hist[t] = hist[t + 1];
        hist[conv_kernel - 2] = x;
        if (snaps)
            for (int t = 0; t < conv_kernel - 1; ++t)
                snaps[((long long)p * conv_dim + c) * (conv_kernel - 1) + t] = hist[t];
    }
    for (int t = 0; t < conv_kernel - 1; ++t)
        conv_state[c * (conv_kernel - 1) + t] = hist[t];
}

extern "C" __global__ void generic(const float *qkv, const float *weight, float *conv_state, float *out, int conv_dim,
                                   int conv_kernel, int n, float *snaps)
{
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= conv_dim)
        return;
    generic_body(qkv, weight, conv_state, out, conv_dim, conv_kernel, n, snaps, c);
}

extern "C" __global__ void fast(const float *qkv, const float *weight, float *conv_state, float *out, int conv_dim,
                                int conv_kernel, int n, float *snaps)
{
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= conv_dim)
        return;
    if (conv_kernel == 4) {
        float h0 = conv_state[c * 3], h1 = conv_state[c * 3 + 1], h2 = conv_state[c * 3 + 2];
        for (int p = 0; p < n; ++p) {
            const float x = qkv[(long long)p * conv_dim + c];
            float acc = x * weight[c * 4 + 3];
            acc = fmaf(h0, weight[c * 4], acc);
            acc = fmaf(h1, weight[c * 4 + 1], acc);
            acc = fmaf(h2, weight[c * 4 + 2], acc);
            out[(long long)p * conv_dim + c] = silu(acc);
            h0 = h1;
            h1 = h2;
            h2 = x;
            if (snaps) {
                snaps[((long long)p * conv_dim + c) * 3] = h0;
                snaps[((long long)p * conv_dim + c) * 3 + 1] = h1;
                snaps[((long long)p * conv_dim + c) * 3 + 2] = h2;
            }
        }
        conv_state[c * 3] = h0;
        conv_state[c * 3 + 1] = h1;
        conv_state[c * 3 + 2] = h2;
        return;
    }
    generic_body(qkv, weight, conv_state, out, conv_dim, conv_kernel, n, snaps, c);
}
