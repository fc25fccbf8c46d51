/* Takes the kernels of the generated header into a table, by name and in order. Links with -lcuda. */

#include <cuda.h>
#include <stdio.h>

#include "../generated/vector_ptx.h"

static const char *const vector_names[] = {
    "vec_axpy",
    "vec_rms_norm",
    "vec_softmax",
};

/* As many as there are names, so that a build that adds one leaves no array too short. */
static CUfunction vector_functions[sizeof vector_names / sizeof vector_names[0]];

static int take(CUmodule module, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (cuModuleGetFunction(&vector_functions[i], module, names[i]) != CUDA_SUCCESS) {
            fprintf(stderr, "no kernel %s in the module\n", names[i]);
            return -1;
        }
    }
    return 0;
}

/* 0, or -1 where the module or a kernel of it cannot be had. The context is current. */
int vector_load(void)
{
    CUmodule module;
    if (cuModuleLoadData(&module, VECTOR_PTX) != CUDA_SUCCESS)
        return -1;
    return take(module, vector_names, 3);
}
