/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 7: VmHWM <= arena + loaded data + 32 MB + max(2%, 8 MB), code generation included. */
#ifndef SCRIMP_TESTS_RESIDENT_MEMORY_H
#define SCRIMP_TESTS_RESIDENT_MEMORY_H

void expect_within(const char *example, const char *budget, const char *data, double data_bytes);

#endif
