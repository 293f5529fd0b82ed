/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Spelling shared by print.c and read.c: names, strings, numbers, the fields of the train section.
 */
#ifndef SCRIMP_IR_TEXT_H
#define SCRIMP_IR_TEXT_H

#include "ir/support/strbuf.h"
#include "ir/train_fields.h"

enum { IR_TEXT_VERSION = 1 };

/* Characters of a name that needs no quotes. */
bool text_is_name_char(char c);
/* "..." with \" \\ \n \t and \xHH. */
void text_put_string(StrBuf *b, const char *s);
/* s as it is when all of it is name characters, else quoted. */
void text_put_name(StrBuf *b, const char *s);
/* Fewest digits that read back as the same double; 100, not 1e+02. */
void text_put_double(StrBuf *b, double x);
/* Escapes what would end the line; \\ for a backslash. */
void text_put_rest_of_line(StrBuf *b, const char *s);
/* One hexadecimal digit, -1 if it is none. */
int text_hex_digit(char c);

/* The field's value as text; false when it is the one that an absent field stands for. */
bool train_field_put(StrBuf *b, const TrainField *field, const void *spec);

#endif
