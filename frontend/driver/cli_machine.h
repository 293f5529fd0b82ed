/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where steps run: the cores of this machine, or a CUDA device.  On the host a step's arena is
 * memory of this process.  On a device this process holds an image of it, of which only what is
 * read and written takes memory: inputs are sent before a step, outputs come back behind it,
 * persistent tensors when they are asked for. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_MACHINE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_MACHINE_H

#include "codegen/build/kernel.h"
#include "frontend/driver/cli.h"
#include "runtime/arena.h"
#include "runtime/cuda/device.h"
#include "runtime/threads.h"

typedef struct Machine {
    Threads *threads;
    Arena arena;      /* or its image */
    CudaDevice *cuda; /* NULL: the host */
    bool borrowed;    /* the device is another machine's */
} Machine;

/* Whether --device names a device there could be, and --exact or --fast what it can do; false after
 * a message. */
bool cli_device_known(Cli *cli);
/* Whether products have the factors and sums that their types say: with --exact, and where denormal
 * numbers are kept, which matrix registers take for 0. */
bool cli_is_exact(const Cli *cli);
/* What steps with libraries are planned for: the architectures of --device, with `cuda` the device
 * here, or sm_90 where there is none. */
const char *cli_library_archs(Cli *cli);
/* What --device asks for. */
const Backend *cli_backend(const Cli *cli);
/* What the device's kernels are compiled for: --device sm_XY, or else what the machine has; NULL
 * for the host.  False after a message where there is no such device. */
bool cli_device_arch(Cli *cli, const char **arch);
/* The same for a verb that runs nothing: sm_90 unless --device names another. */
const char *cli_any_arch(const Cli *cli);
/* The architectures that `compile` is to make kernels for: those of --device sm_80,sm_90, or what
 * the machine has.  False after a message. */
bool cli_device_archs(Cli *cli, const char *const **arch, int *n);

/* Threads and an arena of these bytes; false after a message.  Either way machine_close.  Steps
 * are compiled before. */
bool machine_open(Cli *cli, int64_t bytes, Machine *out);
/* A second machine, of at most as many bytes.  On the host it has memory of its own; on a device it
 * has an image of its own, and steps of both run in one arena: whoever runs one after a step of the
 * other makes the arena NaNs and sends its state first. */
bool machine_open_beside(Cli *cli, const Machine *first, int64_t bytes, Machine *out);
void machine_close(Machine *m);
/* The processor's name, as far as the system tells one. */
const char *machine_processor_name(Pool *pool);
/* Prints why a device cannot be used, or with E401 that it has no memory left.  False. */
bool cli_device_error(Cli *cli, const char *code, const RtError *err);
/* What a device was used for: "arena 3.1MiB, ..."; "" on the host. */
const char *machine_memory_text(Pool *pool, const Machine *m);
/* The exit code of a verb that a message ended: a device without room is a budget that cannot be
 * met.
 */
ExitCode machine_failure(const Cli *cli);

#endif
