/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random trainable models as text of the scrimp language: images (convolution, batch norm,
 * pooling), vectors (linear, layer norm, gates) and sequences (embedding, attention), each with a
 * random optimizer, loss, clipping and accumulation.  Sizes come from short lists, so that kernels
 * are shared. */
#ifndef SCRIMP_TESTS_SUPPORT_RANDOM_MODEL_H
#define SCRIMP_TESTS_SUPPORT_RANDOM_MODEL_H

#include "ir/support/pool.h"

enum { MODEL_CLASSES = 10 }; /* also the vocabulary: every integer of a batch is below it */

typedef enum ModelFamily {
    MODEL_IMAGES,
    MODEL_VECTORS,
    MODEL_SEQUENCES,
    MODEL_FAMILIES
} ModelFamily;

/* What a test may exclude. */
typedef struct ModelLimits {
    bool no_dropout; /* masks depend on the place in the batch */
    bool no_accumulate;
} ModelLimits;

/* The text, on the pool. */
const char *random_model(Pool *pool, uint64_t seed, ModelFamily family, int pieces,
                         ModelLimits limits);

/* The random models of the default tests that compile whole steps: the same for all of them, so
 * that each kernel is compiled once, by whichever comes first.  Among them are batch norm, layer
 * norm, ReLU in each family, attention, dropout and micro-batches. */
const char *shared_random_model(Pool *pool, ModelFamily family);

#endif
