/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions in the order of codegen/forms/convolution.h: what the kernels of conv.c (results,
 * data gradients) and conv_weights.c (weight gradients) have in common. */
#ifndef SCRIMP_CODEGEN_CUDA_CONV_H
#define SCRIMP_CODEGEN_CUDA_CONV_H

#include "codegen/cuda/matrix.h"
#include "codegen/forms/convolution.h"

enum { CONV_THREADS = 256, CONV_TILE_LEAST = 16 };

KERNEL_DESC_BEGIN
typedef struct ConvDesc {
    ConvGeometry q;
    int64_t part, form;        /* ConvPart, ConvForm */
    int64_t chunks, band_rows; /* of a weight gradient */
    int n_args, a_buf, b_buf;  /* operands in the order of the node */
    int bias_buf;              /* along the channels, which need not be the columns; -1: none */
    int partial_buf;           /* of a weight gradient whose chunks are joined; -1: none */
    TileShape tile;            /* where it is cuda_conv_tiled */
    Epilogue epilogue;         /* without bias */
} ConvDesc;
KERNEL_DESC(ConvDesc)

/* A description with its operands and its epilogue, whose call is *call. */
ConvDesc *cuda_conv_describe(const MatrixNode *m, const ConvGeometry *q, ConvPart part,
                             CallDraft *call);
/* Adds the call of a kernel whose blocks have so many threads.  what: for the label. */
void cuda_conv_call(const MatrixNode *m, CallDraft *call, const ConvDesc *d, const char *what,
                    KernelText *text, int threads);
/* What every kernel begins with; parts: its fixed parts beside the common ones, ended by NULL. */
void cuda_conv_begin(StrBuf *out, const ConvDesc *d, const char *const *parts);
/* The columns of tiles: channels of y of a group, or of x. */
int64_t cuda_conv_columns(const ConvDesc *d);
/* Whether there are enough of them for tiles. */
bool cuda_conv_tiled(const ConvDesc *d);
/* Defines PLACE, the type that places in both images fit into. */
void cuda_conv_place(StrBuf *out, const ConvGeometry *q);

void cuda_lower_conv_weights(const MatrixNode *m, const ConvGeometry *q);

#endif
