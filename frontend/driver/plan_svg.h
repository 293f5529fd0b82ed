/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The picture of a plan as SVG: bytes in memory over the operations of a step, with everything kept
 * and as planned, and below it the arena, a rectangle for each buffer.  Data in, text out; called
 * by `scrimp plan --svg` (cli_picture.c). */
#ifndef SCRIMP_FRONTEND_DRIVER_PLAN_SVG_H
#define SCRIMP_FRONTEND_DRIVER_PLAN_SVG_H

#include "ir/support/strbuf.h"

#include <stdint.h>

/* What made the first value of a buffer. */
typedef enum BufferKind {
    BUFFER_FORWARD,
    BUFFER_BACKWARD, /* gradients and updates */
    BUFFER_AGAIN,    /* a recomputation */
    BUFFER_WORKSPACE,
    N_BUFFER_KINDS
} BufferKind;

/* In memory during the operations [first, end) of the plan. */
typedef struct PictureBuffer {
    int64_t first, end, offset, bytes;
    const char *name;
    BufferKind kind;
} PictureBuffer;

/* Bytes in memory while each operation runs, persistent tensors included. */
typedef struct PictureLoad {
    int n;
    const int64_t *bytes;
} PictureLoad;

typedef struct PlanPicture {
    const char *title;
    PictureLoad kept, planned; /* everything kept; the plan */
    int forward_end;           /* operations of the plan up to the loss; 0: not known */
    int64_t persistent_bytes, arena_bytes;
    int64_t budget_bytes;    /* INT64_MAX: none */
    double overhead_percent; /* time of the plan beyond that with everything kept */
    int n_buffers;           /* beside the persistent tensors */
    const PictureBuffer *buffer;
} PlanPicture;

/* A picture has at most so many rectangles and steps of a curve: it says which it leaves out or
 * draws together. */
enum { PICTURE_MOST_BUFFERS = 2000, PICTURE_MOST_STEPS = 1000 };

/* The same picture gives the same bytes.  Names may hold anything. */
void plan_svg_write(const PlanPicture *p, StrBuf *out);

#endif
