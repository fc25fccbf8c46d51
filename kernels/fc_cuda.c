/*
 * The loader behind fc_cuda.h. In reading order: the kernel names, loading the kernels, opening and closing, launching,
 * memory. fc_cuda_driver.h holds the driver's entry points and the texts of failures, fc_ptx_text.h reads PTX,
 * fc_cuda_fast.h loads the second module.
 */

#include "fc_cuda.h"
#include "fc_cuda_driver.h"
#include "fc_ptx_text.h"

#ifdef __GNUC__
/* One string of PTX is far beyond the 4095 characters that -Wpedantic asks for; every compiler we meet takes it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
#endif

/* A build with its generated header elsewhere names it with -DFC_CUDA_PTX_HEADER='"path"'. */
#ifndef FC_CUDA_PTX_HEADER
#define FC_CUDA_PTX_HEADER "../generated/fc_cuda_ptx.h"
#endif
#include FC_CUDA_PTX_HEADER

#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

/* --------------------------------------------------------------------------------------------------- kernel names */

/* `ssmtool registry` checks these, and the count in the call of fc_load_functions, against the source and the PTX. */
static const char *const ssm_names[] = {
    "fc_ssm_recurrence",
    "fc_ssm_conv1d_silu",
    "fc_ssm_gated_norm",
    "fc_sigmoid",
    "fc_ssm_decay_gate",
    "fc_ssm_qknorm_gqa",
    "fc_ssm_conv1d_silu_seq",
    "fc_ssm_recurrence_seq",
    "fc_ssm_recurrence_seq_unroll128",
    "fc_ssm_recurrence_seq_warp",
    "fc_ssm_conv1d_silu_slots",
    "fc_ssm_recurrence_slots",
    "fc_ssm_recurrence_slots_2pass",
    "fc_ssm_decay_gate_nx",
    "fc_ssm_qknorm_gqa_nx",
};

#define FC_NAME_COUNT ((int)(sizeof ssm_names / sizeof ssm_names[0]))

static const struct {
    const char *symbol;
    int arguments;
} kernels[FC_KERNEL_COUNT] = {
#define FC_KERNEL_ROW(constant, symbol, arguments) {#symbol, arguments},
    FC_KERNELS(FC_KERNEL_ROW)
#undef FC_KERNEL_ROW
};

static const struct {
    const char *symbol;
    int arguments;
} fast_kernels[] = {
#define FC_KERNEL_ROW(constant, symbol, arguments) {#symbol, arguments},
    FC_FAST_KERNELS(FC_KERNEL_ROW)
#undef FC_KERNEL_ROW
};

#define FC_FAST_COUNT ((int)(sizeof fast_kernels / sizeof fast_kernels[0]))

/* The other direction is allowed: a kernel is usable by name before it has its constant in fc_cuda.h. */
static_assert(sizeof ssm_names / sizeof ssm_names[0] >= FC_KERNEL_COUNT,
              "ssm_names is shorter than FC_KERNELS: a name was deleted, or a missing comma joined two");

struct fc_cuda {
    driver driver;
    int device;
    void *context;
    void *module;
    int loaded; /* functions[0 .. loaded-1] are usable */
    void *functions[FC_NAME_COUNT];
    void *fast_module; /* NULL unless fc_cuda_options.fast asked for it */
    void *fast_functions[FC_FAST_COUNT];
    fc_device_info info;
};

/* Runs one driver call with the handle's context current, and gives the thread its own context back. */
#define FC_IN_CONTEXT(code, cuda, call) \
    do { \
        void *popped; \
        (code) = (cuda)->driver.context_push((cuda)->context); \
        if ((code) == CUDA_OK) { \
            (code) = (cuda)->driver.call; \
            (void)(cuda)->driver.context_pop(&popped); \
        } \
    } while (0)

/* ------------------------------------------------------------------------------------------------ loading kernels */

static void append_names(fc_error *error, const char *const *names, int first, int end)
{
    for (int i = first; i < end; i++)
        append(error, "%s%s", i == first ? ": " : ", ", names[i]);
    append(error, "\n");
}

/* Why a name may be missing, read off the PTX: it is the only witness at hand on the user's machine. */
static void append_missing_cause(fc_error *error, const char *ptx, const char *const *names, int count, int missing)
{
    int unclaimed = 0;
    for (span entry = word_after(ptx, ".entry"); entry.length > 0; entry = word_after(entry.start, ".entry")) {
        if (is_mangled(entry, names[missing])) {
            append(error,
                   "  likely cause: the module has %.*s: the kernel lacks extern \"C\"; add it in the source and run: "
                   "ssmtool build",
                   entry.length, entry.start);
            return;
        }
    }
    for (span entry = word_after(ptx, ".entry"); entry.length > 0; entry = word_after(entry.start, ".entry")) {
        int claimed = 0;
        for (int i = 0; i < count && !claimed; i++)
            claimed = span_is(entry, names[i]);
        if (!claimed)
            append(error, "%s%.*s",
                   unclaimed++ ? ", " : "  likely cause: a typo, or a renamed kernel: no name asks for ", entry.length,
                   entry.start);
    }
    if (unclaimed)
        append(error, ", which the module has; compare with: ssmtool registry");
    else
        append(error, "  likely cause: the kernel was added to the source after the header was last generated; run: "
                      "ssmtool build\n"
                      "  (or it was removed or renamed there, and the name stayed; see: ssmtool registry)");
}

/*
 * Looks `count` names up, in order, and stops at the first that the module lacks: a list that is wrong at one place is
 * not to be trusted beyond it. `loaded` counts what was found. The context is current.
 */
static fc_status look_up(const fc_cuda *cuda, void *module, void **functions, int *loaded, const char *const *names,
                         int count, const char *ptx, fc_error *error)
{
    for (int i = 0; i < count; i++) {
        const int code = cuda->driver.module_function(&functions[i], module, names[i]);
        if (code != CUDA_OK) {
            functions[i] = NULL;
            const fc_status status = code == CUDA_NOT_FOUND ? FC_ERROR_KERNEL_MISSING : FC_ERROR_CUDA;
            fail(error, status, "kernel ");
            append(error, "%s, name %d of %d (index %d), %s", names[i], i + 1, count, i,
                   code == CUDA_NOT_FOUND ? "is not in the loaded module" : "cannot be taken from the module");
            append_cuda(&cuda->driver, error, code);
            append(error, "\n  usable: %d before it", i);
            append_names(error, names, 0, i);
            append(error, "  inert: it and %d after it", count - i - 1);
            append_names(error, names, i + 1, count);
            if (code == CUDA_NOT_FOUND)
                append_missing_cause(error, ptx, names, count, i);
            return status;
        }
        *loaded = i + 1;
    }
    return FC_OK;
}

/* `slots` is the true length of `names`. The context is current. */
static fc_status fc_load_functions(fc_cuda *cuda, const char *const *names, int count, int slots, const char *ptx,
                                   fc_error *error)
{
    for (int i = 0; i < FC_KERNEL_COUNT; i++) {
        if (strcmp(names[i], kernels[i].symbol) != 0) {
            fail(error, FC_ERROR_REGISTRY, "the loader's lists disagree");
            append(error,
                   ": ssm_names[%d] in fc_cuda.c is \"%s\", FC_KERNELS in fc_cuda.h has \"%s\" there, so its constant "
                   "would launch another kernel; a new name goes at the end of both",
                   i, names[i], kernels[i].symbol);
            return FC_ERROR_REGISTRY;
        }
    }
    if (count != slots) { /* fewer: the rest would silently be inert; more: a read past the array */
        fail(error, FC_ERROR_REGISTRY, "the loader's count is wrong");
        append(error, ": fc_load_functions is told %d names, ssm_names holds %d\n", count, slots);
        if (count < slots) {
            append(error, "  left out");
            append_names(error, names, count < 0 ? 0 : count, slots);
        }
        append(error, "  run: ssmtool registry --fix");
        return FC_ERROR_REGISTRY;
    }
    return look_up(cuda, cuda->module, cuda->functions, &cuda->loaded, names, count, ptx, error);
}

/* Hands the PTX to the driver. The context is current. */
static fc_status load_module(const fc_cuda *cuda, void **module, const char *ptx, fc_error *error)
{
    char log[2048] = "";
    int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log}; /* the interface passes numbers as pointers */
    const int code = cuda->driver.module_load(module, ptx, 2, options, values);
    if (code == CUDA_OK)
        return FC_OK;
    *module = NULL;
    log[sizeof log - 1] = '\0';

    const fc_device_info *info = &cuda->info;
    const int major = info->driver_version / 1000, minor = info->driver_version % 1000 / 10;
    const span isa = word_after(ptx, ".version");
    const span target = word_after(ptx, ".target");
    const fc_status status = code == CUDA_OUT_OF_MEMORY ? FC_ERROR_OUT_OF_MEMORY : FC_ERROR_PTX_REJECTED;
    fail(error, status, "the driver does not take the kernels' PTX");
    append_cuda(&cuda->driver, error, code);
    if (isa.length > 0)
        append(error, "\n  PTX ISA %.*s for %.*s", isa.length, isa.start, target.length, target.start);
    append(error, "\n  driver for CUDA %d.%d; device %d: %s, compute capability %d.%d", major, minor, info->ordinal,
           info->name, info->compute_major, info->compute_minor);
    if (code == CUDA_UNSUPPORTED_PTX_VERSION) {
        append(error, "\n  the PTX was made by a compiler newer than this driver");
        if (major >= 11) /* since CUDA 11 the two count in step; before, not quite (10.2 reads 6.5) */
            append(error, ", which reads PTX ISA %d.%d at most", major - 4, minor);
        append(error, "; rebuild with CUDA %d.%d or older (ssmtool build uses 11.4), or update the driver", major,
               minor);
    } else if (code == CUDA_NO_BINARY_FOR_GPU) {
        append(error, "\n  PTX runs on the architecture it names and on newer ones, and this device is older");
    } else if (code == CUDA_INVALID_PTX) {
        append(error, "\n  is the generated header edited or damaged? see: ssmtool build --check");
    }
    if (log[0] != '\0')
        append(error, "\n  the driver's assembler says:\n%s", log);
    return status;
}

#include "fc_cuda_fast.h"

/* --------------------------------------------------------------------------------------------- opening and closing */

static fc_status open_device(fc_cuda *cuda, int ordinal, fc_error *error)
{
    const driver *d = &cuda->driver;
    fc_device_info *info = &cuda->info;
    int code = d->init(0);
    if (code != CUDA_OK) {
        const fc_status status = code == CUDA_NO_DEVICE ? FC_ERROR_NO_DEVICE : FC_ERROR_DRIVER_INIT;
        fail(error, status, "the CUDA driver does not start");
        append_cuda(d, error, code);
        if (code == CUDA_NO_DEVICE)
            append(error, "\n  no GPU that this driver supports (R470 is the last for a Tesla K80), or "
                          "CUDA_VISIBLE_DEVICES hides them all");
        return status;
    }
    int count = 0;
    code = d->device_count(&count);
    if (code == CUDA_OK && (ordinal < 0 || ordinal >= count)) {
        fail(error, FC_ERROR_NO_DEVICE, "no such CUDA device");
        append(error, ": %d was asked for, and there are %d, counted from 0 (a K80 card is two devices; "
                      "CUDA_VISIBLE_DEVICES may hide some)", ordinal, count);
        return FC_ERROR_NO_DEVICE;
    }
    if (code == CUDA_OK)
        code = d->device_get(&cuda->device, ordinal);
    if (code == CUDA_OK)
        code = d->device_name(info->name, (int)sizeof info->name, cuda->device);
    if (code == CUDA_OK)
        code = d->driver_version(&info->driver_version);
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {DEVICE_COMPUTE_CAPABILITY_MAJOR, &info->compute_major},
        {DEVICE_COMPUTE_CAPABILITY_MINOR, &info->compute_minor},
        {DEVICE_MULTIPROCESSOR_COUNT, &info->multiprocessors},
        {DEVICE_MAX_SHARED_MEMORY_PER_BLOCK, &info->shared_bytes_per_block},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && code == CUDA_OK; i++)
        code = d->device_attribute(wanted[i].value, wanted[i].attribute, cuda->device);
    info->ordinal = ordinal;
    const fc_status status = check(d, error, code, "cannot ask the CUDA device what it is");
    if (status != FC_OK)
        return status;
    /* The primary context, which the CUDA runtime uses too: a host's own device pointers and streams work here. */
    code = d->context_retain(&cuda->context, cuda->device);
    if (code != CUDA_OK)
        cuda->context = NULL;
    return check(d, error, code, "cannot open a context on the CUDA device");
}

static fc_status load_kernels(fc_cuda *cuda, const char *ptx, int fast, fc_error *error)
{
    const driver *d = &cuda->driver;
    fc_status status = check(d, error, d->context_push(cuda->context), "cannot make the CUDA context current");
    if (status != FC_OK)
        return status;
    status = load_module(cuda, &cuda->module, ptx, error);
    if (status == FC_OK)
        status = fc_load_functions(cuda, ssm_names, 15, FC_NAME_COUNT, ptx, error);
    if (status == FC_OK && fast)
        status = load_fast_kernels(cuda, error);
    void *popped;
    (void)d->context_pop(&popped);
    return status;
}

fc_status fc_cuda_open(fc_cuda **cuda, const fc_cuda_options *options, fc_error *error)
{
    static const fc_cuda_options defaults;
    const char *ptx = FC_PTX_SSM_GATED_DELTA;
    clear(error);
    if (cuda == NULL)
        return bad_argument(error, "fc_cuda_open: cuda is NULL");
    *cuda = NULL;
    if (options == NULL)
        options = &defaults;
    /* Before the machine is looked at: without this a host falls back to its CPU path and reports "ok". */
    if (word_after(ptx, ".entry").length == 0)
        return fail(error, FC_ERROR_PTX_EMPTY,
                    "the generated header carries no kernel, so nothing could ever run on a GPU\n"
                    "  it was made on a machine without a CUDA compiler; run: ssmtool build");
    fc_cuda *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return fail(error, FC_ERROR_OUT_OF_MEMORY, "fc_cuda_open: no host memory");
    fc_status status = driver_open(&opened->driver, options->driver_library, error);
    if (status != FC_OK) {
        free(opened); /* there are no entry points yet for fc_cuda_close to call */
        return status;
    }
    status = open_device(opened, options->device, error);
    if (status == FC_OK)
        status = load_kernels(opened, ptx, options->fast, error);
    if (status == FC_OK || (status == FC_ERROR_KERNEL_MISSING && options->keep_partial))
        *cuda = opened;
    else
        fc_cuda_close(opened);
    return status;
}

void fc_cuda_close(fc_cuda *cuda)
{
    if (cuda == NULL)
        return;
    /* Whatever fails here, the next step is still due: after a kernel's fault every call returns that same fault. */
    int code;
    if (cuda->module != NULL) {
        FC_IN_CONTEXT(code, cuda, synchronize());
        if (cuda->fast_module != NULL)
            FC_IN_CONTEXT(code, cuda, module_unload(cuda->fast_module));
        FC_IN_CONTEXT(code, cuda, module_unload(cuda->module));
        (void)code;
    }
    if (cuda->context != NULL)
        (void)cuda->driver.context_release(cuda->device);
    free(cuda);
}

const fc_device_info *fc_cuda_device(const fc_cuda *cuda)
{
    return cuda != NULL ? &cuda->info : NULL;
}

int fc_cuda_kernels_loaded(const fc_cuda *cuda)
{
    return cuda != NULL ? cuda->loaded : 0;
}

const char *fc_kernel_name(fc_kernel kernel)
{
    if (is_fast(kernel))
        return fast_kernels[(int)kernel - FC_FAST_FIRST].symbol;
    return (unsigned int)kernel < FC_KERNEL_COUNT ? kernels[kernel].symbol : NULL;
}

void *fc_cuda_function(const fc_cuda *cuda, const char *symbol)
{
    if (cuda == NULL || symbol == NULL)
        return NULL;
    for (int i = 0; i < cuda->loaded; i++) {
        if (strcmp(ssm_names[i], symbol) == 0)
            return cuda->functions[i];
    }
    for (int i = 0; i < FC_FAST_COUNT; i++) {
        if (strcmp(fast_kernels[i].symbol, symbol) == 0)
            return cuda->fast_functions[i];
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- launching */

/* A kernel that can be launched: the driver's handle and how many arguments it takes. */
typedef struct launchable {
    void *function;
    int arguments;
} launchable;

static fc_status need_kernel(const fc_cuda *cuda, fc_kernel kernel, launchable *found, fc_error *error)
{
    if (cuda == NULL)
        return bad_argument(error, "cuda is NULL: was fc_cuda_open's status looked at?");
    if (is_fast(kernel)) {
        const int i = (int)kernel - FC_FAST_FIRST;
        *found = (launchable){cuda->fast_functions[i], fast_kernels[i].arguments};
        if (found->function != NULL)
            return FC_OK;
        fail(error, FC_ERROR_KERNEL_MISSING, fast_kernels[i].symbol);
        append(error, " was not loaded: %s",
               cuda->fast_module == NULL ? "the fast kernels are loaded when fc_cuda_options.fast says so"
                                         : "loading its module stopped before it");
        return FC_ERROR_KERNEL_MISSING;
    }
    if ((unsigned int)kernel >= FC_KERNEL_COUNT)
        return bad_argument(error, "the kernel is none of enum fc_kernel");
    if (cuda->functions[kernel] == NULL) {
        fail(error, FC_ERROR_KERNEL_MISSING, kernels[kernel].symbol);
        append(error, " was not loaded: the module lacked %s, and loading stopped there", ssm_names[cuda->loaded]);
        return FC_ERROR_KERNEL_MISSING;
    }
    *found = (launchable){cuda->functions[kernel], kernels[kernel].arguments};
    return FC_OK;
}

fc_status fc_cuda_kernel_info(const fc_cuda *cuda, fc_kernel kernel, fc_kernel_info *info, fc_error *error)
{
    clear(error);
    if (info == NULL)
        return bad_argument(error, "fc_cuda_kernel_info: info is NULL");
    launchable found;
    const fc_status status = need_kernel(cuda, kernel, &found, error);
    if (status != FC_OK)
        return status;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {FUNCTION_NUM_REGS, &info->registers},
        {FUNCTION_LOCAL_SIZE_BYTES, &info->local_bytes},
        {FUNCTION_SHARED_SIZE_BYTES, &info->static_shared_bytes},
        {FUNCTION_MAX_THREADS_PER_BLOCK, &info->max_threads},
    };
    int code = CUDA_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && code == CUDA_OK; i++)
        FC_IN_CONTEXT(code, cuda, function_attribute(wanted[i].value, wanted[i].attribute, found.function));
    return check(&cuda->driver, error, code, "cannot ask the driver about a kernel");
}

fc_status fc_cuda_launch(const fc_cuda *cuda, fc_kernel kernel, fc_dim3 grid, fc_dim3 block, size_t shared_bytes,
                         void *stream, void **arguments, int argument_count, fc_error *error)
{
    clear(error);
    launchable found;
    const fc_status status = need_kernel(cuda, kernel, &found, error);
    if (status != FC_OK)
        return status;
    const char *symbol = fc_kernel_name(kernel);
    if (arguments == NULL || argument_count != found.arguments) {
        bad_argument(error, symbol);
        append(error, " takes %d arguments, %d were given%s", found.arguments, argument_count,
               arguments == NULL ? " as NULL" : "");
        return FC_ERROR_ARGUMENT;
    }
    if (block.x == 0 || block.y == 0 || block.z == 0) {
        bad_argument(error, symbol);
        append(error, ": a block of %ux%ux%u has no threads", block.x, block.y, block.z);
        return FC_ERROR_ARGUMENT;
    }
    if (shared_bytes > (size_t)cuda->info.shared_bytes_per_block) {
        bad_argument(error, symbol);
        append(error,
               ": %zu bytes of shared memory for a block, and the device has %d; split the positions over several "
               "launches (any split gives the same bits)",
               shared_bytes, cuda->info.shared_bytes_per_block);
        return FC_ERROR_ARGUMENT;
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) /* the driver would call this an invalid value */
        return FC_OK;
    int code;
    FC_IN_CONTEXT(code, cuda, launch(found.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     (unsigned int)shared_bytes, stream, arguments, NULL));
    if (code == CUDA_OK)
        return FC_OK;
    fail(error, FC_ERROR_CUDA, symbol);
    append(error, " was not launched (grid %ux%ux%u, block %ux%ux%u, %zu bytes shared)", grid.x, grid.y, grid.z,
           block.x, block.y, block.z, shared_bytes);
    append_cuda(&cuda->driver, error, code);
    return FC_ERROR_CUDA;
}

fc_status fc_cuda_synchronize(const fc_cuda *cuda, fc_error *error)
{
    int code;
    clear(error);
    if (cuda == NULL)
        return bad_argument(error, "fc_cuda_synchronize: cuda is NULL");
    FC_IN_CONTEXT(code, cuda, synchronize());
    return check(&cuda->driver, error, code, "work on the device failed");
}

/* ---------------------------------------------------------------------------------------------------------- memory */

fc_status fc_cuda_alloc(const fc_cuda *cuda, uint64_t *address, size_t bytes, fc_error *error)
{
    int code = CUDA_OK;
    clear(error);
    if (cuda == NULL || address == NULL)
        return bad_argument(error, "fc_cuda_alloc: cuda or address is NULL");
    *address = 0;
    if (bytes > 0)
        FC_IN_CONTEXT(code, cuda, alloc(address, bytes));
    const fc_status status = check(&cuda->driver, error, code, "cannot allocate device memory");
    if (status != FC_OK)
        append(error, "\n  %zu bytes were asked for on device %d, %s", bytes, cuda->info.ordinal, cuda->info.name);
    return status;
}

fc_status fc_cuda_free(const fc_cuda *cuda, uint64_t address, fc_error *error)
{
    int code = CUDA_OK;
    clear(error);
    if (cuda == NULL)
        return bad_argument(error, "fc_cuda_free: cuda is NULL");
    if (address != 0)
        FC_IN_CONTEXT(code, cuda, release(address));
    return check(&cuda->driver, error, code, "cannot free device memory");
}

fc_status fc_cuda_upload(const fc_cuda *cuda, uint64_t to, const void *from, size_t bytes, fc_error *error)
{
    int code = CUDA_OK;
    clear(error);
    if (cuda == NULL || (bytes > 0 && (to == 0 || from == NULL)))
        return bad_argument(error, "fc_cuda_upload: cuda, to or from is NULL");
    if (bytes > 0)
        FC_IN_CONTEXT(code, cuda, upload(to, from, bytes));
    return check(&cuda->driver, error, code, "cannot copy to the device");
}

fc_status fc_cuda_download(const fc_cuda *cuda, void *to, uint64_t from, size_t bytes, fc_error *error)
{
    int code = CUDA_OK;
    clear(error);
    if (cuda == NULL || (bytes > 0 && (to == NULL || from == 0)))
        return bad_argument(error, "fc_cuda_download: cuda, to or from is NULL");
    if (bytes > 0)
        FC_IN_CONTEXT(code, cuda, download(to, from, bytes));
    return check(&cuda->driver, error, code, "cannot copy from the device");
}

fc_status fc_cuda_zero(const fc_cuda *cuda, uint64_t address, size_t bytes, fc_error *error)
{
    int code = CUDA_OK;
    clear(error);
    if (cuda == NULL || (bytes > 0 && address == 0))
        return bad_argument(error, "fc_cuda_zero: cuda or address is NULL");
    if (bytes > 0)
        FC_IN_CONTEXT(code, cuda, fill(address, 0, bytes));
    return check(&cuda->driver, error, code, "cannot clear device memory");
}
