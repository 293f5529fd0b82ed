/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reader of the text form (docs/ir.md).  Trusts nothing: every number is checked, every name
 * resolved, every shape compared with the shape rules, and the finished graph verified. */
#include "ir/graph_internal.h"
#include "ir/print.h"
#include "ir/read_scan.h"
#include "ir/read_train.h"
#include "ir/strided_view.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <string.h>

enum { MAX_NESTING = 64, MAX_RESULTS = 4096, MAX_ATTRS = 16 };

typedef struct Reader {
    Scanner s;
    int depth;
} Reader;

/* A line under construction: what stands left of the operation, and right of the colon. */
typedef struct Line {
    VEC(const char *) names;
    VEC(Type) types;
    VEC(ValueId) writes;
    VEC(ValueId) inputs;
    Node node;
    size_t begin;
} Line;

static bool read_value(Reader *r, const Graph *g, ValueId *v)
{
    const char *name;
    if (!scan_value_name(&r->s, &name))
        return false;
    *v = graph_find(g, name);
    return *v != VALUE_NONE ||
           scan_fail(&r->s, r->s.token, "E704", "%s is not defined before this line", name);
}

static bool read_dims(Reader *r, Type *t)
{
    if (!scan_expect(&r->s, "["))
        return false;
    for (t->rank = 0; scan_peek(&r->s) != ']'; t->rank++) {
        if (t->rank == TYPE_MAX_RANK)
            return scan_fail(&r->s, r->s.at, "E707", "more than %d dims", TYPE_MAX_RANK);
        if ((t->rank && !scan_expect(&r->s, ",")) || !scan_int(&r->s, &t->dim[t->rank]))
            return false;
        if (t->dim[t->rank] <= 0)
            return scan_fail(&r->s, r->s.token, "E707", "a dim must be positive");
    }
    return scan_expect(&r->s, "]");
}

static bool read_type(Reader *r, Type *t)
{
    const char *word;
    *t = (Type){0};
    if (!scan_word(&r->s, &word))
        return false;
    size_t begin = r->s.token;
    if (!dtype_from_name(word, &t->dtype))
        return scan_fail(&r->s, begin, "E701", "'%s' is no element type", word);
    if (!read_dims(r, t))
        return false;
    return type_valid(t) || scan_fail(&r->s, begin, "E707", "this type is too large");
}

/* Attributes */

static bool read_attr_key(Reader *r, AttrKey *key)
{
    const char *word, *all[ATTR_COUNT];
    if (!scan_word(&r->s, &word))
        return false;
    if (attr_from_name(word, key))
        return true;
    for (int i = 0; i < ATTR_COUNT; i++)
        all[i] = attr_name((AttrKey)i);
    scan_fail(&r->s, r->s.token, "E703", "unknown attribute '%s'", word);
    scan_suggest(&r->s, word, all, ATTR_COUNT);
    return false;
}

typedef VEC(int64_t) Ints;
typedef VEC(double) Floats;
/* Appends one element to a list. */
typedef bool ReadElement(Scanner *s, void *list);

static bool read_int(Scanner *s, void *list)
{
    int64_t x;
    if (!scan_int(s, &x))
        return false;
    vec_push(s->pool, (Ints *)list, x);
    return true;
}

static bool read_float(Scanner *s, void *list)
{
    double x;
    if (!scan_double(s, &x))
        return false;
    vec_push(s->pool, (Floats *)list, x);
    return true;
}

static bool read_list(Reader *r, int most, ReadElement *read, void *list)
{
    if (!scan_expect(&r->s, "["))
        return false;
    for (int n = 0; scan_peek(&r->s) != ']'; n++) {
        if ((n && !scan_expect(&r->s, ",")) || !read(&r->s, list))
            return false;
        if (n == most)
            return scan_fail(&r->s, r->s.at, "E707", "more than %d elements", most);
    }
    return scan_expect(&r->s, "]");
}

static bool read_attr_value(Reader *r, AttrKey key, AttrList *list)
{
    int64_t i = 0;
    double f = 0;
    bool flag = false;
    const char *text = NULL;
    Ints ints = {0};
    Floats floats = {0};
    switch (attr_kind(key)) {
    case ATTR_KIND_INT:
        if (!scan_int(&r->s, &i))
            return false;
        attrs_int(list, key, i);
        return true;
    case ATTR_KIND_BOOL:
        if (!scan_bool(&r->s, &flag))
            return false;
        attrs_int(list, key, flag);
        return true;
    case ATTR_KIND_FLOAT:
        if (!scan_double(&r->s, &f))
            return false;
        attrs_float(list, key, f);
        return true;
    case ATTR_KIND_STRING:
        if (!scan_string(&r->s, &text))
            return false;
        attrs_string(list, key, text);
        return true;
    case ATTR_KIND_INTS:
        if (!read_list(r, MAX_RESULTS, read_int, &ints))
            return false;
        attrs_ints(list, key, ints.data, (int)ints.len);
        return true;
    case ATTR_KIND_FLOATS:
        if (!read_list(r, LITERAL_MAX_VALUES, read_float, &floats))
            return false;
        attrs_floats(list, key, floats.data, (int)floats.len);
        return true;
    }
    return false;
}

/* After the '{'. */
static bool read_attrs(Reader *r, Line *line)
{
    AttrList list = {.n = 0};
    bool seen[ATTR_COUNT] = {0}, first = true;
    while (!scan_take(&r->s, "}")) {
        AttrKey key;
        if ((!first && !scan_expect(&r->s, ",")) || !read_attr_key(r, &key))
            return false;
        if (seen[key])
            return scan_fail(&r->s, r->s.token, "E705", "attribute %s given twice", attr_name(key));
        if (list.n == MAX_ATTRS)
            return scan_fail(&r->s, r->s.token, "E707", "more than %d attributes", MAX_ATTRS);
        if (!scan_expect(&r->s, "=") || !read_attr_value(r, key, &list))
            return false;
        seen[key] = true;
        first = false;
    }
    line->node.attr = attrs_copy(r->s.pool, list.items, list.n);
    line->node.n_attr = list.n;
    return true;
}

/* Lines */

static bool read_lines(Reader *r, Graph *g);

static bool read_body(Reader *r, Line *line)
{
    if (++r->depth > MAX_NESTING)
        return scan_fail(&r->s, r->s.at, "E707", "nested more than %d deep", MAX_NESTING);
    line->node.body = graph_new(r->s.pool, "");
    line->node.body->kind = "body";
    bool good = read_lines(r, line->node.body);
    r->depth--;
    return good;
}

static bool read_names(Reader *r, const Graph *g, Line *line)
{
    do {
        const char *name;
        if (!scan_value_name(&r->s, &name))
            return false;
        bool taken = graph_find(g, name) != VALUE_NONE;
        for (size_t i = 0; i < line->names.len; i++)
            taken |= strcmp(line->names.data[i], name) == 0;
        if (taken)
            return scan_fail(&r->s, r->s.token, "E705", "%s is defined twice", name);
        if (line->names.len == MAX_RESULTS)
            return scan_fail(&r->s, r->s.token, "E707", "more than %d results", MAX_RESULTS);
        vec_push(r->s.pool, &line->names, name);
    } while (scan_take(&r->s, ","));
    return scan_expect(&r->s, "=");
}

static bool read_op(Reader *r, Line *line)
{
    const char *word, *all[OP_COUNT];
    if (!scan_word(&r->s, &word))
        return false;
    if (op_from_name(word, &line->node.op))
        return true;
    for (int i = 0; i < OP_COUNT; i++)
        all[i] = op_name((OpKind)i);
    scan_fail(&r->s, r->s.token, "E702", "unknown operation '%s'", word);
    scan_suggest(&r->s, word, all, OP_COUNT);
    return false;
}

static bool read_inputs(Reader *r, const Graph *g, Line *line)
{
    char next = scan_peek(&r->s);
    if (next != '%' && next != '$')
        return true;
    do {
        ValueId v;
        if (!read_value(r, g, &v))
            return false;
        vec_push(r->s.pool, &line->inputs, v);
    } while (scan_take(&r->s, ","));
    return true;
}

static bool read_types(Reader *r, const Graph *g, Line *line)
{
    if (!scan_expect(&r->s, ":"))
        return false;
    do {
        Type t;
        ValueId target = VALUE_NONE;
        if (!read_type(r, &t) || (scan_take(&r->s, "->") && !read_value(r, g, &target)))
            return false;
        if (r->s.failed)
            return false;
        vec_push(r->s.pool, &line->types, t);
        vec_push(r->s.pool, &line->writes, target);
    } while (scan_take(&r->s, ","));
    return true;
}

/* After "@remat" */
static bool read_remat(Reader *r, const Graph *g, Node *n)
{
    if (!scan_expect(&r->s, "("))
        return false;
    if (scan_take_word(&r->s, "of")) {
        ValueId v;
        if (!scan_expect(&r->s, "=") || !read_value(r, g, &v))
            return false;
        n->remat_of = graph_value(g, v)->def;
        if (!scan_take(&r->s, ","))
            return scan_expect(&r->s, ")");
    }
    if (!scan_take_word(&r->s, "by"))
        return scan_fail(&r->s, r->s.at, "E701", "expected by=NAME");
    return scan_expect(&r->s, "=") && scan_name(&r->s, &n->remat_by) && scan_expect(&r->s, ")");
}

static bool read_loc(Reader *r, Loc *loc)
{
    uint64_t line, column;
    const char *file = NULL;
    if (scan_peek(&r->s) == '"' && !scan_string(&r->s, &file))
        return false;
    if (!scan_uint(&r->s, &line, 10) || !scan_expect(&r->s, ":") || !scan_uint(&r->s, &column, 10))
        return false;
    if (line > UINT32_MAX || column > UINT32_MAX)
        return scan_fail(&r->s, r->s.token, "E707", "a position past 32 bits");
    *loc = (Loc){(uint32_t)line, (uint32_t)column, NULL, file};
    return !scan_take_word(&r->s, "in") || scan_name(&r->s, &loc->path);
}

static bool read_trailer(Reader *r, const Graph *g, Node *n)
{
    if (scan_take(&r->s, "@keep"))
        n->hint = REMAT_KEEP;
    else if (scan_take(&r->s, "@recompute"))
        n->hint = REMAT_RECOMPUTE;
    if (scan_take(&r->s, "@remat") && !read_remat(r, g, n))
        return false;
    if (scan_take_word(&r->s, "loc") && !read_loc(r, &n->loc))
        return false;
    return !r->s.failed;
}

/* The shape rule must agree with what the line declares; a source is what it declares. */
static bool check_line(Reader *r, const Graph *g, const Line *line)
{
    const Node *n = &line->node;
    Type *types = POOL_ARRAY(r->s.pool, (size_t)node_max_results(n), Type);
    ShapeError err;
    int n_out = 1;
    if (line->names.len != line->types.len)
        return scan_fail(&r->s, line->begin, "E706", "%zu names but %zu types", line->names.len,
                         line->types.len);
    if (node_is_source(n))
        return (n->n_in == 0 && line->names.len == 1) ||
               scan_fail(&r->s, line->begin, "E706", "%s has no inputs and one result",
                         op_name(n->op));
    if (!node_infer(g, n, types, &n_out, &err)) {
        scan_fail(&r->s, line->begin, err.code, "%s", err.message);
        if (err.help[0])
            diag_help(r->s.diag, "%s", err.help);
        return false;
    }
    if ((size_t)n_out != line->types.len)
        return scan_fail(&r->s, line->begin, "E706", "%s makes %d results, not %zu", op_name(n->op),
                         n_out, line->types.len);
    for (int i = 0; i < n_out; i++)
        if (!type_equal(&types[i], &line->types.data[i]))
            return scan_fail(&r->s, line->begin, "E706", "%s makes %s, not %s", op_name(n->op),
                             type_text(r->s.pool, &types[i]),
                             type_text(r->s.pool, &line->types.data[i]));
    return true;
}

static bool read_braces(Reader *r, Line *line)
{
    if (!scan_take(&r->s, "{"))
        return !r->s.failed;
    if (line->node.op == OP_loop) /* attributes, then the body */
        return read_attrs(r, line) && scan_expect(&r->s, "{") && read_body(r, line);
    return line->node.op == OP_fused ? read_body(r, line) : read_attrs(r, line);
}

static bool read_node(Reader *r, Graph *g)
{
    Line line = {.node = {.remat_of = NODE_NONE}};
    scan_peek(&r->s);
    line.begin = r->s.at;
    if (!read_names(r, g, &line) || !read_op(r, &line) || !read_inputs(r, g, &line))
        return false;
    line.node.in = line.inputs.data;
    line.node.n_in = (int)line.inputs.len;
    if (!read_braces(r, &line) || !read_types(r, g, &line) || !read_trailer(r, g, &line.node) ||
        !check_line(r, g, &line))
        return false;
    int n_out = (int)line.names.len;
    NodeId id = graph_append(g, &line.node, line.types.data, line.names.data, n_out);
    for (int i = 0; i < n_out; i++)
        graph_value(g, graph_node(g, id)->out[i])->writes = line.writes.data[i];
    concat_note_parts(g, id);
    return true;
}

static bool read_output(Reader *r, Graph *g)
{
    const char *name;
    ValueId v;
    if (!scan_name(&r->s, &name))
        return false;
    if (graph_output(g, name) != VALUE_NONE)
        return scan_fail(&r->s, r->s.token, "E705", "output %s is defined twice", name);
    if (g->outputs.len == MAX_RESULTS)
        return scan_fail(&r->s, r->s.token, "E707", "more than %d outputs", MAX_RESULTS);
    if (!scan_expect(&r->s, "=") || !read_value(r, g, &v))
        return false;
    graph_add_output(g, name, v);
    return true;
}

static bool read_train_section(Reader *r, Graph *g)
{
    if (g->train.present || r->depth)
        return scan_fail(&r->s, r->s.token, "E705", "one train section, outside of fused groups");
    return read_train(&r->s, &g->train);
}

/* Up to and with the closing brace. */
static bool read_lines(Reader *r, Graph *g)
{
    while (!scan_take(&r->s, "}")) {
        bool good;
        if (scan_take_word(&r->s, "output"))
            good = read_output(r, g);
        else if (scan_take_word(&r->s, "train"))
            good = read_train_section(r, g);
        else
            good = read_node(r, g);
        if (!good)
            return false;
    }
    return true;
}

static bool read_header(Reader *r, Graph *g)
{
    int64_t version;
    if (!scan_take(&r->s, "scrimp.ir"))
        return scan_fail(&r->s, r->s.at, "E701", "not IR text: it begins with 'scrimp.ir 1'");
    if (!scan_int(&r->s, &version))
        return false;
    if (version != IR_TEXT_VERSION)
        return scan_fail(&r->s, r->s.token, "E701", "format version %lld, this program reads %d",
                         (long long)version, IR_TEXT_VERSION);
    if (scan_take_word(&r->s, "src") &&
        (!scan_expect(&r->s, "=") || !scan_string(&r->s, &g->source)))
        return false;
    if (scan_take_word(&r->s, "hash") &&
        (!scan_expect(&r->s, "=") || !scan_uint(&r->s, &g->source_hash, 16)))
        return false;
    return !scan_take_word(&r->s, "opts") || scan_rest_of_line(&r->s, &g->options);
}

/* A memory plan may follow in a dump; it is made anew, so only its extent matters. */
static bool skip_plan(Reader *r)
{
    if (!scan_take_word(&r->s, "plan"))
        return true;
    while (!scan_take(&r->s, "}")) {
        const char *ignored;
        if (scan_at_end(&r->s))
            return scan_fail(&r->s, r->s.at, "E701", "the plan section does not end");
        if (scan_peek(&r->s) != '"')
            r->s.at++;
        else if (!scan_string(&r->s, &ignored))
            return false;
    }
    return true;
}

static bool read_graph(Reader *r, Graph *g)
{
    const char *fault;
    if (!read_header(r, g) || !scan_name(&r->s, &g->kind) || !scan_expect(&r->s, "@"))
        return false;
    size_t begin = r->s.token;
    if (!scan_name(&r->s, &g->name) || !scan_expect(&r->s, "{") || !read_lines(r, g) ||
        !skip_plan(r))
        return false;
    if (!scan_at_end(&r->s))
        return scan_fail(&r->s, r->s.at, "E701", "text after the end of the graph");
    r->s.at = begin + 1;
    return graph_verify(g, &fault) || scan_fail(&r->s, begin, "E708", "%s", fault);
}

Graph *graph_read(Pool *pool, const char *file_name, const char *text, size_t length, Diag *diag)
{
    Reader r = {.s = {.pool = pool, .diag = diag, .text = text, .length = length}};
    if (length >= UINT32_MAX) {
        diag_error(diag, (Span){0}, "E707", "%s: text of 4 GiB or more", file_name);
        return NULL;
    }
    r.s.file = diag_add_source(diag, file_name, text, length);
    Graph *g = graph_new(pool, "");
    return read_graph(&r, g) ? g : NULL;
}
