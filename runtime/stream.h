/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What threads read from and write to memory: the triad of STREAM (J. D. McCalpin, "Memory
 * Bandwidth and Machine Balance in Current High Performance Computers", 1995).  Called by the
 * command line. */
#ifndef SCRIMP_RUNTIME_STREAM_H
#define SCRIMP_RUNTIME_STREAM_H

#include "runtime/threads.h"

/* 1e9 bytes a second of all threads together, the best of several runs on 192 MiB, which it maps
 * meanwhile; what is written counts once.  0 where there is no such memory. */
double stream_gbytes_per_second(Threads *threads);

#endif
