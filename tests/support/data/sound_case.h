/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sounds for tests, written byte by byte. */
#ifndef SCRIMP_TESTS_SOUND_CASE_H
#define SCRIMP_TESTS_SOUND_CASE_H

#include <stdint.h>

/* A WAV file of 16-bit samples, of all channels in turn. */
void write_wav(const char *name, int rate, int channels, const int16_t *sample, int frames);

#endif
