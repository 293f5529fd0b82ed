/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/plan_svg.h"

#include "ir/support/bug.h"
#include "ir/support/byte_size.h"
#include "runtime/vocab.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Everything is in these units, which a viewer scales. */
enum {
    WIDTH = 960,
    HEIGHT = 690,
    LEFT = 70,
    RIGHT = 944,
    CURVES_TOP = 98,
    CURVES_BOTTOM = 322,
    ARENA_TOP = 372,
    ARENA_BOTTOM = 622,
    ROOM_FOR_WORD = 60,
    MOST_TICKS = 6,
    MOST_NAME = 60 /* bytes */
};

/* Dark enough on the white ground, and told apart by people who see fewer colours. */
static const char KEPT_FILL[] = "#dcdcdc", KEPT_LINE[] = "#8a8a8a", PLAN_FILL[] = "#9ec9e8",
                  PLAN_LINE[] = "#0b5a8f", LIMIT_LINE[] = "#b3261e", PERSISTENT_FILL[] = "#c3c8ce",
                  INK[] = "#202124", FAINT[] = "#e6e6e6";
static const char *const kind_fill[N_BUFFER_KINDS] = {"#56b4e9", "#e69f00", "#009e73", "#777777"};
static const char *const kind_label[N_BUFFER_KINDS] = {"forward", "gradients and updates",
                                                       "recomputed", "workspace"};

typedef struct Svg {
    const PlanPicture *p;
    StrBuf *out;
    int n_ops;         /* of the wider curve: the width of both panels */
    int64_t kept_peak; /* of the curves */
    int64_t plan_peak;
    int plan_peak_at;
} Svg;

/* One panel's scale of bytes. */
typedef struct Panel {
    int top, bottom;
    int64_t most;
} Panel;

/* Text: XML knows no control characters and no broken UTF-8. */
static void put_text(StrBuf *out, const char *text, size_t most)
{
    const char *end = text + strlen(text), *stop = strlen(text) > most ? text + most : end;
    while (text < stop) {
        uint32_t code = 0;
        int n = utf8_decode((const unsigned char *)text, end - text, &code);
        const char *entity = code == '&'   ? "&amp;"
                             : code == '<' ? "&lt;"
                             : code == '>' ? "&gt;"
                             : code == '"' ? "&quot;"
                                           : NULL;
        if (n <= 0 || code < ' ' || code == 0x7f || code == 0xfffe || code == 0xffff)
            strbuf_put(out, "?");
        else if (entity)
            strbuf_put(out, entity);
        else
            strbuf_putn(out, text, (size_t)n);
        text += n > 0 ? n : 1;
    }
    if (stop < end)
        strbuf_put(out, "...");
}

static double x_of(const Svg *s, int64_t operation)
{
    return LEFT + (double)(RIGHT - LEFT) * (double)operation / s->n_ops;
}

static double y_of(const Panel *panel, int64_t bytes)
{
    return panel->bottom -
           (double)(panel->bottom - panel->top) * (double)bytes / (double)panel->most;
}

static double mebibytes(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* 1, 2 or 5 times a power of ten, so that at most MOST_TICKS of them reach `most`. */
static double tick_step(double most)
{
    double power = pow(10, floor(log10(most / MOST_TICKS)));
    for (int k = 0; k < 3; k++) {
        double step = power * (k == 0 ? 1 : k == 1 ? 2 : 5);
        if (most / step <= MOST_TICKS)
            return step;
    }
    return 10 * power;
}

static void put_label(const Svg *s, double x, double y, const char *anchor, const char *colour,
                      const char *text)
{
    strbuf_printf(s->out,
                  "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" stroke=\"#ffffff\" "
                  "stroke-width=\"3\" paint-order=\"stroke\">",
                  x, y, anchor, colour);
    put_text(s->out, text, SIZE_MAX);
    strbuf_put(s->out, "</text>\n");
}

/* Axes */

static void put_byte_axis(const Svg *s, const Panel *panel, const char *title)
{
    double most = mebibytes(panel->most), step = tick_step(most);
    int middle = (panel->top + panel->bottom) / 2;
    for (int k = 0; k * step <= most; k++) {
        double y = panel->bottom - (panel->bottom - panel->top) * k * step / most;
        strbuf_printf(s->out,
                      "<path d=\"M%d %.1fH%d\" stroke=\"%s\"/>"
                      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                      LEFT, y, RIGHT, FAINT, LEFT - 6, y + 4, k * step);
    }
    strbuf_printf(s->out,
                  "<text x=\"16\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 16 "
                  "%d)\">%s</text>\n",
                  middle, middle, title);
}

static void put_operation_axis(const Svg *s, const Panel *panel, const char *title)
{
    double step = fmax(1, tick_step(s->n_ops));
    for (int k = 0; k * step <= s->n_ops; k++)
        strbuf_printf(s->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                      x_of(s, (int64_t)(k * step)), panel->bottom + 16, k * step);
    strbuf_printf(s->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                  (LEFT + RIGHT) / 2, panel->bottom + 32, title);
}

/* Marks */

static void put_budget(const Svg *s, const Panel *panel)
{
    int64_t budget = s->p->budget_bytes;
    if (budget > panel->most)
        return;
    double y = y_of(panel, budget);
    strbuf_printf(s->out,
                  "<path class=\"budget\" data-bytes=\"%" PRId64 "\" d=\"M%d %.1fH%d\" "
                  "stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"7 4\"/>\n",
                  budget, LEFT, y, RIGHT, LIMIT_LINE);
    put_label(s, RIGHT - 4, y - 5, "end", LIMIT_LINE,
              pool_printf(s->out->pool, "budget %s", bytes_text(s->out->pool, budget)));
}

static void put_forward_end(const Svg *s, const Panel *panel)
{
    if (s->p->forward_end > 0)
        strbuf_printf(s->out,
                      "<path class=\"forward-end\" d=\"M%.1f %dV%d\" stroke=\"%s\" "
                      "stroke-dasharray=\"2 3\"/>\n",
                      x_of(s, s->p->forward_end), panel->top, panel->bottom, INK);
}

/* Above the panel; at its ends one of the two words would leave the picture. */
static void put_parts(const Svg *s, const Panel *panel)
{
    double x = x_of(s, s->p->forward_end);
    if (s->p->forward_end <= 0)
        return;
    if (x > LEFT + ROOM_FOR_WORD)
        put_label(s, x - 5, panel->top - 4, "end", INK, "forward");
    if (x < RIGHT - ROOM_FOR_WORD)
        put_label(s, x + 5, panel->top - 4, "start", INK, "backward");
}

static void put_peak(const Svg *s, const Panel *panel)
{
    double x = x_of(s, s->plan_peak_at) + (x_of(s, 1) - LEFT) / 2, y = y_of(panel, s->plan_peak);
    bool right = x > (LEFT + RIGHT) / 2.0;
    strbuf_printf(s->out,
                  "<circle class=\"peak\" data-bytes=\"%" PRId64
                  "\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n",
                  s->plan_peak, x, y, PLAN_LINE);
    put_label(s, right ? x - 8 : x + 8, y + 16, right ? "end" : "start", PLAN_LINE,
              pool_printf(s->out->pool, "peak %s", bytes_text(s->out->pool, s->plan_peak)));
}

/* Curves */

/* How many operations one step of the curve stands for. */
static int operations_a_step(const PictureLoad *load)
{
    return (load->n + PICTURE_MOST_STEPS - 1) / PICTURE_MOST_STEPS;
}

static int64_t most_of(const PictureLoad *load, int from, int to)
{
    int64_t most = 0;
    for (int i = from; i < to && i < load->n; i++)
        most = load->bytes[i] > most ? load->bytes[i] : most;
    return most;
}

static void put_curve(const Svg *s, const Panel *panel, const PictureLoad *load, const char *class,
                      const char *fill, const char *line)
{
    int step = operations_a_step(load);
    strbuf_printf(s->out, "<path class=\"%s\" data-bytes=\"%" PRId64 "\" d=\"M%d %d", class,
                  most_of(load, 0, load->n), LEFT, panel->bottom);
    for (int i = 0; i < load->n; i += step) {
        int end = i + step < load->n ? i + step : load->n;
        strbuf_printf(s->out, "V%.1fH%.1f", y_of(panel, most_of(load, i, end)), x_of(s, end));
    }
    strbuf_printf(s->out, "V%dZ\" fill=\"%s\" stroke=\"%s\"/>\n", panel->bottom, fill, line);
}

static void put_curves(const Svg *s)
{
    int64_t most = s->kept_peak > s->plan_peak ? s->kept_peak : s->plan_peak;
    Panel panel = {CURVES_TOP, CURVES_BOTTOM, most > 0 ? most : 1};
    put_byte_axis(s, &panel, "in memory, MiB");
    put_curve(s, &panel, &s->p->kept, "kept", KEPT_FILL, KEPT_LINE);
    put_curve(s, &panel, &s->p->planned, "planned", PLAN_FILL, PLAN_LINE);
    put_forward_end(s, &panel);
    put_parts(s, &panel);
    put_budget(s, &panel);
    put_peak(s, &panel);
    int step = operations_a_step(s->n_ops == s->p->kept.n ? &s->p->kept : &s->p->planned);
    put_operation_axis(
        s, &panel,
        step == 1 ? "operations"
                  : pool_printf(s->out->pool, "operations (a step of the curves is the most of %d)",
                                step));
}

/* The arena */

/* A thin one has no border, which would hide it. */
static void put_buffer(const Svg *s, const Panel *panel, const PictureBuffer *b)
{
    double x = x_of(s, b->first), y = y_of(panel, b->offset + b->bytes);
    double width = fmax(x_of(s, b->end) - x, 0.3), height = fmax(y_of(panel, b->offset) - y, 0.3);
    strbuf_printf(
        s->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"%s><title>",
        x, y, width, height, kind_fill[b->kind], width < 2 || height < 2 ? " stroke=\"none\"" : "");
    put_text(s->out, b->name, MOST_NAME);
    strbuf_printf(s->out,
                  ": %" PRId64 " bytes at %" PRId64 ", operations %" PRId64 " to %" PRId64
                  "</title></rect>\n",
                  b->bytes, b->offset, b->first, b->end - 1);
}

static void put_persistent(const Svg *s, const Panel *panel)
{
    double y = y_of(panel, s->p->persistent_bytes);
    strbuf_printf(s->out,
                  "<rect class=\"persistent\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                  "fill=\"%s\"><title>weights, optimizer state and statistics: %" PRId64
                  " bytes at 0</title></rect>\n",
                  LEFT, y, x_of(s, s->p->planned.n) - LEFT, panel->bottom - y, PERSISTENT_FILL,
                  s->p->persistent_bytes);
}

static double area(const PictureBuffer *b)
{
    return (double)b->bytes * (double)(b->end - b->first);
}

/* The largest first; buffers of one size in the order of the plan. */
static int by_area(const void *a, const void *b)
{
    const PictureBuffer *x = *(const PictureBuffer *const *)a,
                        *y = *(const PictureBuffer *const *)b;
    if (area(x) != area(y))
        return area(x) < area(y) ? 1 : -1;
    return (x > y) - (x < y);
}

/* Those that have bytes, the largest first; what is left out, in words. */
static const char *put_buffers(const Svg *s, const Panel *panel)
{
    const PictureBuffer **order =
        POOL_ARRAY(s->out->pool, (size_t)s->p->n_buffers + 1, const PictureBuffer *);
    int n = 0;
    double all = 0, drawn = 0;
    for (int i = 0; i < s->p->n_buffers; i++)
        if (s->p->buffer[i].bytes > 0) {
            order[n++] = &s->p->buffer[i];
            all += area(&s->p->buffer[i]);
        }
    qsort(order, (size_t)n, sizeof *order, by_area);
    for (int i = 0; i < n && i < PICTURE_MOST_BUFFERS; i++) {
        put_buffer(s, panel, order[i]);
        drawn += area(order[i]);
    }
    if (n <= PICTURE_MOST_BUFFERS)
        return "";
    return pool_printf(s->out->pool, "; the %d smallest buffers, %.1f%% of the area, are left out",
                       n - PICTURE_MOST_BUFFERS, 100 * (all - drawn) / all);
}

static void put_arena(const Svg *s)
{
    const PlanPicture *p = s->p;
    int64_t most = p->arena_bytes;
    if (p->budget_bytes != INT64_MAX && p->budget_bytes > most &&
        p->budget_bytes / 5 * 4 < most) /* one that is much larger would hide the arena */
        most = p->budget_bytes;
    Panel panel = {ARENA_TOP, ARENA_BOTTOM, most > 0 ? most : 1};
    put_byte_axis(s, &panel, "offset in the arena, MiB");
    put_persistent(s, &panel);
    strbuf_put(s->out, "<g stroke=\"#ffffff\" stroke-width=\"0.4\">\n");
    const char *left_out = put_buffers(s, &panel);
    strbuf_put(s->out, "</g>\n");
    strbuf_printf(s->out,
                  "<path class=\"arena\" data-bytes=\"%" PRId64 "\" d=\"M%d %.1fH%.1f\" "
                  "stroke=\"%s\" stroke-width=\"1.5\"/>\n",
                  p->arena_bytes, LEFT, y_of(&panel, p->arena_bytes), x_of(s, p->planned.n),
                  PLAN_LINE);
    put_label(s, LEFT + 6, y_of(&panel, p->arena_bytes) - 5, "start", PLAN_LINE,
              pool_printf(s->out->pool, "arena %s", bytes_text(s->out->pool, p->arena_bytes)));
    put_forward_end(s, &panel);
    put_budget(s, &panel);
    put_operation_axis(s, &panel, pool_printf(s->out->pool, "operations%s", left_out));
}

/* Headings */

/* A coloured square and its meaning; returns where the next one begins. */
static double put_key(const Svg *s, double x, double y, const char *fill, const char *text)
{
    strbuf_printf(s->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\" fill=\"%s\"/>"
                  "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                  x, y - 10, fill, x + 16, y, text);
    return x + 34 + 6.4 * (double)strlen(text);
}

static void put_heading(const Svg *s)
{
    const PlanPicture *p = s->p;
    Pool *pool = s->out->pool;
    strbuf_printf(s->out, "<text x=\"%d\" y=\"28\" font-size=\"17\" font-weight=\"bold\">", LEFT);
    put_text(s->out, p->title, 2 * MOST_NAME);
    strbuf_printf(s->out,
                  "</text>\n<text x=\"%d\" y=\"48\">Memory of one training step, and where each "
                  "buffer lies; the plan takes %.1f%% %s time</text>\n",
                  LEFT, fabs(p->overhead_percent), p->overhead_percent < 0 ? "less" : "more");
    double x = put_key(s, LEFT, 72, KEPT_FILL,
                       pool_printf(pool, "everything kept: %s at most, %d operations",
                                   bytes_text(pool, s->kept_peak), p->kept.n));
    put_key(s, x, 72, PLAN_FILL,
            pool_printf(pool, "as planned: %s at most, %d operations",
                        bytes_text(pool, s->plan_peak), p->planned.n));
}

static void put_keys(const Svg *s)
{
    double x = put_key(s, LEFT, HEIGHT - 14, PERSISTENT_FILL, "weights and state");
    bool seen[N_BUFFER_KINDS] = {false};
    for (int i = 0; i < s->p->n_buffers; i++)
        seen[s->p->buffer[i].kind] = true;
    for (int k = 0; k < N_BUFFER_KINDS; k++)
        if (seen[k])
            x = put_key(s, x, HEIGHT - 14, kind_fill[k], kind_label[k]);
}

static void find_peak(Svg *s)
{
    const PictureLoad *load = &s->p->planned;
    s->kept_peak = most_of(&s->p->kept, 0, s->p->kept.n);
    for (int i = 0; i < load->n; i++)
        if (load->bytes[i] > s->plan_peak) {
            s->plan_peak = load->bytes[i];
            s->plan_peak_at = i;
        }
}

void plan_svg_write(const PlanPicture *p, StrBuf *out)
{
    Svg s = {.p = p, .out = out, .n_ops = p->planned.n > p->kept.n ? p->planned.n : p->kept.n};
    if (s.n_ops < 1)
        BUG("a picture of no operations");
    find_peak(&s);
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                  "font-family=\"sans-serif\" font-size=\"12\" fill=\"%s\">\n"
                  "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                  WIDTH, HEIGHT, INK, WIDTH, HEIGHT);
    put_heading(&s);
    put_curves(&s);
    put_arena(&s);
    put_keys(&s);
    strbuf_put(out, "</svg>\n");
}
