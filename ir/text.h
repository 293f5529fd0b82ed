/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Spelling shared by print.c and read.c: names, strings, numbers, the fields of the train section.
 */
#ifndef SCRIMP_IR_TEXT_H
#define SCRIMP_IR_TEXT_H

#include "ir/support/strbuf.h"
#include "ir/train_spec.h"

#include <stddef.h>

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

typedef enum TrainFieldKind {
    TRAIN_BOOL,
    TRAIN_DOUBLE,
    TRAIN_INT,
    TRAIN_UINT,
    TRAIN_TEXT,
    TRAIN_OPTIM,
    TRAIN_LR,
    TRAIN_GROUPS
} TrainFieldKind;

typedef struct TrainField {
    const char *key;
    TrainFieldKind kind;
    size_t offset; /* in TrainSpec */
} TrainField;

enum { TRAIN_OPTIM_COUNT = 9, TRAIN_LR_COUNT = 6, TRAIN_FIELD_COUNT = 60 };
/* The fields of TrainSpec.rule come first: train_fields[0 .. TRAIN_RULE_COUNT). */
enum { TRAIN_RULE_COUNT = 31 };
extern const TrainField train_fields[TRAIN_FIELD_COUNT];
/* One of the first TRAIN_RULE_COUNT fields of a rule that stands alone. */
static inline TrainField train_rule_field(int i)
{
    TrainField field = train_fields[i];
    field.offset -= offsetof(TrainSpec, rule);
    return field;
}
/* The field's value as text; false when it is the one that an absent field stands for. */
bool train_field_put(StrBuf *b, const TrainField *field, const void *spec);
/* "{pattern=.., optim=.., ..}" */
void train_group_put(StrBuf *b, const ParamGroup *group);
extern const char *const optim_names[TRAIN_OPTIM_COUNT]; /* by OptimKind */
extern const char *const lr_names[TRAIN_LR_COUNT];       /* by LrKind */

#endif
