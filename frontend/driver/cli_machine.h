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
} Machine;

/* Whether --device names a device there could be; false after a message. */
bool cli_device_known(Cli *cli);
/* What --device asks for. */
const Backend *cli_backend(const Cli *cli);
/* What the device's kernels are compiled for: --device sm_XY, or else what the machine has; NULL
 * for the host.  False after a message where there is no such device. */
bool cli_device_arch(Cli *cli, const char **arch);
/* The architectures that `compile` is to make kernels for: those of --device sm_80,sm_90, or what
 * the machine has.  False after a message. */
bool cli_device_archs(Cli *cli, const char *const **arch, int *n);
/* The same for a verb that runs nothing: sm_90 unless --device names another. */
const char *cli_any_arch(const Cli *cli);

/* Threads and an arena of these bytes; false after a message.  Either way machine_close. */
bool machine_open(Cli *cli, int64_t bytes, Machine *out);
void machine_close(Machine *m);
/* The exit code of a verb that a message ended: a device without room is a budget that cannot be
 * met.
 */
ExitCode machine_failure(const Cli *cli);

#endif
