/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pictures for models that take bytes: those of the right size as they are, others their middle,
 * in colour or grey; what cannot be read is refused. */
#include "check.h"
#include "runtime/examples.h"
#include "tests/support/data/picture_case.h"
#include "tests/support/data/temp.h"

#include <string.h>
#include <sys/stat.h>

enum { SIZE = 8, TALL = 14 };

/* Of row r, column c and colour k. */
static unsigned char colour(int r, int c, int k)
{
    return (unsigned char)(r * 17 + c * 5 + k * 40);
}

static void write_picture(const char *name, int height)
{
    unsigned char rgb[TALL][SIZE][3];
    for (int r = 0; r < height; r++)
        for (int c = 0; c < SIZE; c++)
            for (int k = 0; k < 3; k++)
                rgb[r][c][k] = colour(r, c, k);
    write_png(name, SIZE, height, PNG_FORMAT_RGB, rgb[0][0]);
}

static Examples *open_all(const char *name, bool grey, int64_t n)
{
    RtError err = {{0}};
    Examples *x = examples_of_byte_pictures(temp_path(name), SIZE, grey, &err);
    CHECK_MSG(x && examples_count(x) == n, "%s", err.message);
    return x;
}

/* Row r of the picture is what stands in row r + first of the file. */
static void expect_colours(const unsigned char *u, int first)
{
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < SIZE; r++)
            for (int c = 0; c < SIZE; c++)
                CHECK_MSG(u[(k * SIZE + r) * SIZE + c] == colour(r + first, c, k), "%d %d %d", k, r,
                          c);
}

static void test_colours(void)
{
    unsigned char u[3 * SIZE * SIZE];
    Examples *x = open_all("p", false, 2);
    const DataField *f = examples_field(x);
    CHECK(f->dtype == RT_U8 && f->rank == 3 && f->dim[0] == 3 && f->dim[1] == SIZE);
    CHECK(f->min_id == -1 && f->max_id == -1);
    CHECK(examples_read(x, 0, u, NULL));
    expect_colours(u, 0);
    CHECK(examples_read(x, 1, u, NULL)); /* of a taller one the middle */
    expect_colours(u, (TALL - SIZE) / 2);
    examples_close(x);
}

static void test_grey(void)
{
    unsigned char u[SIZE * SIZE + 1];
    u[SIZE * SIZE] = 77;
    Examples *x = open_all("p", true, 2);
    CHECK(examples_field(x)->rank == 2 && examples_field(x)->dim[1] == SIZE);
    CHECK(examples_read(x, 0, u, NULL) && u[SIZE * SIZE] == 77);
    for (int r = 0; r < SIZE; r++)
        for (int c = 0; c < SIZE; c++) {
            double want =
                0.299 * colour(r, c, 0) + 0.587 * colour(r, c, 1) + 0.114 * colour(r, c, 2);
            double off = u[r * SIZE + c] - want;
            CHECK_MSG(off > -0.501 && off < 0.501, "%d %d: %d, not %g", r, c, u[r * SIZE + c],
                      want);
        }
    examples_close(x);
}

/* White stays white, however large: nothing is above 255. */
static void test_scaled(void)
{
    static unsigned char white[50][37][3];
    unsigned char u[SIZE * SIZE];
    memset(white, 255, sizeof white);
    write_png("white.png", 37, 50, PNG_FORMAT_RGB, white[0][0]);
    Examples *x = open_all("white.png", true, 1);
    CHECK(examples_read(x, 0, u, NULL));
    for (int i = 0; i < SIZE * SIZE; i++)
        CHECK_MSG(u[i] == 255, "%d", u[i]);
    examples_close(x);
}

static void test_refusals(void)
{
    unsigned char u[SIZE * SIZE];
    RtError err = {{0}};
    temp_write("bad.png", "<html>", 6);
    Examples *x = open_all("bad.png", true, 1);
    CHECK(!examples_read(x, 0, u, &err) && strstr(err.message, "bad.png: "));
    examples_close(x);
    CHECK(!examples_of_byte_pictures(temp_path("gone"), SIZE, true, &err) && err.message[0]);
    temp_write("x.txt", "x", 1);
    CHECK(!examples_of_byte_pictures(temp_path("x.txt"), SIZE, true, &err) &&
          strstr(err.message, "no .jpg, .jpeg or .png file"));
}

int main(void)
{
    temp_open();
    mkdir(temp_path("p"), 0777);
    write_picture("p/a.png", SIZE);
    write_picture("p/b.png", TALL);
    test_colours();
    test_grey();
    test_scaled();
    test_refusals();
    return test_result();
}
