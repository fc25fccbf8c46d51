/*
 * The fast kernels (docs/kernels.md, 16 to 18): a second module, so that the indices of the first stay as they are.
 * Private to fc_cuda.c, which includes it where its own loading is defined.
 */

#ifndef FC_CUDA_FAST_H
#define FC_CUDA_FAST_H

/* `ssmtool registry` checks these, and the count in the call of fc_load_fast_functions. */
static const char *const fast_names[] = {
    "fc_ssm_recurrence_slots_warp",
    "fc_ssm_recurrence_seq_warp_multi",
    "fc_ssm_decode_step",
};

static_assert(sizeof fast_names / sizeof fast_names[0] == sizeof fast_kernels / sizeof fast_kernels[0],
              "fast_names and FC_FAST_KERNELS have different lengths");

static int is_fast(fc_kernel kernel)
{
    return (int)kernel >= FC_FAST_FIRST && (int)kernel - FC_FAST_FIRST < FC_FAST_COUNT;
}

/* As fc_load_functions, for the second module. The context is current. */
static fc_status fc_load_fast_functions(fc_cuda *cuda, const char *const *names, int count, const char *ptx,
                                        fc_error *error)
{
    int loaded = 0;
    if (count != FC_FAST_COUNT) {
        fail(error, FC_ERROR_REGISTRY, "the loader's count is wrong");
        append(error, ": fc_load_fast_functions is told %d names, FC_FAST_KERNELS holds %d", count, FC_FAST_COUNT);
        append(error, "\n  run: ssmtool registry --fix");
        return FC_ERROR_REGISTRY;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], fast_kernels[i].symbol) != 0) {
            fail(error, FC_ERROR_REGISTRY, "the loader's lists disagree");
            append(error, ": fast_names[%d] is \"%s\", FC_FAST_KERNELS in fc_cuda.h has \"%s\" there", i, names[i],
                   fast_kernels[i].symbol);
            return FC_ERROR_REGISTRY;
        }
    }
    return look_up(cuda, cuda->fast_module, cuda->fast_functions, &loaded, names, count, ptx, error);
}

/* Loads the module of the fast kernels. The context is current. */
static fc_status load_fast_kernels(fc_cuda *cuda, fc_error *error)
{
    const char *ptx = FC_PTX_SSM_GATED_DELTA_FAST;
    const fc_status status = load_module(cuda, &cuda->fast_module, ptx, error);
    return status == FC_OK ? fc_load_fast_functions(cuda, fast_names, 3, ptx, error) : status;
}

#endif
