/* Two kernels for which the PTX's text is wrong about local memory, in opposite ways. tiers.ptx is NVRTC 11.4.152's. */

/* No `.local` in the PTX, but 80 live values do not fit in the 64 registers that two blocks of 1024 leave a thread. */
extern "C" __global__ void __launch_bounds__(1024, 2) spilled(const float *in, float *out, int n)
{
    float a[80];
#pragma unroll
    for (int i = 0; i < 80; ++i)
        a[i] = in[i * n + threadIdx.x];
    __syncthreads();
    float s = 0;
#pragma unroll
    for (int i = 0; i < 80; ++i) {
        s = s * a[79 - i] + a[i];
        out[i * n + threadIdx.x] = s * a[(i * 7) % 80];
    }
}

/* A depot of 64 bytes in the PTX, since the loop is kept; ptxas unrolls it after all and needs no memory. */
extern "C" __global__ void promoted(float *p, int n)
{
    float a[16];
#pragma unroll 1
    for (int i = 0; i < 16; ++i)
        a[i] = p[i] * 2;
    p[n] = a[3];
}
