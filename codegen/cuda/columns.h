/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels that sum along columns by tiles: device/columns.cuh. */
#ifndef SCRIMP_CODEGEN_CUDA_COLUMNS_H
#define SCRIMP_CODEGEN_CUDA_COLUMNS_H

#include "ir/support/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Chunks of the rows of one or two images, which are pitch elements apart. */
typedef struct ColumnSums {
    int64_t rows, width, chunks, images, pitch[2];
} ColumnSums;

/* Rows can be read 16 bytes at a time, and there are enough columns for it. */
bool has_column_tiles(const ColumnSums *c);
int column_threads(const ColumnSums *c);
int64_t column_blocks(const ColumnSums *c);
/* Appends what device/columns.cuh wants; CHUNKS is the caller's. */
void text_columns(StrBuf *out, const ColumnSums *c);

#endif
