/* SPDX-License-Identifier: GPL-3.0-or-later */
/* 128-bit content keys of the kernel cache. */
#ifndef SCRIMP_CODEGEN_BUILD_HASH_H
#define SCRIMP_CODEGEN_BUILD_HASH_H

#include "ir/support/strbuf.h"

/* 32 hexadecimal digits of text, on the pool. */
const char *content_key(Pool *pool, const char *text, size_t length);

#endif
