/*
 * A CUDA driver library without a GPU, for the bindings: device memory is host memory, contexts and modules are
 * counted, and a launch is handed to the function that fake_on_launch was given (the tests run it on the executor).
 *
 * Told by environment variables, read at every call:
 *   FAKE_CUDA_DEVICES     number of devices, 2 when unset (one K80 is two)
 *   FAKE_CUDA_VERSION     what cuDriverGetVersion says, 11040 when unset
 *   FAKE_CUDA_CAPABILITY  37 when unset
 *   FAKE_CUDA_FAIL        "cuInit=100" or "cuCtxSynchronize=700@1": that call returns that code (on that device only)
 *   FAKE_CUDA_LOG         text for the JIT's error log
 *   FAKE_CUDA_HANG        index of a device whose cuCtxSynchronize does not return for a long time
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096, DEVICES = 16 };

typedef int (*on_launch)(const char *text, const char *name, const unsigned *sizes, void **arguments);

struct module {
    char *text;
};

struct function {
    struct module *module;
    char name[256];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char *address;
    size_t size;
} allocations[MOST];
static int contexts[DEVICES], modules, initialised;
static on_launch launcher;
static __thread int current = -1; /* the device whose context this thread uses */

void fake_on_launch(on_launch function);
void fake_on_launch(on_launch function)
{
    launcher = function;
}

/* Bytes from an address to the end of its allocation; 0 for an address of none. */
uint64_t fake_room(uint64_t address);
uint64_t fake_room(uint64_t address)
{
    uint64_t room = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++) {
        const uint64_t start = (uint64_t)(uintptr_t)allocations[i].address;
        if (start != 0 && address >= start && address < start + allocations[i].size)
            room = start + allocations[i].size - address;
    }
    pthread_mutex_unlock(&lock);
    return room;
}

/* What has not been given back: contexts, modules, allocations. */
void fake_left(int *left);
void fake_left(int *left)
{
    left[0] = left[2] = 0;
    left[1] = modules;
    for (int i = 0; i < DEVICES; i++)
        left[0] += contexts[i];
    for (int i = 0; i < MOST; i++)
        left[2] += allocations[i].address != NULL;
}

static int number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : otherwise;
}

static int told(const char *name)
{
    const char *fail = getenv("FAKE_CUDA_FAIL");
    const size_t length = strlen(name);
    if (fail == NULL || strncmp(fail, name, length) != 0 || fail[length] != '=')
        return 0;
    const char *only = strchr(fail, '@');
    return only == NULL || atoi(only + 1) == current ? atoi(fail + length + 1) : 0;
}

#define CALLED(name) \
    do { \
        const int code = told(name); \
        if (code != 0) \
            return code; \
    } while (0)

#define NEEDS_CONTEXT(name) \
    do { \
        if (current < 0 || contexts[current] == 0) \
            return 201; \
        CALLED(name); \
    } while (0)

int cuInit(unsigned flags)
{
    (void)flags;
    CALLED("cuInit");
    initialised = 1;
    return 0;
}

int cuDriverGetVersion(int *version)
{
    CALLED("cuDriverGetVersion");
    *version = number("FAKE_CUDA_VERSION", 11040);
    return 0;
}

int cuGetErrorName(int code, const char **text)
{
    (void)code;
    *text = "CUDA_ERROR";
    return 0;
}

int cuGetErrorString(int code, const char **text)
{
    (void)code;
    *text = "error";
    return 0;
}

int cuDeviceGetCount(int *count)
{
    CALLED("cuDeviceGetCount");
    *count = number("FAKE_CUDA_DEVICES", 2);
    return initialised ? 0 : 3;
}

int cuDeviceGet(int *device, int ordinal)
{
    CALLED("cuDeviceGet");
    if (ordinal < 0 || ordinal >= number("FAKE_CUDA_DEVICES", 2))
        return 101;
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
    (void)device;
    CALLED("cuDeviceGetName");
    snprintf(name, (size_t)size, "Fake K80");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    CALLED("cuDeviceGetAttribute");
    const int capability = number("FAKE_CUDA_CAPABILITY", 37);
    switch (attribute) {
    case 16:
        *value = 13;
        return 0;
    case 75:
        *value = capability / 10;
        return 0;
    case 76:
        *value = capability % 10;
        return 0;
    case 84:
        *value = 1;
        return 0;
    case 85:
        *value = device / 2; /* two dies a board */
        return 0;
    default:
        return 1;
    }
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    CALLED("cuDeviceTotalMem");
    *bytes = 11996954624u;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    CALLED("cuDevicePrimaryCtxRetain");
    contexts[device]++;
    *context = (void *)(uintptr_t)(device + 1);
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    CALLED("cuDevicePrimaryCtxRelease");
    contexts[device]--;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    CALLED("cuCtxSetCurrent");
    current = (int)(uintptr_t)context - 1;
    return 0;
}

int cuCtxSynchronize(void)
{
    NEEDS_CONTEXT("cuCtxSynchronize");
    if (number("FAKE_CUDA_HANG", -1) == current)
        sleep(600);
    return 0;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values)
{
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == 5 && getenv("FAKE_CUDA_LOG") != NULL)
            strcpy(values[i], getenv("FAKE_CUDA_LOG"));
    }
    NEEDS_CONTEXT("cuModuleLoadDataEx");
    struct module *loaded = calloc(1, sizeof *loaded);
    loaded->text = strdup(image);
    modules++;
    *module = loaded;
    return 0;
}

int cuModuleUnload(void *module)
{
    NEEDS_CONTEXT("cuModuleUnload");
    modules--;
    free(((struct module *)module)->text);
    free(module);
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    NEEDS_CONTEXT("cuModuleGetFunction");
    struct function *found = calloc(1, sizeof *found); /* lives as long as the process: a test's, so short */
    found->module = module;
    snprintf(found->name, sizeof found->name, "%s", name);
    *function = found;
    return 0;
}

int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    (void)function;
    NEEDS_CONTEXT("cuFuncGetAttribute");
    *value = attribute == 1 ? number("FAKE_CUDA_SHARED", 0) : 0;
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    NEEDS_CONTEXT("cuMemAlloc");
    char *memory = NULL;
    if (size == 0 || posix_memalign((void **)&memory, 256, size) != 0)
        return size == 0 ? 1 : 2;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++) {
        if (allocations[i].address == NULL) {
            allocations[i].address = memory;
            allocations[i].size = size;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    *address = (uint64_t)(uintptr_t)memory;
    return 0;
}

int cuMemFree_v2(uint64_t address)
{
    NEEDS_CONTEXT("cuMemFree");
    int known = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && !known; i++) {
        if (allocations[i].address == (char *)(uintptr_t)address) {
            allocations[i].address = NULL;
            known = 1;
        }
    }
    pthread_mutex_unlock(&lock);
    if (known)
        free((void *)(uintptr_t)address);
    return known ? 0 : 1;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    NEEDS_CONTEXT("cuMemcpyHtoD");
    if (fake_room(to) < size)
        return 1;
    memcpy((void *)(uintptr_t)to, from, size);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
    NEEDS_CONTEXT("cuMemcpyDtoH");
    if (fake_room(from) < size)
        return 1;
    memcpy(to, (const void *)(uintptr_t)from, size);
    return 0;
}

int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size)
{
    NEEDS_CONTEXT("cuMemcpyDtoD");
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra)
{
    NEEDS_CONTEXT("cuLaunchKernel");
    if (stream != NULL || extra != NULL || launcher == NULL)
        return 1;
    const struct function *f = function;
    const unsigned sizes[] = {gx, gy, gz, bx, by, bz, shared};
    return launcher(f->module->text, f->name, sizes, arguments);
}

int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    NEEDS_CONTEXT("cuEventCreate");
    *event = (void *)1;
    return 0;
}

int cuEventRecord(void *event, void *stream)
{
    (void)event;
    (void)stream;
    NEEDS_CONTEXT("cuEventRecord");
    return 0;
}

int cuEventElapsedTime(float *milliseconds, void *first, void *last)
{
    (void)first;
    (void)last;
    NEEDS_CONTEXT("cuEventElapsedTime");
    *milliseconds = 0.5f;
    return 0;
}

int cuEventElapsedTime_v2(float *milliseconds, void *first, void *last)
{
    return cuEventElapsedTime(milliseconds, first, last);
}

/* cuda-bindings asks this for every function, by its plain name and the CUDA version whose form it wants. */
int cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags, int *status)
{
    (void)flags;
    char name[128];
    /* The second form of this very function came with CUDA 12; the others' so long ago that all want them. */
    const int first = strcmp(symbol, "cuGetProcAddress") == 0 && version < 12000;
    snprintf(name, sizeof name, "%s%s", symbol, first ? "" : "_v2");
    void *own = dlopen(getenv("FAKE_CUDA_SELF"), RTLD_LAZY | RTLD_NOLOAD);
    *address = own == NULL ? NULL : dlsym(own, name);
    if (own != NULL && *address == NULL)
        *address = dlsym(own, symbol);
    if (status != NULL)
        *status = *address == NULL ? 1 : 0;
    return 0;
}

int cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, address, version, flags, NULL);
}
