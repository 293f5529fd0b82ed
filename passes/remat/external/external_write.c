/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ExternalGraph -> scrimp.graph.1.  Keys that have their default value are left out. */
#include "ir/support/strbuf.h"
#include "passes/remat/external/external.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *refs_json(const ExternalRef *refs, int n)
{
    json_t *list = json_array();
    for (int k = 0; k < n; k++)
        json_array_append_new(
            list, json_pack("[I,I]", (json_int_t)refs[k].node, (json_int_t)refs[k].output));
    return list;
}

static json_t *output_json(const ExternalOutput *o)
{
    json_t *output = json_pack("{s:I}", "bytes", (json_int_t)o->bytes);
    if (o->keep)
        json_object_set_new(output, "keep", json_true());
    if (o->persistent)
        json_object_set_new(output, "persistent", json_true());
    return output;
}

static json_t *node_json(const ExternalNode *n)
{
    json_t *outputs = json_array(), *node = json_object();
    for (int k = 0; k < n->n_out; k++)
        json_array_append_new(outputs, output_json(&n->out[k]));
    if (n->name)
        json_object_set_new(node, "name", json_string(n->name));
    json_object_set_new(node, "time", json_real(n->time));
    json_object_set_new(node, "inputs", refs_json(n->in, n->n_in));
    json_object_set_new(node, "outputs", outputs);
    if (n->workspace)
        json_object_set_new(node, "workspace", json_integer(n->workspace));
    if (!n->rerun)
        json_object_set_new(node, "rerun", json_false());
    if (n->n_overwrites)
        json_object_set_new(node, "overwrites", refs_json(n->overwrites, n->n_overwrites));
    return node;
}

/* One node a line. */
const char *external_write(Pool *pool, const ExternalGraph *g)
{
    StrBuf out = strbuf_new(pool);
    strbuf_printf(&out, "{\"format\": \"scrimp.graph.1\", \"kind\": \"%s\", \"nodes\": [\n",
                  g->forward ? "forward" : "step");
    for (int n = 0; n < g->n_nodes; n++) {
        json_t *node = node_json(&g->node[n]);
        char *text = json_dumps(node, JSON_REAL_PRECISION(15));
        strbuf_printf(&out, "  %s%s\n", text, n + 1 < g->n_nodes ? "," : "");
        free(text);
        json_decref(node);
    }
    strbuf_printf(&out, "]}\n");
    return out.text;
}
