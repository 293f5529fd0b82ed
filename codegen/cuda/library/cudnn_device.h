/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Devices as cuDNN's heuristics want to know them. */
#ifndef SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_DEVICE_H
#define SCRIMP_CODEGEN_CUDA_LIBRARY_CUDNN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text of a device of an architecture (90: compute capability 9.0) for a version of the
 * library; false where none is known. */
bool cudnn_device_json(char *out, size_t size, int64_t arch, int64_t version);

#endif
