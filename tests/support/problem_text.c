/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/problem_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(const char *what, const char *word)
{
    fprintf(stderr, "problem_text: %s: %s\n", what, word ? word : "the end");
    abort();
}

static int tensor_named(const RematProblem *p, const char *name)
{
    for (int t = 0; name && t < p->n_tensors; t++)
        if (strcmp(p->tensor[t].name, name) == 0)
            return t;
    refuse("no such tensor", name);
    return -1;
}

static int64_t number_in(const char *word)
{
    char *end;
    int64_t n = word ? strtoll(word, &end, 10) : 0;
    if (!word || *end)
        refuse("not a number", word);
    return n;
}

/* "NAME BYTES [persistent] [keep]" */
static int read_tensor(RematProblem *p, char *text, int producer)
{
    char *save, *name = strtok_r(text, " ", &save);
    RematTensor *t = &p->tensor[p->n_tensors];
    *t = (RematTensor){.name = name, .producer = producer};
    t->bytes = number_in(strtok_r(NULL, " ", &save));
    for (const char *word; (word = strtok_r(NULL, " ", &save));) {
        t->persistent |= strcmp(word, "persistent") == 0;
        t->keep |= strcmp(word, "keep") == 0;
        if (strcmp(word, "persistent") != 0 && strcmp(word, "keep") != 0)
            refuse("not of a tensor", word);
    }
    p->persistent_bytes += t->persistent ? t->bytes : 0;
    return p->n_tensors++;
}

static int input_of(const RematProblem *p, const RematNode *node, const char *name)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] == tensor_named(p, name))
            return i;
    refuse("not an input", name);
    return -1;
}

/* "time 3", "forward", ... */
static void read_word(RematProblem *p, RematNode *node, char *text)
{
    char *save, *word = strtok_r(text, " ", &save), *value = strtok_r(NULL, " ", &save);
    if (strcmp(word, "time") == 0)
        node->cost = (double)number_in(value);
    else if (strcmp(word, "workspace") == 0)
        node->workspace = number_in(value);
    else if (strcmp(word, "forward") == 0)
        node->forward = true;
    else if (strcmp(word, "once") == 0)
        node->rerun = false;
    else if (strcmp(word, "loss") == 0)
        p->loss_node = (int)(node - p->node);
    else if (strcmp(word, "over") == 0)
        node->in_place[node->n_in_place++] = (RematInPlace){0, input_of(p, node, value)};
    else if (strcmp(word, "overwrites") == 0)
        node->overwrites[node->n_overwrites++] = tensor_named(p, value);
    else
        refuse("not of a node", word);
}

/* Behind the arrow. */
static void read_node(RematProblem *p, char *made, char *read, char *words)
{
    RematNode *node = &p->node[p->n_nodes];
    size_t room = (size_t)p->n_tensors + 1;
    *node = (RematNode){.cost = 1, .rerun = true};
    node->in = POOL_ARRAY(p->pool, room, int);
    node->out = POOL_ARRAY(p->pool, strlen(made) + 1, int);
    node->in_place = POOL_ARRAY(p->pool, room, RematInPlace);
    node->overwrites = POOL_ARRAY(p->pool, room, int);
    char *save;
    for (char *word = strtok_r(read, " ", &save); word; word = strtok_r(NULL, " ", &save))
        node->in[node->n_in++] = tensor_named(p, word);
    for (char *one = strtok_r(made, ",", &save); one; one = strtok_r(NULL, ",", &save))
        node->out[node->n_out++] = read_tensor(p, one, p->n_nodes);
    node->name = p->tensor[node->out[0]].name;
    for (char *one = words ? strtok_r(words, ",", &save) : NULL; one;
         one = strtok_r(NULL, ",", &save))
        read_word(p, node, one);
    p->n_nodes++;
}

RematProblem *problem_text(Pool *pool, const char *text)
{
    RematProblem *p = POOL_NEW(pool, RematProblem);
    size_t most = strlen(text) + 1; /* of nodes and tensors */
    *p = (RematProblem){.pool = pool, .loss_node = -1};
    p->node = POOL_ARRAY(pool, most, RematNode);
    p->tensor = POOL_ARRAY(pool, most, RematTensor);
    char *save;
    for (char *line = strtok_r(pool_strdup(pool, text), "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *arrow = strstr(line, "<-"), *words = strchr(line, ':');
        if (words)
            *words++ = '\0';
        if (!arrow) {
            read_tensor(p, line, -1);
            continue;
        }
        *arrow = '\0';
        read_node(p, line, arrow + 2, words);
    }
    return p;
}
