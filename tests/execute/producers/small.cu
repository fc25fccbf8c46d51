// Small kernels in which compilers show their habits; they need no CUDA headers, so that clang takes them too.
#define DEV __attribute__((device))
#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared))
#ifdef __clang__
#define TX __nvvm_read_ptx_sreg_tid_x()
#define TY __nvvm_read_ptx_sreg_tid_y()
#define BX __nvvm_read_ptx_sreg_ctaid_x()
#define BY __nvvm_read_ptx_sreg_ctaid_y()
#define NX __nvvm_read_ptx_sreg_ntid_x()
#define SYNC() __syncthreads()
#else
#define TX threadIdx.x
#define TY threadIdx.y
#define BX blockIdx.x
#define BY blockIdx.y
#define NX blockDim.x
#define SYNC() __syncthreads()
#endif

KERNEL saxpy(float *y, const float *x, float a, int n)
{
    int i = BX * NX + TX;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

KERNEL block_sum(float *out, const float *x, int n)
{
    SHARED float part[256];
    float s = 0;
    for (int i = TX; i < n; i += NX)
        s += x[BX * n + i];
    part[TX] = s;
    for (int half = NX / 2; half > 0; half >>= 1) {
        SYNC();
        if (TX < half)
            part[TX] += part[TX + half];
    }
    if (TX == 0)
        out[BX] = part[0];
}

KERNEL transpose(short *out, const short *in, int rows, int columns)
{
    SHARED short tile[16][17];
    int c = BX * 16 + TX, r = BY * 16 + TY;
    if (r < rows && c < columns)
        tile[TY][TX] = in[r * columns + c];
    SYNC();
    c = BY * 16 + TX, r = BX * 16 + TY;
    if (r < columns && c < rows)
        out[r * rows + c] = tile[TX][TY];
}

KERNEL collatz(unsigned *steps, unsigned long long *peak, int n)
{
    int i = BX * NX + TX;
    if (i >= n)
        return;
    unsigned long long x = i + 1, top = x;
    unsigned count = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        if (x > top)
            top = x;
        if (++count == 1000)
            break;
    }
    steps[i] = count;
    peak[i] = top;
}

KERNEL polynomial(double *y, const double *x, const int *degree, int n)
{
    int i = BX * NX + TX;
    double powers[8];
    if (i >= n)
        return;
    powers[0] = 1;
    for (int k = 1; k < 8; k++)
        powers[k] = powers[k - 1] * x[i];
    double sum = 0;
    for (int k = 0; k <= degree[i]; k++)
        sum += (k - 3) * powers[k & 7];
    y[i] = sum / (1 + degree[i]);
}

struct Pair { int key; float value; };
DEV __attribute__((noinline)) Pair better(Pair a, Pair b) { return a.value < b.value || (a.value == b.value && a.key > b.key) ? b : a; }

KERNEL argmax(Pair *out, const float *x, int n)
{
    Pair best = {0, x[TX * n]};
    for (int k = 1; k < n; k++) {
        Pair next = {k, x[TX * n + k]};
        best = better(best, next);
    }
    out[TX] = best;
}

KERNEL bytes(unsigned char *out, const signed char *in, int n, int shift)
{
    for (int i = BX * NX + TX; i < n; i += 64) {
        int v = in[i];
        switch (v & 7) {
        case 0: v = v << shift; break;
        case 1: v = v >> shift; break;
        case 2: v = (unsigned char)v % 11; break;
        case 3: v = v / 3; break;
        case 4: v = ~v; break;
        case 5: v = v * v; break;
        case 6: v = v < 0 ? -v : v; break;
        default: v = 0;
        }
        out[i] = v;
    }
}
