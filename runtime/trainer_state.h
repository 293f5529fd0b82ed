/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a training run is, and the files that hold it. */
#ifndef SCRIMP_RUNTIME_TRAINER_STATE_H
#define SCRIMP_RUNTIME_TRAINER_STATE_H

#include "runtime/vocab.h"

typedef enum CheckpointRole {
    CHECKPOINT_MODEL,    /* weights and buffers: model.safetensors */
    CHECKPOINT_OPTIMIZER /* everything else a resumed run needs */
} CheckpointRole;

/* The random generator is a function of (seed, step), so this is all of a run's state. */
typedef struct TrainerState {
    int64_t step;          /* updates done */
    int64_t data_position; /* micro-batches consumed */
    double epoch;          /* for people */
    uint64_t seed;
    bool evaluation_due;           /* after this step, but the run was ended before it */
    uint64_t model_hash;           /* of whatever must not differ on resume; the caller's choice */
    const Vocab *vocab;            /* characters of a text model, or NULL; load does not set it */
    const struct json_t *learned;  /* by the data source (dataset_learned), or NULL; as vocab */
    const struct json_t *settings; /* what the run was trained with, or NULL; neither does it */
} TrainerState;

#endif
