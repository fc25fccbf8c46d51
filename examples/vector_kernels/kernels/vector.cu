/* Three kernels that have nothing to do with the product: an axpy, an RMS norm and a softmax, both of rows. */

/* y = a*x + y, rounded once. Any grid that covers n, any block. */
extern "C" __global__ void vec_axpy(float *y, const float *x, float a, int n)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        y[i] = __fmaf_rn(a, x[i], y[i]);
}

/* out[row] = x[row] / sqrt(mean of squares + eps) * weight. A block a row, a power of two of threads; shared: one float each. */
extern "C" __global__ void vec_rms_norm(float *out, const float *x, const float *weight, int columns, float eps)
{
    extern __shared__ float sums[];
    const int thread = (int)threadIdx.x;
    const float *row = x + (long long)blockIdx.x * columns;
    float sum = 0.0f;
    for (int i = thread; i < columns; i += (int)blockDim.x)
        sum = __fmaf_rn(row[i], row[i], sum);
    sums[thread] = sum;
    __syncthreads();
    for (int stride = (int)blockDim.x / 2; stride > 0; stride /= 2) {
        if (thread < stride)
            sums[thread] = __fadd_rn(sums[thread], sums[thread + stride]);
        __syncthreads();
    }
    const float inverse = __frcp_rn(__fsqrt_rn(__fadd_rn(__fdiv_rn(sums[0], (float)columns), eps)));
    for (int i = thread; i < columns; i += (int)blockDim.x)
        out[(long long)blockIdx.x * columns + i] = __fmul_rn(__fmul_rn(row[i], inverse), weight[i]);
}

/* Softmax of a row, in place, by one warp: the largest is taken off first. Grid: the rows; block: 32. */
extern "C" __global__ void vec_softmax(float *x, int columns)
{
    __shared__ float lanes[32];
    const int lane = (int)threadIdx.x;
    float *row = x + (long long)blockIdx.x * columns;
    float most = row[0];
    for (int i = lane; i < columns; i += 32)
        most = fmaxf(most, row[i]);
    lanes[lane] = most;
    __syncthreads();
    for (int i = 0; i < 32; ++i)
        most = fmaxf(most, lanes[i]);
    __syncthreads();
    float sum = 0.0f;
    for (int i = lane; i < columns; i += 32) {
        row[i] = expf(__fsub_rn(row[i], most));
        sum = __fadd_rn(sum, row[i]);
    }
    lanes[lane] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < 32; ++i)
        sum = __fadd_rn(sum, lanes[i]);
    for (int i = lane; i < columns; i += 32)
        row[i] = __fdiv_rn(row[i], sum);
}
