/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/cudnn_objects.h"

void *cudnn_make(CudnnMaker *m, CudnnKind kind)
{
    void *object = NULL;
    if (m->status == CUDNN_SUCCESS && m->n >= CUDNN_OBJECTS_MOST)
        m->status = CUDNN_TOO_MANY;
    if (m->status == CUDNN_SUCCESS)
        m->status = m->cudnn->object_create((int)kind, &object);
    if (object)
        m->object[m->n++] = object;
    return object;
}

void cudnn_set(CudnnMaker *m, void *object, int attribute, int type, int64_t n,
               const void *elements)
{
    if (m->status == CUDNN_SUCCESS)
        m->status = m->cudnn->object_set(object, attribute, type, n, elements);
}

void cudnn_set_integer(CudnnMaker *m, void *object, int attribute, int64_t value)
{
    cudnn_set(m, object, attribute, CUDNN_TYPE_INT64, 1, &value);
}

void cudnn_set_enum(CudnnMaker *m, void *object, int attribute, int type, int value)
{
    cudnn_set(m, object, attribute, type, 1, &value);
}

void cudnn_set_true(CudnnMaker *m, void *object, int attribute)
{
    const bool value = true;
    cudnn_set(m, object, attribute, CUDNN_TYPE_BOOLEAN, 1, &value);
}

void cudnn_set_object(CudnnMaker *m, void *object, int attribute, void *value)
{
    cudnn_set(m, object, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void cudnn_finalize(CudnnMaker *m, void *object)
{
    if (m->status == CUDNN_SUCCESS)
        m->status = m->cudnn->object_finalize(object);
}

void cudnn_free(CudnnMaker *m)
{
    while (m->n > 0)
        m->cudnn->object_destroy(m->object[--m->n]);
}

bool cudnn_made(const CudnnMaker *m, const char *what, RtError *err)
{
    return m->status == CUDNN_SUCCESS || rt_error(err, "cuDNN: %s: status %d", what, m->status);
}
