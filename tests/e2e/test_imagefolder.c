/* Training on a folder of pictures: what it sees depends on the seed alone, and what is damaged is
 * named. */
#include "kill_and_resume.h"

#include <png.h>

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

/* The first bytes are looked at before training, the rest when the picture's turn comes. */
static void test_damaged(void)
{
    Result r = run("f=$TMP/pictures/level/08.png; head -c 60 $f > $TMP/cut && mv $TMP/cut $f; "
                   "exec $SCRIMP train $TMP/m.scrimp --data $TMP/pictures -q --threads 2");
    EXPECT(r.code == 1 && strstr(r.err, "level/08.png"), r.err);
    result_free(&r);
    r = run("echo text > $TMP/pictures/level/08.png; "
            "exec $SCRIMP train $TMP/m.scrimp --data $TMP/pictures --out $TMP/none -q");
    EXPECT(r.code == 1 && strstr(r.err, "level/08.png: neither a JPEG nor a PNG"), r.err);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    write_case();
    test_same_bits();
    test_learns();
    test_damaged();
    return e2e_end();
}
