/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the simulated driver share. */
#ifndef SCRIMP_TESTS_CUDA_SIM_DRIVER_INTERNAL_H
#define SCRIMP_TESTS_CUDA_SIM_DRIVER_INTERNAL_H

#include "runtime/cuda/driver.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    BAD_VALUE = 1,
    BAD_IMAGE = 200,
    NO_CONTEXT = 201,
    BAD_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    PARAMETER_BYTES = 4096
};

/* A kernel that was loaded. */
typedef struct Function {
    void (*run)(const void *parameter);
    unsigned long bytes;
    int threads;
    char *shared, *shared_end;
    char name[128];
} Function;

/* --- driver.c --- */

/* Whether the calling thread has a context, without which the driver does nothing. */
int has_context(void);

/* --- kernels.c --- */

/* Runs all blocks; CUDA_OK or an error. */
int run_kernel(const Function *f, unsigned blocks, unsigned threads, const void *parameter);

/* --- streams.c --- */

typedef struct Event Event;

/* What is put on a stream. */
typedef struct Work {
    enum { LAUNCH, CALL, COPY, FILL, RECORD, WAIT } kind;
    const Function *function;
    unsigned blocks, threads, word;
    char parameter[PARAMETER_BYTES];
    void (*call)(void *user); /* of the host */
    void *user;
    char *to;
    const char *from;
    size_t bytes; /* of a copy; words of a fill */
    Event *event;
    unsigned long number; /* of the event's record */
    struct Work *next;
} Work;

int put(void *stream, const Work *w);
/* An error for what a thread without a context asks, or who captures a stream, which it spoils. */
int refused(void);

/* --- memory.c --- */

/* What SCRIMP_SIM_FULL names is out of memory. */
int is_full(const char *function);
/* Bytes of the device; 0 when it has not as many. */
int take_room(size_t bytes);
void give_room(size_t bytes);
/* NaNs up to the last whole word. */
void fill_nan(char *from, char *to);

#endif
