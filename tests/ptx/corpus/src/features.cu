// A little of everything a kernel for an old GPU makes the compiler write.
struct Pair { float a; int b[3]; };

__constant__ float table[5] = {1.0f, 2.5f, -0.0f, 3.0e38f, 1.0e-40f};
__device__ int counter = 7;
__device__ const char *const words[2] = {"a;b", "}\"{"};
__device__ double *pointer_into_itself;
extern __shared__ float dynamic[];

__device__ __noinline__ float helper(Pair p, const float *x, int n) {
    float sum = p.a;
    for (int i = 0; i < n; i++) sum += x[i] * p.b[i % 3];
    return sum;
}

__device__ __noinline__ double2 two(double x) { return make_double2(x * 2, x / 3); }

typedef float (*unary)(float);
__device__ __noinline__ float up(float x) { return expf(x); }
__device__ __noinline__ float down(float x) { return logf(x) + sinf(x); }
__device__ unary choices[2] = {up, down};

extern "C" __global__ void __launch_bounds__(256, 2) vectors(const float4 *x, float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = x[i];
        y[i] = make_float4(v.w, v.z, v.y, v.x);
    }
}

extern "C" __global__ void history(const float *x, float *y, int n, int k) {
    float h[8];
    for (int i = 0; i < k; i++) h[i] = x[i];
    for (int j = 0; j < n; j++) {
        float s = 0;
        for (int i = 0; i < k; i++) s += h[(i + j) % k] * table[i % 5];
        h[j % k] = s;
        y[j] = s;
    }
}

extern "C" __global__ void reduce(const float *x, float *y, int n) {
    __shared__ float part[32];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[i];
#pragma unroll
    for (int o = 16; o; o >>= 1) s +=
#if __CUDA_ARCH__ >= 700
        __shfl_down_sync(~0u, s, o);
#else
        __shfl_down(s, o);
#endif
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
    __syncthreads();
    dynamic[threadIdx.x] = part[threadIdx.x & 31];
    __syncthreads();
    if (threadIdx.x == 0) { atomicAdd(y, s + dynamic[1]); atomicMax(&counter, n); }
}

extern "C" __global__ void calls(Pair p, const float *x, float *y, double *z, int which, unsigned long long *w) {
    y[0] = helper(p, x, which);
    double2 d = two(z[0]);
    z[1] = d.x; z[2] = d.y;
    y[1] = choices[which & 1](x[2]) + words[which & 1][0];
    w[0] = w[1] * w[2] + __umul64hi(w[3], w[4]);
    w[5] = w[6] % w[7];
}

extern "C" __global__ void inline_asm(unsigned *a) {
    unsigned r = a[0], s = a[1], t;
    asm volatile("{\n\t.reg .pred p;\n\t.reg .u32 t;\n\tsetp.gt.u32 p, %1, %2;\n"
                 "\tmov.u32 t, 7;\n\t@!p bra DONE_%=;\n\tadd.u32 t, t, 1; // one; more\nDONE_%=:\n\tmov.u32 %0, t;\n\t}"
                 : "=r"(t) : "r"(r), "r"(s));
    asm("{ add.cc.u32 %0, %1, %2; /* carry { */ addc.u32 %0, %0, 0; }" : "=r"(r) : "r"(t), "r"(s));
    asm("vadd.u32.u32.u32.sat %0, %1.b0, %2.h1;" : "=r"(s) : "r"(r), "r"(t));
    switch (a[2]) {
    case 0: r += 3; break;
    case 1: r ^= s; break;
    case 2: r *= 5; break;
    case 3: r = a[9]; break;
    case 4: r = __brev(r); break;
    case 5: r = __popc(r) + __clz(s); break;
    }
    a[3] = r;
    a[4] = s;
}
