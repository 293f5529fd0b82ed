/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects of cuDNN's backend API, made one after the other: after the first call that fails, the
 * others do nothing.  Called by the files cudnn_*.c. */
#ifndef SCRIMP_RUNTIME_CUDA_CUDNN_OBJECTS_H
#define SCRIMP_RUNTIME_CUDA_CUDNN_OBJECTS_H

#include "runtime/cuda/cudnn_api.h"

/* The gradient of attention has the most. */
enum { CUDNN_OBJECTS_MOST = 128 };

/* Those that are made for one purpose, and go together. */
typedef struct CudnnMaker {
    const Cudnn *cudnn;
    void *object[CUDNN_OBJECTS_MOST];
    int n;
    int status; /* of the first call that failed */
} CudnnMaker;

/* NULL where it fails. */
void *cudnn_make(CudnnMaker *m, CudnnKind kind);
void cudnn_set(CudnnMaker *m, void *object, int attribute, int type, int64_t n,
               const void *elements);
void cudnn_set_integer(CudnnMaker *m, void *object, int attribute, int64_t value);
/* Enumerations of the library are ints. */
void cudnn_set_enum(CudnnMaker *m, void *object, int attribute, int type, int value);
void cudnn_set_true(CudnnMaker *m, void *object, int attribute);
void cudnn_set_object(CudnnMaker *m, void *object, int attribute, void *value);
void cudnn_finalize(CudnnMaker *m, void *object);
void cudnn_free(CudnnMaker *m);
/* Whether everything was; a message about `what` where it was not. */
bool cudnn_made(const CudnnMaker *m, const char *what, RtError *err);

#endif
