/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A training run on disk: weights, optimizer state and where it is, as a set that is replaced as a
 * whole.  A folder holds
 *     trainer.json                     names, sizes and CRC-32 of the other two; step, seed, ...
 *     model-STEP.safetensors           weights and buffers
 *     optimizer-STEP.safetensors       optimizer state
 *     model.safetensors                the newest weights under a fixed name, for other programs
 * Saving writes new files under new names and switches trainer.json last; the old set is removed
 * after that.  Killed at any moment, the folder holds one complete set.  Called by the trainer. */
#ifndef SCRIMP_RUNTIME_CHECKPOINT_H
#define SCRIMP_RUNTIME_CHECKPOINT_H

#include "runtime/dtype.h"
#include "runtime/trainer_state.h"

typedef struct CheckpointTensor {
    const char *name;
    RtDType dtype;
    int rank;
    int64_t dims[RT_MAX_RANK];
    void *data; /* dense; read by save, written by load */
    CheckpointRole role;
} CheckpointTensor;

/* Refuses to replace a trainer.json it cannot read: a trainer should find that out before it starts
 * (checkpoint_exists, checkpoint_read_state).  note (may be NULL) receives why model.safetensors is
 * not that of the set that was saved, else "": the set is complete without it. */
bool checkpoint_save(const char *dir, const TrainerState *state, const CheckpointTensor *tensors,
                     int64_t n, RtError *note, RtError *err);
/* Behind checkpoint_save, or checkpoint_load: the set is also in the folder DIR/step-STEP, a
 * checkpoint of its own that shares the files, and of such folders only those of the last `count`
 * saves stay.  Killed meanwhile, every folder step-STEP is whole. */
bool checkpoint_keep(const char *dir, int64_t count, RtError *err);
bool checkpoint_exists(const char *dir);
/* Only trainer.json. */
bool checkpoint_read_state(const char *dir, TrainerState *state, RtError *err);
/* The stored vocabulary; false (no message) when there is none, to be freed with vocab_free. */
bool checkpoint_read_vocab(const char *dir, Vocab *vocab, RtError *err);
/* The stored settings, and what the data source learned (json_decref'd by the caller), or NULL:
 * none, or no trainer.json. */
struct json_t *checkpoint_read_settings(const char *dir);
struct json_t *checkpoint_read_learned(const char *dir);
/* Resume: sizes and checksums are verified, and every tensor must be there with its exact type and
 * shape, with none left over.  Nothing is written to tensors unless all is well.  Renews
 * model.safetensors, which a killed run may have left a step behind, and removes older sets. */
bool checkpoint_load(const char *dir, TrainerState *state, const CheckpointTensor *tensors,
                     int64_t n, RtError *err);

/* What a file of weights has that the model has not, and how many running means were read. */
typedef struct ExtraWeights {
    int64_t averages;
    int64_t count;
    char names[200]; /* of the first few: "a.weight, a.bias, ..." */
} ExtraWeights;

/* Weights only, for eval, generate or a start from published weights: path is a safetensors file or
 * a checkpoint folder.  Tensors of role CHECKPOINT_OPTIMIZER are skipped, float types are
 * converted. A missing tensor or another shape is an error that names the first and counts all, and
 * names the prefix that the file's names have before the model's, if it is that; tensors the model
 * has not are told in *extra (may be NULL), not refused.  averages: of a checkpoint folder, the
 * running mean of a tensor where its optimizer state has one. */
bool checkpoint_load_weights(const char *path, const CheckpointTensor *tensors, int64_t n,
                             bool averages, ExtraWeights *extra, RtError *err);

#endif
