/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the text of a CUDA kernel needs to be C: it is included before the text, which the simulated
 * NVRTC (nvrtc.c) compiles into a shared object, and the simulated driver (driver.c) runs. */
#ifndef SCRIMP_TESTS_CUDA_SIM_KERNEL_H
#define SCRIMP_TESTS_CUDA_SIM_KERNEL_H

/* The few functions of <math.h> that kernels call, which takes longer to read than a kernel to
 * compile. */
float sqrtf(float), fmaf(float, float, float);

typedef struct SimIndex {
    unsigned x, y, z;
} SimIndex;

/* The thread that runs, and what it may call: the driver's. */
typedef struct SimThread {
    SimIndex thread, block, block_size, grid_size;
    void (*barrier)(void);
} SimThread;

#ifndef SIM_DRIVER
SimThread *sim_thread; /* set when the kernel is loaded */

/* Shared memory: a section of its own, which the driver fills with NaNs before every block. */
__attribute__((section("sim_shared"))) char sim_shared_unused[4];
extern char __start_sim_shared[], __stop_sim_shared[];
char *const sim_shared_begin = __start_sim_shared, *const sim_shared_end = __stop_sim_shared;

#define threadIdx       (sim_thread->thread)
#define blockIdx        (sim_thread->block)
#define blockDim        (sim_thread->block_size)
#define gridDim         (sim_thread->grid_size)
#define __syncthreads() (sim_thread->barrier())

#define DEVICE         __attribute__((unused)) static inline
#define TABLE          static const
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#define UNROLL
#define SHARED static __attribute__((section("sim_shared")))
/* NAME runs a thread, NAME_bytes is the size of its parameter, NAME_threads the largest block. */
#define KERNEL(name, threads)                                                                      \
    static void name##_body(const Args a);                                                         \
    const unsigned long name##_bytes = sizeof(Args);                                               \
    const int name##_threads = threads;                                                            \
    void name(const void *parameter)                                                               \
    {                                                                                              \
        name##_body(*(const Args *)parameter);                                                     \
    }                                                                                              \
    static void name##_body(const Args a)
#define KERNEL_BLOCKS(name, threads, blocks) KERNEL(name, threads)
#endif

#endif
