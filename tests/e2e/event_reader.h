/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A reader of TensorBoard's files, which shares nothing with the writer: no protobuf library, its
 * own checksum. */
#ifndef SCRIMP_TESTS_EVENT_READER_H
#define SCRIMP_TESTS_EVENT_READER_H

#include <stdint.h>

enum { MOST_POINTS = 20000 };

typedef struct Point {
    int64_t step;
    double wall_time;
    float value;
    char tag[40];
} Point;

typedef struct Points {
    Point point[MOST_POINTS];
    int n;
    int n_starts, n_records, n_torn; /* torn: files that end within a record */
} Points;

/* Adds a file's points.  A session that starts at a step takes away what is there from it on, as
 * TensorBoard does.  A failed check where a checksum is wrong, or a message is not as it should be.
 */
void events_read(const char *path, Points *points);
/* The same of all files of a folder, in the order of their names; how many. */
int events_read_folder(const char *folder, Points *points);

#endif
