/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small models of kinds that tests/support/random_model.h does not draw: recurrence over shared
 * weights, an encoder and decoder with padding masks, several weighted losses, random numbers.
 * Integers of a batch are below MODEL_CLASSES. */
#ifndef SCRIMP_TESTS_FIXED_MODELS_H
#define SCRIMP_TESTS_FIXED_MODELS_H

typedef struct FixedModel {
    const char *name, *text;
} FixedModel;

enum { FIXED_MODELS = 7 };
extern const FixedModel fixed_models[FIXED_MODELS];

#endif
