/*
 * The CUDA driver as the loader sees it: the entry points, the texts of failures, opening the library.
 * Private to fc_cuda.c, and included by nothing else: the loader stays one translation unit, easy to drop into a host.
 */

#ifndef FC_CUDA_DRIVER_H
#define FC_CUDA_DRIVER_H

#include "fc_cuda.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#define FC_DEFAULT_DRIVER "nvcuda.dll"
#define FC_CUDAAPI __stdcall
#else
#include <dlfcn.h>
/* Not plain libcuda.so: that name belongs to the toolkit's link stub, which opens and then refuses every call. */
#define FC_DEFAULT_DRIVER "libcuda.so.1"
#define FC_CUDAAPI
#endif

#ifdef __GNUC__
#define FC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define FC_PRINTF(text, first)
#endif

/* ---------------------------------------------------------------------------------------------------- entry points */

/* The few values of cuda.h that are used below; they are part of the driver's binary interface and never change. */
enum {
    CUDA_OK = 0,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_IMAGE = 200,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_INVALID_PTX = 218,
    CUDA_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_NOT_FOUND = 500,
    JIT_ERROR_LOG_BUFFER = 5,
    JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    DEVICE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    DEVICE_MULTIPROCESSOR_COUNT = 16,
    DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
    DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
    FUNCTION_MAX_THREADS_PER_BLOCK = 0,
    FUNCTION_SHARED_SIZE_BYTES = 1,
    FUNCTION_LOCAL_SIZE_BYTES = 3,
    FUNCTION_NUM_REGS = 4
};

/*
 * X(member, exported symbol, parameters). cuda.h hides the _v2 behind macros; the unsuffixed exports are the interfaces
 * of CUDA 3, with 32-bit addresses. Handles (CUcontext, CUmodule, ...) are pointers, CUdevice and CUresult ints.
 */
#define FC_ENTRY_POINTS(X) \
    X(init, cuInit, (unsigned int flags)) \
    X(driver_version, cuDriverGetVersion, (int *version)) \
    X(error_name, cuGetErrorName, (int code, const char **text)) \
    X(error_string, cuGetErrorString, (int code, const char **text)) \
    X(device_count, cuDeviceGetCount, (int *count)) \
    X(device_get, cuDeviceGet, (int *device, int ordinal)) \
    X(device_name, cuDeviceGetName, (char *name, int size, int device)) \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device)) \
    X(context_retain, cuDevicePrimaryCtxRetain, (void **context, int device)) \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (int device)) \
    X(context_push, cuCtxPushCurrent_v2, (void *context)) \
    X(context_pop, cuCtxPopCurrent_v2, (void **context)) \
    X(synchronize, cuCtxSynchronize, (void)) \
    X(module_load, cuModuleLoadDataEx, \
      (void **module, const void *image, unsigned int count, int *options, void **values)) \
    X(module_unload, cuModuleUnload, (void *module)) \
    X(module_function, cuModuleGetFunction, (void **function, void *module, const char *name)) \
    X(function_attribute, cuFuncGetAttribute, (int *value, int attribute, void *function)) \
    X(launch, cuLaunchKernel, \
      (void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *stream, void **arguments, \
       void **extra)) \
    X(alloc, cuMemAlloc_v2, (uint64_t * address, size_t bytes)) \
    X(release, cuMemFree_v2, (uint64_t address)) \
    X(upload, cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes)) \
    X(download, cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes)) \
    X(fill, cuMemsetD8_v2, (uint64_t address, unsigned char value, size_t bytes))

typedef struct driver {
#define FC_ENTRY_MEMBER(member, symbol, parameters) int(FC_CUDAAPI *member) parameters;
    FC_ENTRY_POINTS(FC_ENTRY_MEMBER)
#undef FC_ENTRY_MEMBER
} driver;

static const struct {
    const char *symbol;
    size_t offset;
} entry_points[] = {
#define FC_ENTRY_ROW(member, symbol, parameters) {#symbol, offsetof(driver, member)},
    FC_ENTRY_POINTS(FC_ENTRY_ROW)
#undef FC_ENTRY_ROW
};

static_assert(sizeof(void *) == sizeof(int(FC_CUDAAPI *)(void)), "symbols are copied into function pointers");

/* ----------------------------------------------------------------------------------------------------- error texts */

FC_PRINTF(2, 3) static void append(fc_error *error, const char *format, ...)
{
    if (error == NULL)
        return;
    const size_t used = strlen(error->text);
    va_list values;
    va_start(values, format);
    const int wanted = vsnprintf(error->text + used, sizeof error->text - used, format, values);
    va_end(values);
    if (wanted >= 0 && (size_t)wanted >= sizeof error->text - used) /* a cut text must not read as a whole one */
        memcpy(error->text + sizeof error->text - sizeof "...", "...", sizeof "...");
}

static void clear(fc_error *error)
{
    if (error != NULL) {
        error->status = FC_OK;
        error->cuda = CUDA_OK;
        error->text[0] = '\0';
    }
}

/* Starts the text of a failure; append and append_cuda go on from there. Returns `status`. */
static fc_status fail(fc_error *error, fc_status status, const char *text)
{
    clear(error);
    if (error != NULL)
        error->status = status;
    append(error, "%s", text);
    return status;
}

static fc_status bad_argument(fc_error *error, const char *text)
{
    return fail(error, FC_ERROR_ARGUMENT, text);
}

/* What users can do about codes whose own description does not tell them. */
static const struct {
    int code;
    const char *hint;
} hints[] = {
    {34, "this is the toolkit's link stub, not a driver: remove its folder (.../stubs) from the library path"},
    {46, "another process holds the device in exclusive mode, or its compute mode is 'prohibited' (nvidia-smi -q)"},
    {CUDA_INVALID_IMAGE, "the text is not PTX: the generated header is damaged; see: ssmtool build --check"},
    {221, "libnvidia-ptxjitcompiler.so.1 is missing beside the driver library; containers often lack it"},
    {223, "CUDA_DISABLE_PTX_JIT is set in the environment: unset it, the kernels are PTX"},
    {700, "a kernel touched memory it does not own; nothing works in this process any more, restart it"},
    {701, "too many threads for the registers of this kernel; fc_cuda_kernel_info tells its max_threads"},
    {716, "a kernel was given a pointer that is not aligned; nothing works in this process any more, restart it"},
    {719, "a kernel died; nothing works in this process any more, restart it"},
    {802, "the driver is not ready yet: is nvidia-persistenced or the fabric manager still starting?"},
    {803, "the kernel module and the driver library are of different releases: reboot, or reinstall the driver"},
    {804, "this device does not take the forward-compatibility driver library; remove it from the library path"},
    {999, "in a container, check that /dev/nvidia* are passed through; otherwise see dmesg"},
};

/* Appends what the driver says about `code`, and records the code. */
static void append_cuda(const driver *d, fc_error *error, int code)
{
    if (error == NULL)
        return;
    const char *name = NULL;
    const char *description = NULL;
    if (d->error_name(code, &name) != CUDA_OK || name == NULL)
        name = "a code this driver has no name for";
    if (d->error_string(code, &description) != CUDA_OK || description == NULL)
        description = "no description";
    error->cuda = code;
    append(error, ": CUDA error %d, %s (%s)", code, name, description);
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (hints[i].code == code)
            append(error, "\n  %s", hints[i].hint);
    }
}

/* The whole failure when there is no more to say than what was tried and the driver's answer; FC_OK for CUDA_OK. */
static fc_status check(const driver *d, fc_error *error, int code, const char *tried)
{
    if (code == CUDA_OK)
        return FC_OK;
    const fc_status status = fail(error, code == CUDA_OUT_OF_MEMORY ? FC_ERROR_OUT_OF_MEMORY : FC_ERROR_CUDA, tried);
    append_cuda(d, error, code);
    return status;
}

/* ---------------------------------------------------------------------------------------------- opening the library */

static void *library_symbol(void *library, const char *symbol)
{
#ifdef _WIN32
    void *address;
    FARPROC procedure = GetProcAddress((HMODULE)library, symbol);
    memcpy(&address, &procedure, sizeof address);
    return address;
#else
    return dlsym(library, symbol);
#endif
}

/*
 * Opens the driver library and fills `d`. On success the library stays open for good: once started, the driver has
 * threads and exit handlers of its own in the process, so its code must never be unmapped.
 */
static fc_status driver_open(driver *d, const char *path, fc_error *error)
{
    const char *origin = "";
    if (path == NULL) {
        path = getenv("FC_CUDA_DRIVER");
        origin = " (from $FC_CUDA_DRIVER)";
    }
    if (path == NULL || path[0] == '\0') {
        path = FC_DEFAULT_DRIVER;
        origin = "";
    }
#ifdef _WIN32
    void *library = (void *)LoadLibraryA(path);
#else
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
#endif
    if (library == NULL) {
        fail(error, FC_ERROR_DRIVER_MISSING, "cannot open the CUDA driver library ");
#ifdef _WIN32
        append(error, "%s%s: Windows error %lu", path, origin, (unsigned long)GetLastError());
#else
        const char *reason = dlerror();
        append(error, "%s%s: %s", path, origin, reason != NULL ? reason : "no reason given");
#endif
        append(error, "\n  it comes with the NVIDIA driver (R470 is the last for a Tesla K80), not with the CUDA "
                      "toolkit; a container gets it from its host (docker run --gpus all)");
        return FC_ERROR_DRIVER_MISSING;
    }
    for (size_t i = 0; i < sizeof entry_points / sizeof entry_points[0]; i++) {
        void *address = library_symbol(library, entry_points[i].symbol);
        if (address == NULL) {
            fail(error, FC_ERROR_DRIVER_SYMBOL, "the driver library ");
            append(error, "%s%s has no %s\n  it is older than R450, or no CUDA driver at all; the kernels' PTX needs "
                          "R470 or newer",
                   path, origin, entry_points[i].symbol);
#ifdef _WIN32
            FreeLibrary((HMODULE)library);
#else
            dlclose(library);
#endif
            return FC_ERROR_DRIVER_SYMBOL;
        }
        /* ISO C has no cast from an object to a function pointer; dlsym and GetProcAddress rely on equal bytes. */
        memcpy((char *)d + entry_points[i].offset, &address, sizeof address);
    }
    return FC_OK;
}

#endif
