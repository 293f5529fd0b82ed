/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The train section of the text form; read.c calls it. */
#ifndef SCRIMP_IR_READ_TRAIN_H
#define SCRIMP_IR_READ_TRAIN_H

#include "ir/read_scan.h"
#include "ir/train_spec.h"

/* Behind the word `train`; false after a message. */
bool read_train(Scanner *s, TrainSpec *train);

#endif
