/*
 * Loader for the Gated-Delta-Net kernels: opens the CUDA driver at run time, loads the PTX that the build embedded,
 * and launches the kernels. Neither compiling nor linking needs CUDA; a machine without it gets an error that says so.
 *
 * Build: cc -std=c11 -c fc_cuda.c, and link with -ldl where the C library is older than glibc 2.34.
 *
 * Typical use:
 *
 *     fc_error error;
 *     fc_cuda *cuda;
 *     if (fc_cuda_open(&cuda, &(fc_cuda_options){.device = 0}, &error) != FC_OK)
 *         die("%s", error.text);
 *     void *arguments[] = {&x, &n};                      // uint64_t x; int n; addresses, in the contract's order
 *     fc_cuda_launch(cuda, FC_SIGMOID, (fc_dim3){(n + 255) / 256, 1, 1}, (fc_dim3){256, 1, 1}, 0, NULL,
 *                    arguments, 2, &error);
 *     fc_cuda_synchronize(cuda, &error);                 // a fault inside a kernel surfaces here, not at the launch
 *     fc_cuda_close(cuda);
 *
 * One handle is one CUDA device. A K80 card holds two devices: open two handles.
 *
 * Threads: there is no global state, and a handle does not change between fc_cuda_open and fc_cuda_close, so any number
 * of threads may use one handle, or several, at once; each call makes the device's context current and then puts back
 * what the calling thread had. Only close must not run beside another use of the same handle. Every error goes to the
 * caller's own fc_error. A handle does not survive fork().
 */

#ifndef FC_CUDA_H
#define FC_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * X(constant, symbol, number of arguments), in the order of ssm_names in fc_cuda.c. The two lists meet in
 * fc_cuda_open, which refuses to go on when they disagree: a constant one off would launch the wrong kernel.
 * A kernel that is in ssm_names but not yet here loads all the same; fc_cuda_function finds it by name.
 */
#define FC_KERNELS(X) \
    X(FC_SSM_RECURRENCE, fc_ssm_recurrence, 9) \
    X(FC_SSM_CONV1D_SILU, fc_ssm_conv1d_silu, 6) \
    X(FC_SSM_GATED_NORM, fc_ssm_gated_norm, 6) \
    X(FC_SIGMOID, fc_sigmoid, 2) \
    X(FC_SSM_DECAY_GATE, fc_ssm_decay_gate, 5) \
    X(FC_SSM_QKNORM_GQA, fc_ssm_qknorm_gqa, 8) \
    X(FC_SSM_CONV1D_SILU_SEQ, fc_ssm_conv1d_silu_seq, 8) \
    X(FC_SSM_RECURRENCE_SEQ, fc_ssm_recurrence_seq, 12) \
    X(FC_SSM_RECURRENCE_SEQ_UNROLL128, fc_ssm_recurrence_seq_unroll128, 12) \
    X(FC_SSM_RECURRENCE_SEQ_WARP, fc_ssm_recurrence_seq_warp, 12) \
    X(FC_SSM_CONV1D_SILU_SLOTS, fc_ssm_conv1d_silu_slots, 6) \
    X(FC_SSM_RECURRENCE_SLOTS, fc_ssm_recurrence_slots, 10) \
    X(FC_SSM_RECURRENCE_SLOTS_2PASS, fc_ssm_recurrence_slots_2pass, 10) \
    X(FC_SSM_DECAY_GATE_NX, fc_ssm_decay_gate_nx, 6) \
    X(FC_SSM_QKNORM_GQA_NX, fc_ssm_qknorm_gqa_nx, 10)

/*
 * The fast kernels, a module of their own that is loaded when fc_cuda_options.fast asks for it. F(constant, symbol,
 * number of arguments), in the order of fast_names in fc_cuda_fast.h.
 */
#define FC_FAST_KERNELS(F) \
    F(FC_SSM_RECURRENCE_SLOTS_WARP, fc_ssm_recurrence_slots_warp, 10) \
    F(FC_SSM_RECURRENCE_SEQ_WARP_MULTI, fc_ssm_recurrence_seq_warp_multi, 12) \
    F(FC_SSM_DECODE_STEP, fc_ssm_decode_step, 18)

typedef enum fc_kernel {
#define FC_KERNEL_CONSTANT(constant, symbol, arguments) constant,
    FC_KERNELS(FC_KERNEL_CONSTANT)
    FC_KERNEL_COUNT, /* of FC_KERNELS */
    FC_FAST_BEFORE = 999, /* far from the others: neither list moves when the other grows */
    FC_FAST_KERNELS(FC_KERNEL_CONSTANT)
#undef FC_KERNEL_CONSTANT
    FC_FAST_FIRST = FC_FAST_BEFORE + 1
} fc_kernel;

typedef enum fc_status {
    FC_OK = 0,
    FC_ERROR_ARGUMENT,       /* the caller's mistake: NULL, an unknown kernel, a wrong number of arguments, ... */
    FC_ERROR_REGISTRY,       /* ssm_names, its count and FC_KERNELS disagree: found before any GPU is touched */
    FC_ERROR_PTX_EMPTY,      /* the generated header carries no kernel: it was made without a compiler */
    FC_ERROR_DRIVER_MISSING, /* the CUDA driver library cannot be opened: a machine without an NVIDIA driver */
    FC_ERROR_DRIVER_SYMBOL,  /* it opens but lacks an entry point: older than R450, or not a CUDA driver */
    FC_ERROR_DRIVER_INIT,    /* the driver does not start */
    FC_ERROR_NO_DEVICE,      /* no GPU, or no device of that ordinal */
    FC_ERROR_PTX_REJECTED,   /* the driver does not take the PTX; fc_error.cuda says why (222, 218, 209, ...) */
    FC_ERROR_KERNEL_MISSING, /* the module lacks a kernel that ssm_names asks for */
    FC_ERROR_OUT_OF_MEMORY,  /* host or device memory */
    FC_ERROR_CUDA            /* anything else the driver reports; the code is in fc_error.cuda */
} fc_status;

/* Filled by every call that is given one (NULL is allowed): on success status FC_OK, cuda 0 and an empty text. */
typedef struct fc_error {
    fc_status status;
    int cuda;        /* the driver's CUresult, 0 when the driver was not the one to complain */
    char text[4096]; /* for people: what happened, the likely cause, the command that mends it; may span lines */
} fc_error;

/* Zero-initialise: zero means the default of every field. */
typedef struct fc_cuda_options {
    /* The driver library; NULL means $FC_CUDA_DRIVER, and without that libcuda.so.1 (nvcuda.dll on Windows). */
    const char *driver_library;
    int device; /* ordinal, as CUDA_VISIBLE_DEVICES leaves it */
    /*
     * Nonzero: when a kernel is missing, fc_cuda_open still returns FC_ERROR_KERNEL_MISSING with the full message but
     * also hands out a handle with the kernels before it, for a host that can do without the newer ones (per-token
     * kernels in place of the batched). Launching one of the others fails with FC_ERROR_KERNEL_MISSING.
     */
    int keep_partial;
    int fast; /* nonzero: the fast kernels too; every message about the module then speaks of one or the other */
} fc_cuda_options;

typedef struct fc_cuda fc_cuda;

typedef struct fc_dim3 {
    unsigned int x, y, z;
} fc_dim3;

typedef struct fc_device_info {
    char name[128];
    int ordinal;
    int compute_major, compute_minor; /* 3, 7 for a K80 */
    int multiprocessors;
    int shared_bytes_per_block; /* the limit on static + dynamic shared memory of one block */
    int driver_version;         /* 1000 * major + 10 * minor of the newest CUDA the driver knows: 11040 for R470 */
} fc_device_info;

/* What the driver's own assembler made of a kernel on this very device: the last word on local memory. */
typedef struct fc_kernel_info {
    int registers;
    int local_bytes;         /* per thread: stack frame and spills; 0 is what the kernels are built for */
    int static_shared_bytes; /* per block */
    int max_threads;         /* per block */
} fc_kernel_info;

/*
 * Opens the driver, retains the primary context of one device, loads the module and looks up every kernel.
 * *cuda is NULL after a failure (see keep_partial for the exception) and everything acquired is released.
 * The first open on a machine may take seconds: the driver assembles the PTX, and then keeps it in its own cache.
 * `options` may be NULL.
 */
fc_status fc_cuda_open(fc_cuda **cuda, const fc_cuda_options *options, fc_error *error);

/* Waits for the device, unloads the module, releases the context. NULL is allowed. Device memory is the caller's. */
void fc_cuda_close(fc_cuda *cuda);

/* Never NULL for a handle that fc_cuda_open gave; valid until fc_cuda_close. */
const fc_device_info *fc_cuda_device(const fc_cuda *cuda);

/* The symbol of a kernel, "fc_sigmoid"; NULL for a value outside the enum. */
const char *fc_kernel_name(fc_kernel kernel);

/* How many kernels can be launched: all of ssm_names, or fewer after keep_partial. */
int fc_cuda_kernels_loaded(const fc_cuda *cuda);

/* The driver's CUfunction of a symbol in ssm_names, for a host with its own launch code; NULL when it is not loaded. */
void *fc_cuda_function(const fc_cuda *cuda, const char *symbol);

fc_status fc_cuda_kernel_info(const fc_cuda *cuda, fc_kernel kernel, fc_kernel_info *info, fc_error *error);

/*
 * Enqueues one launch and returns at once. `arguments` holds the addresses of the kernel's arguments in order: uint64_t
 * for a pointer (0 for NULL), int, float. `argument_count` guards against the one mistake the driver cannot see: it
 * reads as many as the kernel declares, however short the array. `stream` is a CUstream, NULL the default stream.
 * A grid with a zero in it is n = 0 positions or slots: nothing to compute, so FC_OK and no launch.
 */
fc_status fc_cuda_launch(const fc_cuda *cuda, fc_kernel kernel, fc_dim3 grid, fc_dim3 block, size_t shared_bytes,
                         void *stream, void **arguments, int argument_count, fc_error *error);

/* Waits for everything on the device; returns what went wrong in any kernel since the last wait. */
fc_status fc_cuda_synchronize(const fc_cuda *cuda, fc_error *error);

/* Device memory, addresses as uint64_t. Zero bytes: FC_OK, nothing done, *address 0. Copies wait until done. */
fc_status fc_cuda_alloc(const fc_cuda *cuda, uint64_t *address, size_t bytes, fc_error *error);
fc_status fc_cuda_free(const fc_cuda *cuda, uint64_t address, fc_error *error);
fc_status fc_cuda_upload(const fc_cuda *cuda, uint64_t to, const void *from, size_t bytes, fc_error *error);
fc_status fc_cuda_download(const fc_cuda *cuda, void *to, uint64_t from, size_t bytes, fc_error *error);
fc_status fc_cuda_zero(const fc_cuda *cuda, uint64_t address, size_t bytes, fc_error *error);

#ifdef __cplusplus
}
#endif

#endif
