/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checksum: the sum modulo 2^64 of eval_checksum, in chunks (ir/workspace.h); any order gives the
 * same. */
#ifndef SCRIMP_CODEGEN_FORMS_CHECKSUM_H
#define SCRIMP_CODEGEN_FORMS_CHECKSUM_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
typedef struct ChecksumDesc {
    int64_t elements, chunks, partial_bytes;
} ChecksumDesc;
KERNEL_DESC(ChecksumDesc)

/* Element i adds (bits + 1) * (2i + 1) * this. */
#define CHECKSUM_FACTOR 0x9E3779B97F4A7C15u

ChecksumDesc checksum_describe(const Lowering *l, const Node *n);

#endif
