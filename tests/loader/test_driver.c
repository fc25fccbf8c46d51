/*
 * A CUDA driver library without a GPU: the entry points that kernels/fc_cuda.c resolves, on host memory, as strict
 * about order as the real one. A module has the kernels that its PTX text declares and no others, so a missing kernel
 * is really missing. Launches compute nothing; they read their arguments as the PTX declares them.
 *
 * Told by environment variables:
 *   FC_TEST_FAIL     "cuInit=100": that entry point returns that code
 *   FC_TEST_DEVICES  number of devices, 1 when unset
 *   FC_TEST_VERSION  what cuDriverGetVersion says, 11040 when unset
 *   FC_TEST_JIT_LOG  text for the JIT's error log
 *   FC_TEST_CALLS    file that receives one line per call, and at exit the line "left: ..." with what was not released
 *
 * Compiled with -DWITHOUT_LAUNCH it lacks cuLaunchKernel.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KERNELS = 32, MAX_ARGUMENTS = 32, MAX_STACK = 16 };

struct function {
    char name[128];
    char types[MAX_ARGUMENTS]; /* 'p' for u64, 'i' for u32, 'f' for f32 */
    int arguments;
};

struct module {
    struct function functions[MAX_KERNELS];
    int count;
};

/* The stack of the one thread these tests run; contexts are told apart by address. */
static char device_contexts[8];
static int initialised;
static void *stack[MAX_STACK];
static int depth;
static int retained;
static int modules;
static int allocations;

static int number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : otherwise;
}

static void record(const char *text)
{
    const char *path = getenv("FC_TEST_CALLS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "%s\n", text);
        fclose(file);
    }
}

/* Records the call; returns the code that FC_TEST_FAIL wants of it, or 0. */
static int called(const char *name)
{
    record(name);
    const char *fail = getenv("FC_TEST_FAIL");
    const size_t length = strlen(name);
    if (fail != NULL && strncmp(fail, name, length) == 0 && fail[length] == '=')
        return atoi(fail + length + 1);
    return 0;
}

#define CALLED(name) \
    do { \
        const int wanted_code = called(name); \
        if (wanted_code != 0) \
            return wanted_code; \
    } while (0)

#define NEEDS_CONTEXT \
    do { \
        if (depth == 0 || retained == 0) \
            return 201; \
    } while (0)

__attribute__((destructor)) static void left(void)
{
    char text[128];
    snprintf(text, sizeof text, "left: contexts %d, modules %d, allocations %d, pushed %d", retained, modules,
             allocations, depth);
    record(text);
}

int cuInit(unsigned int flags);
int cuInit(unsigned int flags)
{
    CALLED("cuInit");
    initialised = flags == 0;
    return initialised ? 0 : 1;
}

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    CALLED("cuDriverGetVersion");
    *version = number("FC_TEST_VERSION", 11040);
    return 0;
}

static const struct {
    int code;
    const char *name, *text;
} codes[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
};

/* As the real one: a code it does not know gives CUDA_ERROR_INVALID_VALUE and a NULL text. */
int cuGetErrorName(int code, const char **text);
int cuGetErrorName(int code, const char **text)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].code == code)
            *text = codes[i].name;
    }
    return *text != NULL ? 0 : 1;
}

int cuGetErrorString(int code, const char **text);
int cuGetErrorString(int code, const char **text)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].code == code)
            *text = codes[i].text;
    }
    return *text != NULL ? 0 : 1;
}

int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    CALLED("cuDeviceGetCount");
    *count = number("FC_TEST_DEVICES", 1);
    return initialised ? 0 : 3;
}

int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
    CALLED("cuDeviceGet");
    if (ordinal < 0 || ordinal >= number("FC_TEST_DEVICES", 1))
        return 101;
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
    CALLED("cuDeviceGetName");
    snprintf(name, (size_t)size, "Test K80 #%d", device);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    CALLED("cuDeviceGetAttribute");
    switch (attribute) {
    case 8:
        *value = 49152;
        return 0;
    case 16:
        *value = 13;
        return 0;
    case 75:
        *value = 3;
        return 0;
    case 76:
        *value = 7;
        return 0;
    default:
        return 1;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    CALLED("cuDevicePrimaryCtxRetain");
    *context = &device_contexts[device];
    retained++;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    CALLED("cuDevicePrimaryCtxRelease_v2");
    if (retained == 0)
        return 201;
    retained--;
    return 0;
}

int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    CALLED("cuCtxPushCurrent_v2");
    if (context == NULL || depth == MAX_STACK)
        return 201;
    stack[depth++] = context;
    return 0;
}

int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
    CALLED("cuCtxPopCurrent_v2");
    if (depth == 0)
        return 201;
    *context = stack[--depth];
    return 0;
}

int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
    NEEDS_CONTEXT;
    CALLED("cuCtxSynchronize");
    return 0;
}

/* Reads `.entry NAME(.param .u64 NAME_param_0, ...)`; enough for the PTX of any CUDA compiler. */
static const char *read_entry(struct function *f, const char *text)
{
    text += strspn(text, " \t\r\n");
    const size_t length = strcspn(text, " \t\r\n(");
    snprintf(f->name, sizeof f->name, "%.*s", (int)length, text);
    const char *end = strchr(text, ')');
    if (end == NULL)
        return NULL;
    for (const char *at = strstr(text, ".param ."); at != NULL && at < end; at = strstr(at + 1, ".param .")) {
        const char *type = at + strlen(".param .");
        if (f->arguments == MAX_ARGUMENTS)
            return NULL;
        f->types[f->arguments++] = strncmp(type, "u64", 3) == 0 ? 'p' : strncmp(type, "f32", 3) == 0 ? 'f' : 'i';
    }
    return end;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned int count, int *options, void **values);
int cuModuleLoadDataEx(void **module, const void *image, unsigned int count, int *options, void **values)
{
    NEEDS_CONTEXT;
    char *log = NULL;
    size_t size = 0;
    for (unsigned int i = 0; i < count; i++) {
        if (options[i] == 5)
            log = values[i];
        if (options[i] == 6)
            size = (size_t)(uintptr_t)values[i];
    }
    const char *text = getenv("FC_TEST_JIT_LOG");
    if (text != NULL && log != NULL && size > 0)
        strncpy(log, text, size); /* as the real one when the log is longer than the buffer: no terminating NUL */
    CALLED("cuModuleLoadDataEx");
    if (strncmp(image, "//", 2) != 0 && strstr(image, ".version") == NULL)
        return 200;
    struct module *loaded = calloc(1, sizeof *loaded);
    if (loaded == NULL)
        return 2;
    const char *at = strstr(image, ".entry ");
    while (at != NULL && loaded->count < MAX_KERNELS) {
        at = read_entry(&loaded->functions[loaded->count++], at + strlen(".entry "));
        if (at == NULL) {
            free(loaded);
            return 218;
        }
        at = strstr(at, ".entry ");
    }
    modules++;
    *module = loaded;
    return 0;
}

int cuModuleUnload(void *module);
int cuModuleUnload(void *module)
{
    NEEDS_CONTEXT;
    free(module);
    modules--;
    CALLED("cuModuleUnload");
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    NEEDS_CONTEXT;
    CALLED("cuModuleGetFunction");
    struct module *m = module;
    for (int i = 0; i < m->count; i++) {
        if (strcmp(m->functions[i].name, name) == 0) {
            *function = &m->functions[i];
            return 0;
        }
    }
    *function = (void *)1; /* garbage, as the real one may leave: a failed lookup must not be used */
    return 500;
}

int cuFuncGetAttribute(int *value, int attribute, void *function);
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    NEEDS_CONTEXT;
    CALLED("cuFuncGetAttribute");
    if (function == NULL || attribute < 0 || attribute > 4)
        return 1;
    const int values[] = {1024, 16, 0, 8, 32}; /* threads, shared, constant, local, registers */
    *value = values[attribute];
    return 0;
}

#ifndef WITHOUT_LAUNCH
int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                   unsigned int bz, unsigned int shared, void *stream, void **arguments, void **extra);
int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                   unsigned int bz, unsigned int shared, void *stream, void **arguments, void **extra)
{
    NEEDS_CONTEXT;
    CALLED("cuLaunchKernel");
    const struct function *f = function;
    if (f == NULL || gx == 0 || gy == 0 || gz == 0 || stream != NULL || extra != NULL)
        return 1;
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "launch %s grid %ux%ux%u block %ux%ux%u shared %u:", f->name, gx,
                                   gy, gz, bx, by, bz, shared);
    for (int i = 0; i < f->arguments; i++) {
        char value[32];
        if (f->types[i] == 'p')
            snprintf(value, sizeof value, " %llu", (unsigned long long)*(const uint64_t *)arguments[i]);
        else if (f->types[i] == 'f')
            snprintf(value, sizeof value, " %g", (double)*(const float *)arguments[i]);
        else
            snprintf(value, sizeof value, " %d", *(const int *)arguments[i]);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", value);
    }
    record(text);
    return 0;
}
#endif

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    NEEDS_CONTEXT;
    CALLED("cuMemAlloc_v2");
    void *memory = bytes > 0 ? malloc(bytes) : NULL;
    if (memory == NULL)
        return bytes > 0 ? 2 : 1;
    allocations++;
    *address = (uint64_t)(uintptr_t)memory;
    return 0;
}

int cuMemFree_v2(uint64_t address);
int cuMemFree_v2(uint64_t address)
{
    NEEDS_CONTEXT;
    CALLED("cuMemFree_v2");
    free((void *)(uintptr_t)address);
    allocations--;
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    NEEDS_CONTEXT;
    CALLED("cuMemcpyHtoD_v2");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    NEEDS_CONTEXT;
    CALLED("cuMemcpyDtoH_v2");
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes);
int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes)
{
    NEEDS_CONTEXT;
    CALLED("cuMemsetD8_v2");
    memset((void *)(uintptr_t)address, value, bytes);
    return 0;
}
