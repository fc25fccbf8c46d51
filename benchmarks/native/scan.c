/* The scan of kernels 8 to 10 in plain C, as the limit the CPU executor is measured against.
 *
 * Same order of operations as the contract: products rounded before the tree, the tree's pairs kept, one fma for the
 * update. Vectorised over 16 rows of a head's state, which live transposed in the first-level cache for the whole
 * scan. exp is the C library's, so the last bit of the decay may differ from the PTX's.
 *
 * gcc -O3 -march=native -mprefer-vector-width=512 -ffp-contract=off -fopenmp -shared -fPIC scan.c -lm
 */
#include <math.h>
#include <stddef.h>

enum { S = 128, ROWS = 16 };
typedef float rows __attribute__((vector_size(ROWS * sizeof(float)), aligned(64)));

/* The contract's tree over 128 products: leaves 8 apart meet first (strides 64, 32, 16, 8), in registers. */
static inline rows tree(const rows *r, const float *x)
{
    rows part[8];
    for (int c = 0; c < 8; c++) {
        rows p[16];
#pragma GCC unroll 16
        for (int m = 0; m < 16; m++)
            p[m] = r[c + 8 * m] * x[c + 8 * m];
#pragma GCC unroll 4
        for (int half = 8; half > 0; half /= 2)
#pragma GCC unroll 8
            for (int m = 0; m < half; m++)
                p[m] += p[m + half];
        part[c] = p[0];
    }
    for (int half = 4; half > 0; half /= 2)
        for (int c = 0; c < half; c++)
            part[c] += part[c + half];
    return part[0];
}

static void group(float *s, const float *q, const float *k, const float *v, const float *g, const float *beta, float *y,
                  int heads, int n, float scale, int h, int first)
{
    rows r[S];
    float *state = s + ((size_t)h * S + first) * S;
    for (int i = 0; i < S; i++)
        for (int j = 0; j < ROWS; j++)
            r[i][j] = state[(size_t)j * S + i];
    for (int t = 0; t < n; t++) {
        const size_t at = ((size_t)t * heads + h) * S;
        const float decay = expf(g[(size_t)t * heads + h]), b = beta[(size_t)t * heads + h];
        for (int i = 0; i < S; i++)
            r[i] *= decay;
        rows value;
        for (int j = 0; j < ROWS; j++)
            value[j] = v[at + first + j];
        const rows delta = (value - tree(r, k + at)) * b;
        for (int i = 0; i < S; i++)
            for (int j = 0; j < ROWS; j++)
                r[i][j] = fmaf(k[at + i], delta[j], r[i][j]);
        const rows out = scale * tree(r, q + at);
        for (int j = 0; j < ROWS; j++)
            y[at + first + j] = out[j];
    }
    for (int i = 0; i < S; i++)
        for (int j = 0; j < ROWS; j++)
            state[(size_t)j * S + i] = r[i][j];
}

void scan(float *s, const float *q, const float *k, const float *v, const float *g, const float *beta, float *y,
          int heads, int n, float scale, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
    for (int task = 0; task < heads * (S / ROWS); task++)
        group(s, q, k, v, g, beta, y, heads, n, scale, task / (S / ROWS), task % (S / ROWS) * ROWS);
}
