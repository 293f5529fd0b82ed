/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of kernels: fixed parts (codegen/cuda/device/) and what is written for one kernel. */
#ifndef SCRIMP_CODEGEN_CUDA_TEXT_H
#define SCRIMP_CODEGEN_CUDA_TEXT_H

#include "codegen/build/kernel.h"

/* The files of codegen/cuda/device/, which kernels include: n names and texts. */
typedef struct DeviceTexts {
    const char *const *name, *const *text;
    int n;
} DeviceTexts;
DeviceTexts device_texts_all(void);
/* #include "NAME.cuh"; a bug when there is no such file. */
void text_include(StrBuf *out, const char *name);

/* Adds a call whose kernel is text(desc); threads: of a block, of which it has n_tasks. */
void cuda_call(Lowering *l, CallDraft *call, KernelText *text, int threads);
/* What a kernel begins with: its number of arguments, then the fixed parts it names, ended by NULL.
 */
void text_begin(StrBuf *out, int n_args, const char *const *parts);
/* The kernel `symbol`: a call of a function of its fixed parts, `body`. */
void text_kernel(StrBuf *out, const char *symbol, int threads, const char *body);
/* The same, of which so many blocks are enough for a multiprocessor (device/common.cuh): few for
 * one whose threads keep much in registers. */
void text_kernel_blocks(StrBuf *out, const char *symbol, int threads, int blocks, const char *body);
/* A float as a literal of exactly these bits. */
void text_float(StrBuf *out, double value);
/* The type of elements in memory; u16, of bf16, is device/bf16.cuh's. */
const char *text_type(DType t);
/* That of elements which are moved as they are. */
const char *text_bits_type(int64_t bytes);
/* "#define NAME value" */
void text_define(StrBuf *out, const char *name, int64_t value);
void text_define_float(StrBuf *out, const char *name, double value);
/* The function `name(batch)`: where element `batch` of an operand begins, of n batch dims. */
void text_batch(StrBuf *out, const char *name, int64_t n, const int64_t *dim,
                const int64_t *stride);
/* Tables of at least one number, finite ones, and of an int's range. */
void text_floats(StrBuf *out, const char *name, const float *x, int64_t n);
void text_integers(StrBuf *out, const char *name, const int64_t *x, int64_t n);

#endif
