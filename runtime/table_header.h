/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of a table's columns.  Called by the data source csv. */
#ifndef SCRIMP_RUNTIME_TABLE_HEADER_H
#define SCRIMP_RUNTIME_TABLE_HEADER_H

#include "runtime/csv.h"

typedef struct TableHeader {
    char **name;
    int n;
} TableHeader;

/* From the record that was read last; numbered: it is no header, and columns are called 1, 2, ...
 * Names are UTF-8, and none is there twice. */
bool table_header_read(TableHeader *h, const CsvReader *r, bool numbered, RtError *err);
/* Refuses a record of other columns: files of one data set have the same. */
bool table_header_same(const TableHeader *h, const CsvReader *r, bool numbered, RtError *err);
void table_header_free(TableHeader *h);

#endif
