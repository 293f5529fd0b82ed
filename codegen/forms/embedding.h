/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a table by number, and the gradient of the table.  Numbers outside of the table read its
 * first or last row, and add nothing: no access is out of bounds whatever the data say. */
#ifndef SCRIMP_CODEGEN_FORMS_EMBEDDING_H
#define SCRIMP_CODEGEN_FORMS_EMBEDDING_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
typedef struct EmbeddingDesc {
    int64_t ids, id_type, rows, width;
    int64_t so_far; /* the gradient is added to an input */
} EmbeddingDesc;
KERNEL_DESC(EmbeddingDesc)

EmbeddingDesc embedding_describe(const Lowering *l, const Node *n);
/* Its inputs, then its result: three or four. */
int embedding_bufs(const Node *n, CallBuf *bufs);

#endif
