/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/report/page_text.h"
#include "frontend/driver/report/report.h"
#include "ir/support/bug.h"

#include <string.h>

enum { N_FILES = sizeof page_names / sizeof *page_names };

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

/* All files of one kind, in the order of their names. */
static void put_files(StrBuf *out, const char *ending)
{
    for (int i = 0; i < N_FILES; i++)
        if (ends_with(page_names[i], ending))
            strbuf_put(out, page_texts[i]);
}

/* In a script element only "</" and "<!--" would be more than text. */
static void put_data(StrBuf *out, const char *data)
{
    strbuf_put(out, "<script type=\"application/json\" id=\"data\">");
    for (const char *less; (less = strchr(data, '<')); data = less + 1) {
        strbuf_putn(out, data, (size_t)(less - data));
        strbuf_put(out, "\\u003c");
    }
    strbuf_put(out, data);
    strbuf_put(out, "</script>\n");
}

static const char *page_html(void)
{
    for (int i = 0; i < N_FILES; i++)
        if (ends_with(page_names[i], ".html"))
            return page_texts[i];
    BUG("the page has no HTML");
}

/* Appends what stands before a marker, which has a line of its own; returns what stands behind. */
static const char *put_before(StrBuf *out, const char *html, const char *marker)
{
    const char *at = strstr(html, marker);
    if (!at)
        BUG("the page has no %s", marker);
    strbuf_putn(out, html, (size_t)(at - html));
    return at + strlen(marker);
}

void report_page(StrBuf *out, const char *data)
{
    const char *rest = put_before(out, page_html(), "<!--CSS-->");
    strbuf_put(out, "<style>\n");
    put_files(out, ".css");
    strbuf_put(out, "</style>");
    rest = put_before(out, rest, "<!--DATA-->");
    put_data(out, data);
    rest = put_before(out, rest, "<!--JS-->");
    strbuf_put(out, "<script>\n");
    put_files(out, ".js");
    strbuf_put(out, "</script>");
    strbuf_put(out, rest);
}
