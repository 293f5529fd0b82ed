/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --svg: the picture is XML, and its numbers are those of --json. */
#include "e2e.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 16, LONGEST_NAME = 32 };

typedef struct Xml {
    const char *at;
    char open[DEEPEST][LONGEST_NAME];
    int depth, roots;
} Xml;

static bool take(Xml *x, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(x->at, word, n) != 0)
        return false;
    x->at += n;
    return true;
}

static bool take_name(Xml *x, char name[LONGEST_NAME])
{
    int n = 0;
    while (n < LONGEST_NAME - 1 && (isalnum((unsigned char)*x->at) || *x->at == '-'))
        name[n++] = *x->at++;
    name[n] = '\0';
    return n > 0;
}

/* Characters up to `end`, entities among them. */
static bool take_characters(Xml *x, char end)
{
    for (; *x->at && *x->at != end; x->at++) {
        if (*x->at == '<' || (unsigned char)(*x->at) < (*x->at == '\n' ? '\n' : ' '))
            return false;
        if (*x->at == '&' && strncmp(x->at, "&amp;", 5) != 0 && strncmp(x->at, "&lt;", 4) != 0 &&
            strncmp(x->at, "&gt;", 4) != 0 && strncmp(x->at, "&quot;", 6) != 0)
            return false;
    }
    return *x->at == end;
}

static bool take_attributes(Xml *x)
{
    char name[LONGEST_NAME];
    while (take(x, " "))
        if (!take_name(x, name) || !take(x, "=\"") || !take_characters(x, '"') || !take(x, "\""))
            return false;
    return true;
}

static bool take_tag(Xml *x)
{
    char name[LONGEST_NAME];
    if (take(x, "</"))
        return take_name(x, name) && take(x, ">") && x->depth > 0 &&
               strcmp(x->open[--x->depth], name) == 0;
    if (!take(x, "<") || !take_name(x, name) || !take_attributes(x) || x->depth == DEEPEST)
        return false;
    x->roots += x->depth == 0;
    if (take(x, "/>"))
        return true;
    snprintf(x->open[x->depth++], LONGEST_NAME, "%s", name);
    return take(x, ">");
}

/* Well-formed, with one element around everything.  Pictures need no more of XML than this. */
static bool is_xml(const char *text)
{
    Xml x = {.at = text};
    while (*x.at)
        if (!take_tag(&x) || (!take_characters(&x, '<') && *x.at))
            return false;
    return x.depth == 0 && x.roots == 1;
}

static void test_reader(void)
{
    EXPECT(is_xml("<a b=\"1\">x &amp; y<c/></a>\n"), "the reader");
    EXPECT(!is_xml("<a>"), "the reader");
    EXPECT(!is_xml("<a></b>"), "the reader");
    EXPECT(!is_xml("<a>&</a>"), "the reader");
    EXPECT(!is_xml("<a>\001</a>"), "the reader");
    EXPECT(!is_xml("<a b=\"<\"/>"), "the reader");
    EXPECT(!is_xml("<a/><b/>"), "the reader");
}

/* data-bytes of the element of a class; -1 when there is none. */
static double bytes_of(const char *svg, const char *class)
{
    char text[80];
    snprintf(text, sizeof text, "class=\"%s\" data-bytes=\"", class);
    const char *at = strstr(svg, text);
    return at ? strtod(at + strlen(text), NULL) : -1;
}

typedef struct Rectangles {
    int n;
    long long lowest, highest; /* of the buffers beside the persistent tensors */
    long long last;            /* operation */
} Rectangles;

static Rectangles read_rectangles(const char *svg)
{
    Rectangles r = {.lowest = INT64_MAX};
    for (const char *at = svg; (at = strstr(at, "<title>"));) {
        const char *end = strstr(at, "</title>"), *colon = at;
        for (const char *c; (c = strstr(colon + 1, ": ")) && c < end;)
            colon = c; /* names may hold one */
        long long bytes, offset, first, last;
        if (sscanf(colon, ": %lld bytes at %lld, operations %lld to %lld", &bytes, &offset, &first,
                   &last) == 4) {
            r.n++;
            r.lowest = offset < r.lowest ? offset : r.lowest;
            r.highest = offset + bytes > r.highest ? offset + bytes : r.highest;
            r.last = last > r.last ? last : r.last;
            EXPECT(bytes > 0 && first <= last, colon);
        }
        at = end;
    }
    return r;
}

static void expect_numbers(const char *svg, const json_t *o, bool has_budget)
{
    Rectangles r = read_rectangles(svg);
    double kept = json_get_number(o, "keep_all_peak_bytes"),
           arena = json_get_number(o, "arena_bytes");
    EXPECT(bytes_of(svg, "kept") == kept, "keep_all_peak_bytes");
    EXPECT(bytes_of(svg, "planned") == json_get_number(o, "arena_lower_bound_bytes"), "load");
    EXPECT(bytes_of(svg, "peak") == bytes_of(svg, "planned"), "the mark of the peak");
    EXPECT(bytes_of(svg, "arena") == arena, "arena_bytes");
    EXPECT(bytes_of(svg, "budget") == (has_budget ? json_get_number(o, "budget_bytes") : -1),
           "budget_bytes");
    EXPECT((double)r.highest == arena, "the highest rectangle ends where the arena does");
    EXPECT((double)r.lowest == json_get_number(o, "persistent_bytes"), "the lowest rectangle");
    EXPECT(strstr(svg, ">forward</text>") && strstr(svg, ">backward</text>"), "both parts");
}

/* The same picture every time; its numbers. */
static void test_picture(const char *what, const char *budget)
{
    json_t *o = run_json(0, "$SCRIMP plan %s %s --json --svg $TMP/a.svg --threads 1", what, budget);
    json_decref(run_json(0, "$SCRIMP plan %s %s --json --svg $TMP/b.svg --no-cache", what, budget));
    char *a = read_text(in_tmp("a.svg"), NULL), *b = read_text(in_tmp("b.svg"), NULL);
    EXPECT(a && b && strcmp(a, b) == 0, what);
    EXPECT(a && is_xml(a), what);
    if (a)
        expect_numbers(a, o, *budget);
    json_decref(o);
    free(a);
    free(b);
}

static void test_models(void)
{
    test_picture("$EXAMPLES/chargpt.scrimp -D L=2", "--budget 60% --effort 0.1");
    test_picture("$EXAMPLES/chargpt.scrimp -D L=2", "");
    test_picture("$EXAMPLES/convnet.scrimp", "--budget 60% --effort 0.1"); /* masks */
    test_picture("$EXAMPLES/unet.scrimp -D width=8 -D size=188",
                 "--budget 60% --effort 0.1"); /* pieces inside of others */
}

/* Names that XML has no room for; a graph, which holds more kinds of nodes than a model. */
static void write_graph(const char *path)
{
    FILE *f = fopen(path, "wb");
    fputs(
        "{\"format\": \"scrimp.graph.1\", \"kind\": \"forward\", \"nodes\": [\n"
        " {\"name\": \"w\", \"time\": 0, \"inputs\": [], \"outputs\": [{\"bytes\": 400, "
        "\"persistent\": true}]},\n"
        " {\"name\": \"x\", \"time\": 0, \"inputs\": [], \"outputs\": [{\"bytes\": 1000}], "
        "\"rerun\": false},\n"
        " {\"name\": \"<&\\\"]]>\\u0001\\u007f: \\u00e9\", \"time\": 9, \"inputs\": [[1,0],[0,0]], "
        "\"outputs\": [{\"bytes\": 3000}], \"workspace\": 64},\n"
        " {\"time\": 1, \"inputs\": [[2,0]], \"outputs\": [{\"bytes\": 3000}]},\n"
        " {\"name\": \"loss\", \"time\": 1, \"inputs\": [[3,0]], \"outputs\": [{\"bytes\": 4, "
        "\"keep\": true}]}]}\n",
        f);
    fclose(f);
}

static void test_graph(void)
{
    write_graph(in_tmp("g<&.json"));
    test_picture("--graph \"$TMP/g<&.json\"", "--budget min");
    test_picture("--graph \"$TMP/g<&.json\"", "");
    Result r = run("$SCRIMP plan --graph \"$TMP/g<&.json\" --svg - < /dev/null");
    EXPECT(r.code == 0 && is_xml(r.out), r.out); /* and nothing else */
    EXPECT(strstr(r.out, ">&lt;&amp;&quot;]]&gt;??: \xc3\xa9: 3000 bytes at "), r.out);
    EXPECT(strstr(r.out, ">g&lt;&amp;.json</text>"), "the title");
    EXPECT(strstr(r.out, ">nodes[3]: 3000 bytes"), "a node without a name has its number");
    EXPECT(strstr(r.out, ">workspace of &lt;"), "a workspace");
    result_free(&r);
}

/* What is too much for a picture is left out, and that is said. */
static void test_large(void)
{
    enum { NODES = 6000, MOST_BYTES = 1 << 20 };
    FILE *f = fopen(in_tmp("large.json"), "wb");
    fputs("{\"format\": \"scrimp.graph.1\", \"kind\": \"step\", \"nodes\": [\n", f);
    for (int i = 0; i < NODES; i++) {
        char input[32] = "";
        if (i > 0)
            snprintf(input, sizeof input, "[%d,0]", i - 1);
        fprintf(f, "{\"time\": 1, \"inputs\": [%s], \"outputs\": [{\"bytes\": 64}]}%s\n", input,
                i + 1 < NODES ? "," : "]}");
    }
    fclose(f);
    json_t *o = run_json(0, "$SCRIMP plan --graph $TMP/large.json --json --svg $TMP/large.svg");
    char *svg = read_text(in_tmp("large.svg"), NULL);
    EXPECT(svg && is_xml(svg), "the picture of a large graph");
    EXPECT(svg && strlen(svg) < MOST_BYTES, "its size");
    EXPECT(svg && read_rectangles(svg).n == 2000, "rectangles");
    EXPECT(svg && strstr(svg, "the 4000 smallest buffers, "), "how many are left out");
    EXPECT(svg && strstr(svg, "a step of the curves is the most of 6"), "what the curves show");
    EXPECT(svg && bytes_of(svg, "planned") == json_get_number(o, "peak_bytes"), "the peak is kept");
    json_decref(o);
    free(svg);
}

/* The picture needs the step once more, with everything kept: its warnings do not come again. */
static void test_warnings(void)
{
    FILE *f = fopen(in_tmp("odd.scrimp"), "wb");
    fputs("model m(x: f32[8, 16]) { return x |> a: linear(4) }\n"
          "train {\n"
          "  batch = synthetic(x = f32[8, 16], y = f32[8, 1])\n"
          "  loss = mse(m(batch.x), batch.y)\n"
          "  optim = sgd(lr = 0.1)\n"
          "  steps = 5\n"
          "}\n",
          f);
    fclose(f);
    Result r = run("$SCRIMP plan $TMP/odd.scrimp --svg $TMP/odd.svg");
    const char *first = strstr(r.err, "W202");
    EXPECT(r.code == 0 && first && !strstr(first + 1, "W202"), r.err);
    result_free(&r);
}

static void expect_refused(const char *options, const char *part)
{
    Result r = run("$SCRIMP plan $EXAMPLES/mlp.scrimp %s", options);
    EXPECT(r.code == 1 && strstr(r.err, part), r.err);
    EXPECT(!*r.out, r.out);
    result_free(&r);
}

static void test_refusals(void)
{
    expect_refused("--svg $TMP/no.svg --compare", "E407");
    expect_refused("--svg $TMP/no.svg --sweep 3", "E407");
    expect_refused("--svg $TMP/no.svg --count kusumoto", "E407");
    expect_refused("--svg $TMP/no.svg --max-batch --budget 1GiB", "E407");
    expect_refused("--svg - --json", "E407");
    expect_refused("--svg - --arena-csv -", "E407");
    expect_refused("--svg ''", "its FILE.svg is empty");
    expect_refused("--svg $TMP/none/no.svg", "E411");
    Result r = run("$SCRIMP plan $EXAMPLES/mlp.scrimp --budget 1KiB --svg $TMP/no.svg");
    struct stat info;
    EXPECT(r.code == 3 && stat(in_tmp("no.svg"), &info) != 0, "no plan, no picture");
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    test_reader();
    test_models();
    test_graph();
    test_large();
    test_warnings();
    test_refusals();
    return e2e_end();
}
