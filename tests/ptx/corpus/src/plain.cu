// Needs no CUDA headers: recursion, a local array, inlined functions, a jump table.
#define DEV __attribute__((device))
#define KERNEL __attribute__((global))
#ifdef __clang__
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#else
#define THREAD threadIdx.x
#endif
DEV __attribute__((noinline)) int deep(int n) { return n < 2 ? 1 : n * deep(n - 1); }
DEV inline float square(float x) { return x * x; }
DEV inline float cube(float x) { return x * square(x); }
DEV __attribute__((constant)) int powers[4] = {1, 2, 4, 8};
extern "C" KERNEL void clang_kernel(float *x, int *n, int k) {
    int i = THREAD;
    int history[6];
    for (int j = 0; j < k; j++) history[j] = n[j];
    x[i] = cube(x[i]) + square(x[i + 1]);
    switch (n[i]) {
    case 0: n[i] = history[k]; break;
    case 1: n[i] = deep(k); break;
    case 2: n[i] = powers[k]; break;
    case 3: n[i] = 77; break;
    default: n[i] = -1;
    }
}
