// Textures and surfaces, 64-bit atomics, printf and malloc (vprintf's call), half precision.
#include <cuda_fp16.h>
#include <cstdio>
extern "C" __global__ void sample(cudaTextureObject_t t, cudaSurfaceObject_t s, float4 *out) {
    out[0] = tex2D<float4>(t, 0.5f, 1.5f);
    out[1] = tex2DLod<float4>(t, 0.5f, 1.5f, 2.0f);
    out[2] = tex3D<float4>(t, 1, 2, 3);
    int v = surf2Dread<int>(s, 4, 5);
    surf2Dwrite(v + 1, s, 8, 9);
}
extern "C" __global__ void halves(const __half2 *x, __half2 *y, unsigned long long *n) {
    y[0] = __hfma2(x[0], x[1], x[2]);
    atomicCAS(n, 1ull, 2ull);
    if (__any_sync(~0u, n[1] > 5)) printf("%d %f\n", (int)n[0], __half2float(y[0].x));
    void *p = malloc(16);
    free(p);
}
