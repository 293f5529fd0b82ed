/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by train_section.c and the other train_*.c. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_TRAIN_INTERNAL_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_TRAIN_INTERNAL_H

#include "frontend/language/elaborate/builtins_table.h"

enum { SOURCE_MAX_FIELDS = 8 };

/* One tensor of a batch; the input node is made when the field is first read. */
typedef struct SourceField {
    const char *name;
    Type type;
    ValueId value;
} SourceField;

struct DataSource {
    const char *kind, *path; /* as in TrainSpec */
    int64_t batch, length;
    bool chars;
    int64_t size, resize; /* imagefolder, with what follows */
    bool augment;         /* audiofolder, too */
    double mean[3], std[3];
    int64_t rate;          /* audiofolder */
    const char *columns;   /* csv, npz and safetensors */
    const char *separator; /* csv, with what follows */
    bool no_header, in_order;
    SourceField fields[SOURCE_MAX_FIELDS];
    int n_fields;
    struct DataSource *const *part; /* zip: its sources, which have the fields */
    int n_parts;
    bool zipped; /* it is a part */
    Span span;
};

/* What one `minimize` says. */
typedef struct GoalSpec {
    TrainGoal goal;
    const UpdateRule *optim;
    ValueId loss; /* the last one */
    Span span, pattern_span;
} GoalSpec;

struct TrainState {
    VEC(DataSource *) sources;
    Scope *scope; /* of the section */
    Map read;     /* names that a line of it reads */
    VEC(GoalSpec) goals;
    bool minimizes; /* something is to be, if only in vain */
};

/* NULL after a message: outside train, or an empty batch. */
DataSource *source_new(BuiltinCall *c, const char *kind, int64_t batch);
/* One path or a list, '\n' between them; NULL after a message. */
const char *source_paths(BuiltinCall *c, int arg);
/* dims with the batch. */
void source_add_field(DataSource *s, const char *name, DType dtype, int rank, const int64_t *dims);
Val source_value(DataSource *s);
/* zip(...) of sources. */
Val source_zip(BuiltinCall *c);
/* The section's only source that is no part of another; NULL when there is none.  E211 for a second
 * one. */
const DataSource *source_of_section(Elab *l);
/* What the train section says of its source. */
void source_describe(Elab *l, const DataSource *s, TrainSpec *t);
/* E105 unless lo <= argument <= hi. */
bool arg_in_bounds(BuiltinCall *c, int arg, const char *name, double lo, double hi);
/* Of an argument: one pattern or a list of them, '\n' between; NULL after a message. */
const char *arg_patterns(BuiltinCall *c, int arg);
/* All parameters that there are so far. */
typedef struct Path {
    const char *text;
    int rank;
    ValueId value;
    Span span;
} Path;
typedef VEC(Path) Paths;
Paths elab_paths(Elab *l);
/* E203: no parameter is called so; `which`: " and has ...", or "".  Nothing where the model is not
 * whole. */
void report_no_path(Elab *l, Span span, const Paths *paths, const char *pattern, const char *which);
/* Sets t->goal from the calls of minimize, and t->rule from the first. */
void read_goals(Elab *l, TrainSpec *t);
/* Sets t->group from the key `groups`, a group or a list of them; the section's optimizer is known
 * and all parameters are made. */
void read_groups(Elab *l, const Binding *groups, TrainSpec *t);
/* Makes outputs, or formulas of totals, of the key `metrics`. */
void add_metrics(Elab *l, const Binding *metrics, const Body *body);
/* E211 unless v is one f32 number. */
bool want_scalar(Elab *l, Val v, Span span, const char *what);
/* Adds an output, unless there is one of that name. */
void add_output(Elab *l, const char *name, ValueId v);
/* W201 for names of the section that are like keys and that nothing reads, and for keys given
 * twice. */
void warn_of_keys(Elab *l, const Body *section);
/* E211 */
void report_no_batch(Elab *l);
/* E206 where muon would change a parameter that is no matrix. */
void check_muon(Elab *l, const TrainSpec *t, Span span);

#endif
