/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes in bytes as people write and read them. */
#ifndef SCRIMP_IR_SUPPORT_BYTE_SIZE_H
#define SCRIMP_IR_SUPPORT_BYTE_SIZE_H

#include "ir/support/pool.h"

/* "512MiB", "8GiB", "1.5GB", "4096": bytes (KiB, MiB, GiB, TiB, for which K, M, G and T are short,
 * as they are for `docker --memory` and systemd; kB, KB, MB, GB, TB; B).  bare: there is no unit,
 * easily a slip.  False when the text is no such size, a fraction without a unit, or more than 9e18
 * bytes (*bytes then says how many). */
bool byte_size_parse(const char *text, double *bytes, bool *bare);

/* Behind digits with at most one point; NULL when text does not begin with a number.  No sign,
 * exponent, hexadecimal or infinity. */
const char *byte_size_skip_number(const char *text);

/* "1.9GiB": rounded up to one decimal, so that the text read back is never less. */
const char *bytes_text(Pool *pool, int64_t bytes);
/* The same; to the byte where it reads like `other`, which differs. */
const char *bytes_apart_text(Pool *pool, int64_t bytes, int64_t other);

#endif
