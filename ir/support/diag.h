/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages to the user about their source text: collected in order of discovery and printed at the
 * end as text with carets or as JSON.  Called by the frontend, the IR reader and the command line.
 */
#ifndef SCRIMP_IR_SUPPORT_DIAG_H
#define SCRIMP_IR_SUPPORT_DIAG_H

#include "ir/support/pool.h"

#include <stdio.h>

/* A byte range of one source file; file is an index into Diag's sources, 0 = no location. */
typedef struct Span {
    uint32_t file; /* 1-based; 0 means "nowhere" (command line, whole model) */
    uint32_t begin, end;
} Span;

typedef struct Diag Diag;

Diag *diag_new(Pool *pool);
/* Registers a source text (kept, not copied); returns its file index.  name is what is printed. */
uint32_t diag_add_source(Diag *diag, const char *name, const char *text, size_t length);
const char *diag_source_name(const Diag *diag, uint32_t file);
const char *diag_source_text(const Diag *diag, uint32_t file, size_t *length);
/* 1-based line and column (in bytes, tabs count 1) of span.begin. */
void diag_line_column(const Diag *diag, Span span, uint32_t *line, uint32_t *column);

/* Reports an error.  code is like "E203".  Errors past the 20th are counted, not kept. */
void diag_error(Diag *diag, Span span, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_warning(Diag *diag, Span span, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds to the last message: a second location ("first used here"), or a way out ("help: ..."). */
void diag_note(Diag *diag, Span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_help(Diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Further errors are counted only. */
bool diag_is_full(const Diag *diag);
int diag_error_count(const Diag *diag);
/* Neither errors nor warnings. */
bool diag_is_empty(const Diag *diag);
/* Forgets the messages (they have been printed), keeps the sources. */
void diag_clear(Diag *diag);
/* Text form: file:L:C: error[Ennn]: message, the line, a caret; colour only when asked. */
void diag_print(const Diag *diag, FILE *out, bool colour);
/* One JSON object: {"errors":[{file,line,column,end_line,end_column,severity,code,message,
 * notes:[{file,line,column,message}],help:[...]}]}. */
void diag_print_json(const Diag *diag, FILE *out);

#endif
