/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two training runs that left the same, by their files, and runs on the simulated device. */
#ifndef SCRIMP_TESTS_EQUAL_RUNS_H
#define SCRIMP_TESTS_EQUAL_RUNS_H

/* In front of a command: the simulated device; with SCRIMP_CUDA_REAL, even empty, the machine's own
 * (tests/gpu/run.sh). */
#define SIMULATED "SCRIMP_CUDA_PATH=${SCRIMP_CUDA_REAL-$SCRIMP_BUILD/cuda-sim} "

/* The weights and the optimizer's state in the folders a and b of $TMP, byte for byte. */
void expect_equal_runs(const char *a, const char *b);
/* And what $TMP/a.log and $TMP/b.log say of every step, but for the time that it took. */
void expect_equal_steps(const char *a, const char *b);
/* The loss of the last step of a command that trains, on the simulated device, which leaves
 * $TMP/NAME and $TMP/NAME.log. */
double trained_loss(const char *command, const char *name);
/* The losses of n steps, 16 at most: each differs by at most this part of it. */
void expect_near_losses(const char *a, const char *b, int n, double tolerance);
/* A safetensors file of each: the norm of each tensor's difference is at most this part of its
 * norm. */
#define WEIGHTS   "model.safetensors"
#define OPTIMIZER "optimizer-*.safetensors"
void expect_near_tensors(const char *a, const char *b, const char *file, double tolerance);

#endif
