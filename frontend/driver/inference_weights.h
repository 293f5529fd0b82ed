/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weights of a compiled inference, in the form that its header reads. */
#ifndef SCRIMP_FRONTEND_DRIVER_INFERENCE_WEIGHTS_H
#define SCRIMP_FRONTEND_DRIVER_INFERENCE_WEIGHTS_H

#include "frontend/driver/cli_program.h"

/* Reads --checkpoint and writes what the persistent part of the program's arena holds, with batch
 * normalization folded as the pass fold_norms has decided, to a file.  False after a message. */
bool inference_weights_write(Cli *cli, const Ast *ast, const Program *p, const char *path);

#endif
