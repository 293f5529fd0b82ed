/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many threads are worth starting.  Called for the defaults of --threads and --jobs. */
#ifndef SCRIMP_RUNTIME_CORES_H
#define SCRIMP_RUNTIME_CORES_H

/* Processors that this process may use at once, at least 1: those of its affinity mask (taskset,
 * cpusets), or fewer where a CPU quota of its control groups allows less. */
int cores_allowed(void);
/* The smallest CPU quota of the control groups (version 1 or 2) that the process is in, and of
 * those around them, in processors, rounded up; 0 = none.  root is put in front of every path: ""
 * but for tests. */
int cores_quota(const char *root);

#endif
