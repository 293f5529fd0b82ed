/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weights of a compiled inference, in the form that its header reads. */
#ifndef SCRIMP_FRONTEND_DRIVER_INFERENCE_WEIGHTS_H
#define SCRIMP_FRONTEND_DRIVER_INFERENCE_WEIGHTS_H

#include "frontend/driver/cli_program.h"
#include "runtime/checkpoint.h"

/* The tensors of the model as it was trained: name -> elements, in the order of the language. */
typedef struct TrainedWeights {
    CheckpointTensor *tensor;
    int n;
} TrainedWeights;

/* Reads --checkpoint, on the pool of cli; false after a message, also where it is of another model
 * or not finite.  Nothing is written before it has succeeded. */
bool inference_weights_read(Cli *cli, const Ast *ast, TrainedWeights *out);
/* Writes what the persistent part of the program's arena holds, with batch normalization folded as
 * the pass fold_norms has decided, to a file.  False after a message. */
bool inference_weights_write(Cli *cli, const TrainedWeights *trained, const Program *p,
                             const char *path);

#endif
