/* Stand-in for NVRTC, which has the device side of this header built in. The host API (cudaMalloc, <<<...>>>) does not
   exist there: guard host code with #ifndef __CUDACC_RTC__. */
#ifndef SSMTOOL_CUDA_RUNTIME_H
#define SSMTOOL_CUDA_RUNTIME_H
#include <limits.h>
#include <math.h>
#include <stddef.h>
#endif
