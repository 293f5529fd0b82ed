/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Training on a folder of pictures: what it sees depends on the seed alone, and what is damaged is
 * named. */
#include "e2e.h"
#include "equal_runs.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char model[] =
    "model m(x: f32[4, 3, 16, 16]) {\n"
    "  x = x |> c1: conv(8, 3, pad = 1) |> relu() |> maxpool(2)\n"
    "  return x |> c2: conv(8, 3, pad = 1) |> relu() |> global_avgpool() |> flatten() |> fc: "
    "linear(2)\n"
    "}\n"
    "train {\n"
    "  batch    = imagefolder(\"pictures\", batch = 4, size = 16)\n"
    "  logits   = m(batch.image)\n"
    "  loss     = cross_entropy(logits, batch.label)\n"
    "  metrics  = accuracy(logits, batch.label)\n"
    "  optim    = sgd(lr = 0.05, momentum = 0.9)\n"
    "  steps    = 120\n"
    "  held_out = 6\n"
    "}\n";

/* Stripes: upright in one class, level in the other; of many sizes and colours. */
static void write_picture(int i)
{
    enum { MOST = 48 };
    unsigned char rgb[MOST * MOST * 3];
    char path[600];
    int width = 20 + i % 9 * 3, height = MOST - i % 7 * 4;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                rgb[(y * width + x) * 3 + c] =
                    (unsigned char)((i % 2 ? x : y) / 6 % 2 ? 255 : 8 * i + 20 * c);
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = PNG_FORMAT_RGB};
    snprintf(path, sizeof path, "%s/pictures/%s/%02d.png", e2e_tmp(), i % 2 ? "upright" : "level",
             i);
    EXPECT(png_image_write_to_file(&png, path, 0, rgb, 0, NULL), path);
}

static void write_case(void)
{
    char path[600];
    Result r = run("mkdir -p $TMP/pictures/upright $TMP/pictures/level");
    for (int i = 0; i < 26; i++)
        write_picture(i);
    snprintf(path, sizeof path, "%s/m.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    EXPECT(f && fputs(model, f) >= 0 && fclose(f) == 0, path);
    result_free(&r);
}

static void expect_trained(const char *options)
{
    Result r = run("$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q %s", options);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

/* Pictures are decoded ahead, by threads: neither that nor an interruption is seen. */
static void test_same_bits(void)
{
    expect_trained("--threads 1 --out $TMP/whole");
    expect_trained("--threads 2 --steps 7 --out $TMP/parts");
    expect_trained("--threads 2 --resume --out $TMP/parts");
    expect_equal_runs("whole", "parts");
    json_t *o = run_json(0, "$SCRIMP verify $TMP/m.scrimp --data $TMP/pictures --budget min "
                            "--steps 3 --threads 2 --json");
    EXPECT(json_is_true(json_object_get(o, "identical")), "verify");
    json_decref(o);
}

static void test_learns(void)
{
    json_t *o = run_json(0, "$SCRIMP eval $TMP/m.scrimp --data $TMP/pictures --checkpoint "
                            "$TMP/whole --json");
    EXPECT(json_get_number(o, "loss") < 0.35, "the loss of held-out pictures, 0.69 by guessing");
    json_decref(o);
}

static void damage(const char *picture)
{
    Result r = run("f=$TMP/pictures/%s; head -c 60 $f > $TMP/cut && mv $TMP/cut $f", picture);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* A damaged picture is named once and left out, and the run ends as it should. */
static void test_damaged(void)
{
    damage("level/08.png");
    Result r =
        run("$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --threads 2 --out $TMP/left");
    EXPECT(r.code == 0 && count(r.err, "warning: left out: level/08.png: ") == 1, r.err);
    result_free(&r);
    r = run("cmp $TMP/left/model.safetensors $TMP/whole/model.safetensors");
    EXPECT(r.code == 1, "the damaged picture changes nothing");
    result_free(&r);
}

/* Continued after the picture was deleted, or mended, the run has the bits of one that met it to
 * the end. */
static void test_resumed_without(void)
{
    static const char *const change[] = {
        "rm $TMP/pictures/level/08.png",
        "cp $TMP/pictures/level/06.png $TMP/pictures/level/08.png"};
    for (int i = 0; i < 2; i++) {
        Result r = run("rm -rf $TMP/cont; $SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q "
                       "--steps 60 --out $TMP/cont");
        EXPECT(r.code == 0 && strstr(r.err, "left out: level/08.png"), r.err);
        result_free(&r);
        r = run(
            "mv $TMP/pictures/level/08.png $TMP/cut; cp $TMP/cut $TMP/pictures/level/08.png; %s; "
            "$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --resume --out $TMP/cont",
            change[i]);
        EXPECT(r.code == 0 && strstr(r.err, "leaves out 1 file"), r.err);
        EXPECT(!strstr(r.err, "warning: left out"), r.err);
        result_free(&r);
        expect_equal_runs("left", "cont");
        r = run("mv $TMP/cut $TMP/pictures/level/08.png");
        result_free(&r);
    }
}

/* More than the limit ends the run, saved; what was found is known from then on. */
static void test_too_many(void)
{
    static const char *const more[] = {"level/02.png", "upright/05.png", "upright/11.png"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        damage(more[i]);
    Result r = run("$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --out $TMP/many");
    EXPECT(r.code == 1 && strstr(r.err, "more than 3 of 26 pictures cannot be read"), r.err);
    EXPECT(strstr(r.err, "saved after step") && count(r.err, "warning: left out: ") == 4, r.err);
    result_free(&r);
    r = run("rm $TMP/pictures/level/02.png; "
            "$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --resume --out $TMP/many");
    EXPECT(r.code == 0 && strstr(r.err, "leaves out 4 files"), r.err);
    result_free(&r);
}

/* Another number of pictures would be another order of all: refused, with a way out that works. */
static void test_deleted(void)
{
    Result r = run("$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --steps 5 --out $TMP/less; "
                   "rm $TMP/pictures/upright/01.png; "
                   "$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --resume --out $TMP/less");
    EXPECT(r.code == 1 && strstr(r.err, "E518") && strstr(r.err, "an empty file of the same name"),
           r.err);
    result_free(&r);
    r = run("touch $TMP/pictures/upright/01.png; "
            "$SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --resume --out $TMP/less");
    EXPECT(r.code == 0 && strstr(r.err, "left out: upright/01.png: neither a JPEG nor a PNG"),
           r.err);
    result_free(&r);
}

/* More than the limit that are no pictures by their first bytes: refused before the first step. */
static void test_no_pictures(void)
{
    Result r = run("for i in 06 10 12 14; do echo text > $TMP/pictures/level/$i.png; done; "
                   "exec $SCRIMP train $TMP/m.scrimp --data $TMP/pictures --out $TMP/none -q");
    EXPECT(r.code == 1 && strstr(r.err, ".png: neither a JPEG nor a PNG"), r.err);
    EXPECT(strstr(r.err, "at most 3 are left out") && !strstr(r.err, "saved"), r.err);
    result_free(&r);
}

/* 20 x 900,000 pixels are 54 MB, and what is made of them on the way is no more than that. */
static void test_tall(void)
{
    enum { WIDTH = 20, HEIGHT = 900000 };
    char path[600];
    Result r = run("mkdir -p $TMP/tall/a $TMP/tall/b");
    result_free(&r);
    unsigned char *grey = calloc(HEIGHT, WIDTH);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/tall/%c/%d.png", e2e_tmp(), i % 2 ? 'a' : 'b', i);
        memset(grey, 40 * i, (size_t)HEIGHT * WIDTH / 2);
        png_image png = {.version = PNG_IMAGE_VERSION,
                         .width = WIDTH,
                         .height = HEIGHT,
                         .format = PNG_FORMAT_GRAY};
        EXPECT(png_image_write_to_file(&png, path, 0, grey, 0, NULL), path);
    }
    free(grey);
    r = run("sed 's/size = 16/size = 224/; s/4, 3, 16, 16/4, 3, 224, 224/; s/held_out = 6//' "
            "$TMP/m.scrimp > $TMP/t.scrimp && "
            "exec $SCRIMP train $TMP/t.scrimp --data $TMP/tall -q --steps 2 --threads 1");
    char detail[200];
    snprintf(detail, sizeof detail, "%lld MB", (long long)r.max_resident / 1000000);
    EXPECT(r.code == 0, r.err);
    EXPECT(r.max_resident < 600000000, detail);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    write_case();
    test_same_bits();
    test_tall();
    test_learns();
    test_damaged();
    test_resumed_without();
    test_too_many();
    test_deleted();
    test_no_pictures();
    return e2e_end();
}
