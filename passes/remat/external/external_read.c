/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scrimp.graph.1: JSON -> ExternalGraph.  Types and signs are looked at here, what refers to other
 * nodes in external_problem.c. */
#include "passes/remat/external/external.h"

#include <jansson.h>
#include <string.h>

enum { NAME_SHOWN = 60 };

typedef struct Reader {
    Pool *pool;
    RematError *error;
    int node, output; /* that are being read; -1 = none */
    const char *name;
} Reader;

static bool fail(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *what = pool_vprintf(r->pool, format, args);
    va_end(args);
    if (r->output >= 0)
        what = pool_printf(r->pool, "outputs[%d]: %s", r->output, what);
    if (r->node >= 0 && r->name)
        what = pool_printf(r->pool, "nodes[%d] '%s': %s", r->node, r->name, what);
    else if (r->node >= 0)
        what = pool_printf(r->pool, "nodes[%d]: %s", r->node, what);
    *r->error = (RematError){"E409", what, NULL};
    return false;
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction or exponent";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "nothing";
}

static bool wrong_type(Reader *r, const char *what, const char *wanted, const json_t *value)
{
    return value ? fail(r, "%s is %s and has to be %s", what, type_name(value), wanted)
                 : fail(r, "%s is missing", what);
}

/* Values.  An optional one that is absent leaves *out as it is. */

static bool read_size(Reader *r, const char *what, const json_t *value, int64_t *out)
{
    if (!json_is_integer(value))
        return wrong_type(r, what, "a whole number of bytes", value);
    *out = json_integer_value(value);
    return *out >= 0 || fail(r, "%s is negative (%lld)", what, (long long)*out);
}

static bool read_flag(Reader *r, const char *what, const json_t *value, bool *out)
{
    if (value && !json_is_boolean(value))
        return wrong_type(r, what, "true or false", value);
    *out = value ? json_is_true(value) : *out;
    return true;
}

static bool read_time(Reader *r, const json_t *value, double *out)
{
    if (!json_is_number(value))
        return wrong_type(r, "time", "a number", value);
    *out = json_number_value(value);
    return *out >= 0 || fail(r, "time is negative (%g)", *out);
}

/* A string on the pool that is fit to be printed: no control characters, not endless. */
static bool read_name(Reader *r, const char *what, const json_t *value, const char **out)
{
    if (value && !json_is_string(value))
        return wrong_type(r, what, "a string", value);
    if (!value)
        return true;
    size_t n = json_string_length(value);
    const char *text = json_string_value(value);
    if (n > NAME_SHOWN) /* not within a character */
        for (n = NAME_SHOWN; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
            ;
    char *copy = pool_strndup(r->pool, text, n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)copy[i] < ' ' || copy[i] == 0x7f)
            copy[i] = '?';
    *out = copy;
    return true;
}

static bool read_array(Reader *r, const char *what, const json_t *value, size_t *n)
{
    *n = value ? json_array_size(value) : 0;
    if (value && !json_is_array(value))
        return wrong_type(r, what, "an array", value);
    return *n <= INT32_MAX || fail(r, "%s has %zu entries", what, *n);
}

static bool read_refs(Reader *r, const char *what, const json_t *value, ExternalRef **out,
                      int *n_out)
{
    size_t n;
    if (!read_array(r, what, value, &n))
        return false;
    *out = POOL_ARRAY(r->pool, n + 1, ExternalRef);
    *n_out = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(value, i);
        const json_t *node = json_array_get(pair, 0), *output = json_array_get(pair, 1);
        if (json_array_size(pair) != 2 || !json_is_integer(node) || !json_is_integer(output))
            return fail(r, "%s[%zu] has to be [node, output], two whole numbers", what, i);
        (*out)[i] = (ExternalRef){json_integer_value(node), json_integer_value(output)};
    }
    return true;
}

static bool read_outputs(Reader *r, const json_t *value, ExternalNode *node)
{
    size_t n;
    if (!read_array(r, "outputs", value, &n))
        return false;
    node->out = POOL_ARRAY(r->pool, n + 1, ExternalOutput);
    node->n_out = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(value, i);
        r->output = (int)i;
        if (!json_is_object(o))
            return fail(r, "is %s and has to be an object", type_name(o));
        if (!read_size(r, "bytes", json_object_get(o, "bytes"), &node->out[i].bytes) ||
            !read_flag(r, "keep", json_object_get(o, "keep"), &node->out[i].keep) ||
            !read_flag(r, "persistent", json_object_get(o, "persistent"), &node->out[i].persistent))
            return false;
    }
    r->output = -1;
    return true;
}

static bool read_node(Reader *r, const json_t *value, ExternalNode *node)
{
    const char *op = NULL;
    if (!json_is_object(value))
        return fail(r, "is %s and has to be an object", type_name(value));
    *node = (ExternalNode){.rerun = true};
    if (!read_name(r, "name", json_object_get(value, "name"), &node->name))
        return false;
    r->name = node->name;
    const json_t *workspace = json_object_get(value, "workspace");
    return read_name(r, "op", json_object_get(value, "op"), &op) &&
           read_time(r, json_object_get(value, "time"), &node->time) &&
           (!workspace || read_size(r, "workspace", workspace, &node->workspace)) &&
           read_flag(r, "rerun", json_object_get(value, "rerun"), &node->rerun) &&
           read_refs(r, "inputs", json_object_get(value, "inputs"), &node->in, &node->n_in) &&
           read_refs(r, "overwrites", json_object_get(value, "overwrites"), &node->overwrites,
                     &node->n_overwrites) &&
           read_outputs(r, json_object_get(value, "outputs"), node);
}

static bool read_heading(Reader *r, const json_t *root, ExternalGraph *g)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const char *kind = json_string_value(json_object_get(root, "kind"));
    if (!json_is_object(root))
        return fail(r, "the file holds %s and has to hold an object", type_name(root));
    if (!format || strcmp(format, "scrimp.graph.1") != 0)
        return fail(r, "\"format\" has to be \"scrimp.graph.1\"");
    if (!kind || (strcmp(kind, "step") != 0 && strcmp(kind, "forward") != 0))
        return fail(r, "\"kind\" has to be \"step\" or \"forward\"");
    g->forward = strcmp(kind, "forward") == 0;
    return true;
}

static bool read_graph(Reader *r, const json_t *root, ExternalGraph *g)
{
    size_t n;
    const json_t *nodes = json_object_get(root, "nodes");
    if (!read_heading(r, root, g))
        return false;
    if (!nodes)
        return wrong_type(r, "\"nodes\"", "an array", nodes);
    if (!read_array(r, "\"nodes\"", nodes, &n))
        return false;
    g->node = POOL_ARRAY(r->pool, n + 1, ExternalNode);
    g->n_nodes = (int)n;
    for (size_t i = 0; i < n; i++) {
        r->node = (int)i;
        r->name = NULL;
        if (!read_node(r, json_array_get(nodes, i), &g->node[i]))
            return false;
    }
    return true;
}

/* Jansson's words, but for those about its own interface. */
static const char *fault_text(const json_error_t *fault)
{
    return strstr(fault->text, "JSON_ALLOW_NUL") ? "\\u0000 in a text is not allowed" : fault->text;
}

/* Behind a byte order mark. */
static const char *skip_mark(const char *text, size_t *length)
{
    bool marked = *length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
    *length -= marked ? 3 : 0;
    return marked ? text + 3 : text;
}

ExternalGraph *external_read(Pool *pool, const char *text, size_t length, RematError *error)
{
    json_error_t fault;
    text = skip_mark(text, &length);
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
    Reader r = {pool, error, -1, -1, NULL};
    ExternalGraph *g = POOL_NEW(pool, ExternalGraph);
    bool ok =
        root ? read_graph(&r, root, g)
             : fail(&r, "line %d, column %d: %s", fault.line, fault.column, fault_text(&fault));
    json_decref(root);
    return ok ? g : NULL;
}
