/*
 * A host program in miniature: host MODE [DRIVER_LIBRARY]. It prints "status N cuda N" and the error text, and exits 0
 * when the mode went as its name says; what the statuses and texts should be is for test_loader.py to judge.
 */

#include "fc_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fc_error error;

static void show(fc_status status)
{
    printf("status %d cuda %d\n%s\n", (int)status, error.cuda, error.text);
    if (status != error.status)
        printf("STATUS DIFFERS: returned %d, recorded %d\n", (int)status, (int)error.status);
}

/* One launch of each kernel; argument i of kernel k is told apart by value, whatever its type. */
static fc_status launch_all(const fc_cuda *cuda)
{
    const int counts[FC_KERNEL_COUNT] = {
#define COUNT(constant, symbol, arguments) arguments,
        FC_KERNELS(COUNT)
#undef COUNT
    };
    for (int k = 0; k < FC_KERNEL_COUNT; k++) {
        uint64_t values[16];
        void *arguments[16];
        for (int i = 0; i < counts[k]; i++) {
            values[i] = (uint64_t)(100 * k + i);
            arguments[i] = &values[i];
        }
        const fc_status status = fc_cuda_launch(cuda, (fc_kernel)k, (fc_dim3){(unsigned int)k + 1, 2, 3},
                                                (fc_dim3){128, 1, 1}, 512, NULL, arguments, counts[k], &error);
        if (status != FC_OK)
            return status;
    }
    return fc_cuda_synchronize(cuda, &error);
}

/* The fast kernels, in the same way. */
static fc_status launch_fast(const fc_cuda *cuda)
{
    const struct {
        fc_kernel kernel;
        int arguments;
    } fast[] = {
#define ROW(constant, symbol, arguments) {constant, arguments},
        FC_FAST_KERNELS(ROW)
#undef ROW
    };
    for (unsigned int k = 0; k < sizeof fast / sizeof fast[0]; k++) {
        uint64_t values[32];
        void *arguments[32];
        fc_kernel_info info;
        for (int i = 0; i < fast[k].arguments; i++) {
            values[i] = 100 * k + (unsigned int)i;
            arguments[i] = &values[i];
        }
        fc_status status = fc_cuda_kernel_info(cuda, fast[k].kernel, &info, &error);
        if (status == FC_OK)
            status = fc_cuda_launch(cuda, fast[k].kernel, (fc_dim3){k + 1, 2, 3}, (fc_dim3){128, 1, 1}, 512, NULL,
                                    arguments, fast[k].arguments, &error);
        if (status != FC_OK)
            return status;
        printf("%s %d\n", fc_kernel_name(fast[k].kernel),
               fc_cuda_function(cuda, fc_kernel_name(fast[k].kernel)) != NULL);
    }
    return fc_cuda_synchronize(cuda, &error);
}

static int memory(const fc_cuda *cuda)
{
    uint64_t address = 1;
    const char sent[4] = "abc";
    char back[4] = "";
    char zeros[4] = "xyz";
    if (fc_cuda_alloc(cuda, &address, 0, &error) != FC_OK || address != 0)
        return 1;
    if (fc_cuda_alloc(cuda, &address, sizeof sent, &error) != FC_OK)
        return 1;
    if (fc_cuda_upload(cuda, address, sent, sizeof sent, &error) != FC_OK ||
        fc_cuda_download(cuda, back, address, sizeof back, &error) != FC_OK || memcmp(sent, back, sizeof sent) != 0)
        return 1;
    if (fc_cuda_zero(cuda, address, sizeof sent, &error) != FC_OK ||
        fc_cuda_download(cuda, zeros, address, sizeof zeros, &error) != FC_OK || memcmp(zeros, "\0\0\0", 4) != 0)
        return 1;
    return fc_cuda_free(cuda, address, &error) != FC_OK || fc_cuda_free(cuda, 0, &error) != FC_OK;
}

/* Every way to misuse an open handle; each must be refused with a text, and reach the driver with nothing. */
static int misuse(fc_cuda *cuda)
{
    int n = 1;
    uint64_t x = 16;
    void *arguments[] = {&x, &n};
    const fc_dim3 one = {1, 1, 1};
    fc_kernel_info info;
    const struct {
        const char *what;
        fc_status status;
    } tries[] = {
        {"too few arguments", fc_cuda_launch(cuda, FC_SIGMOID, one, one, 0, NULL, arguments, 1, &error)},
        {"NULL arguments", fc_cuda_launch(cuda, FC_SIGMOID, one, one, 0, NULL, NULL, 2, NULL)},
        {"kernel past the end", fc_cuda_launch(cuda, FC_KERNEL_COUNT, one, one, 0, NULL, arguments, 2, NULL)},
        {"negative kernel", fc_cuda_launch(cuda, (fc_kernel)-1, one, one, 0, NULL, arguments, 2, NULL)},
        {"empty block", fc_cuda_launch(cuda, FC_SIGMOID, one, (fc_dim3){0, 1, 1}, 0, NULL, arguments, 2, NULL)},
        {"shared memory", fc_cuda_launch(cuda, FC_SIGMOID, one, one, 49153, NULL, arguments, 2, NULL)},
        {"4 GiB of it", fc_cuda_launch(cuda, FC_SIGMOID, one, one, (size_t)1 << 32, NULL, arguments, 2, NULL)},
        {"NULL handle", fc_cuda_launch(NULL, FC_SIGMOID, one, one, 0, NULL, arguments, 2, NULL)},
        {"NULL handle, info", fc_cuda_kernel_info(NULL, FC_SIGMOID, &info, NULL)},
        {"NULL info", fc_cuda_kernel_info(cuda, FC_SIGMOID, NULL, NULL)},
        {"NULL handle, wait", fc_cuda_synchronize(NULL, NULL)},
        {"NULL address", fc_cuda_alloc(cuda, NULL, 1, NULL)},
        {"NULL handle, alloc", fc_cuda_alloc(NULL, &x, 1, NULL)},
        {"NULL handle, free", fc_cuda_free(NULL, 1, NULL)},
        {"upload to 0", fc_cuda_upload(cuda, 0, &n, 1, NULL)},
        {"upload from NULL", fc_cuda_upload(cuda, 16, NULL, 1, NULL)},
        {"download to NULL", fc_cuda_download(cuda, NULL, 16, 1, NULL)},
        {"zero at 0", fc_cuda_zero(cuda, 0, 1, NULL)},
    };
    int accepted = 0;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        if (tries[i].status != FC_ERROR_ARGUMENT) {
            printf("%s: status %d\n", tries[i].what, (int)tries[i].status);
            accepted = 1;
        }
    }
    return accepted || fc_cuda_function(cuda, "fc_nothing") != NULL || fc_cuda_function(cuda, NULL) != NULL ||
           fc_cuda_function(NULL, "fc_sigmoid") != NULL || fc_cuda_device(NULL) != NULL ||
           fc_cuda_kernels_loaded(NULL) != 0 || fc_kernel_name(FC_KERNEL_COUNT) != NULL;
}

static int use(const char *mode, fc_cuda *cuda)
{
    if (strcmp(mode, "all") == 0) {
        show(launch_all(cuda));
        return error.status != FC_OK;
    }
    if (strcmp(mode, "fast") == 0 || strcmp(mode, "fast-without") == 0) {
        show(launch_fast(cuda));
        return error.status != FC_OK;
    }
    if (strcmp(mode, "memory") == 0 || strcmp(mode, "memory-fails") == 0) {
        const int failed = memory(cuda);
        show(error.status);
        return failed != (strcmp(mode, "memory-fails") == 0);
    }
    if (strcmp(mode, "misuse") == 0)
        return misuse(cuda);
    if (strcmp(mode, "launch-one") == 0 || strcmp(mode, "no-positions") == 0) {
        int n = 0;
        uint64_t x = 0;
        void *arguments[] = {&x, &n};
        const unsigned int blocks = strcmp(mode, "launch-one") == 0;
        show(fc_cuda_launch(cuda, FC_SIGMOID, (fc_dim3){blocks, 1, 1}, (fc_dim3){256, 1, 1}, 0, NULL, arguments, 2,
                            &error));
        return 0;
    }
    if (strcmp(mode, "partial") == 0) {
        void *arguments[10] = {NULL};
        const fc_dim3 one = {1, 1, 1};
        printf("loaded %d\n", fc_cuda_kernels_loaded(cuda));
        show(fc_cuda_launch(cuda, FC_SSM_DECAY_GATE_NX, one, one, 0, NULL, arguments, 6, &error));
        show(fc_cuda_launch(cuda, FC_SSM_QKNORM_GQA_NX, one, one, 0, NULL, arguments, 10, &error));
        return 0;
    }
    if (strcmp(mode, "info") == 0) {
        const fc_device_info *device = fc_cuda_device(cuda);
        fc_kernel_info info = {0};
        show(fc_cuda_kernel_info(cuda, FC_SIGMOID, &info, &error));
        printf("%s ordinal %d cc %d.%d sm %d shared %d driver %d\n", device->name, device->ordinal,
               device->compute_major, device->compute_minor, device->multiprocessors, device->shared_bytes_per_block,
               device->driver_version);
        printf("registers %d local %d static shared %d threads %d\n", info.registers, info.local_bytes,
               info.static_shared_bytes, info.max_threads);
        return 0;
    }
    if (strcmp(mode, "names") == 0) {
        for (int k = 0; k < FC_KERNEL_COUNT; k++) {
            const char *name = fc_kernel_name((fc_kernel)k);
            printf("%s %d\n", name, fc_cuda_function(cuda, name) != NULL);
        }
        return 0;
    }
    fprintf(stderr, "unknown mode %s\n", mode);
    return 3;
}

int main(int count, char **words)
{
    const char *mode = count > 1 ? words[1] : "";
    fc_cuda_options options = {.driver_library = count > 2 ? words[2] : NULL};
    const char *device = getenv("HOST_DEVICE");
    options.device = device != NULL ? atoi(device) : 0;
    options.keep_partial = strcmp(mode, "partial") == 0;
    options.fast = strcmp(mode, "fast") == 0 || getenv("HOST_FAST") != NULL;
    if (strcmp(mode, "null") == 0) {
        fc_cuda_close(NULL);
        show(fc_cuda_open(NULL, &options, &error));
        return fc_cuda_open(NULL, NULL, NULL) != FC_ERROR_ARGUMENT;
    }
    fc_cuda *cuda = (fc_cuda *)&options; /* anything but NULL: a failed open must overwrite it */
    const fc_status status = fc_cuda_open(&cuda, &options, &error);
    show(status);
    if (cuda == NULL)
        return strcmp(mode, "fails") != 0 || status == FC_OK;
    const int result = strcmp(mode, "fails") == 0 ? 1 : use(mode, cuda);
    fc_cuda_close(cuda);
    return result;
}
