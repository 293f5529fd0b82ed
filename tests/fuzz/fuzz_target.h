/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What libFuzzer calls, and replay_main.c. */
#ifndef SCRIMP_TESTS_FUZZ_TARGET_H
#define SCRIMP_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
