/* Two kernels about which PTX text misleads; for the audit's tests, not part of the product.
 *
 * promoted: the text has a 64-byte depot, which ptxas keeps in registers (0-byte frame).
 * spilled:  the text has no word of .local, yet ptxas spills, because 1024 threads twice leave it 32 registers.
 */
extern "C" __global__ void promoted(float *out, const float *in, int n)
{
    float kept[16];
    int zero; /* opaque to the compiler, plain to ptxas */
    asm("mov.u32 %0, 0;" : "=r"(zero));
#pragma unroll
    for (int i = 0; i < 16; ++i)
        kept[i] = in[i * n + threadIdx.x];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i)
        sum += kept[i + zero] * kept[15 - i];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(1024, 2) spilled(float *out, const float *in, int n)
{
    float v[48];
#pragma unroll
    for (int i = 0; i < 48; ++i)
        v[i] = in[i * n + threadIdx.x];
#pragma unroll 1
    for (int round = 0; round < n; ++round) {
#pragma unroll
        for (int i = 0; i < 48; ++i)
            v[i] = fmaf(v[(i + 7) % 48], v[(i + 19) % 48], v[i]);
        __syncthreads();
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 48; ++i)
        sum += v[i];
    out[threadIdx.x] = sum;
}
