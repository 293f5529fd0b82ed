/* Real steps on random data, with the time of every kernel: for `bench` and measured costs. */
#ifndef SCRIMP_FRONTEND_CLI_MEASURE_H
#define SCRIMP_FRONTEND_CLI_MEASURE_H

#include "frontend/cli_session.h"

typedef struct Measurement {
    Host host;
    RtProfile profile;
    Dataset *data;
} Measurement;

/* Compiles, maps memory, starts threads and fills everything; false after a message. */
bool measurement_open(Cli *cli, const Program *program, Measurement *out);
void measurement_close(Measurement *m);
/* Seconds of the median of n steps, after warming up. */
double measurement_steps(Measurement *m, int64_t n);
/* Runs n steps and returns by call the time that `rank` of them were faster than (0: the fastest,
 * n/2: the median). */
double *measurement_calls(Measurement *m, int64_t n, int64_t rank);

#endif
