/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model of a table: it learns, a run that is continued has the bits of one that was not
 * interrupted, and what was learned of the columns goes with the weights. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

static void write_model(const char *name, const char *file, const char *missing)
{
    char path[500];
    snprintf(path, sizeof path, "%s/%s", e2e_tmp(), name);
    FILE *f = fopen(path, "wb");
    EXPECT(f, path);
    fprintf(f,
            "model m(x: f32[8, 2], job: i32[8], town: f32[8, 2]) {\n"
            "  return concat([x, (job |> e: embedding(4, 4)), town], axis = 1)\n"
            "    |> f: linear(16) |> relu() |> g: linear(2)\n}\n"
            "train {\n"
            "  batch = csv(\"%s\", batch = 8, x = columns([\"age\", \"height\"], missing = mean),\n"
            "              job = columns(\"job\", as = category, missing = %s),\n"
            "              town = columns(\"town\", as = one_hot, classes = 2),\n"
            "              label = columns(\"label\", as = category))\n"
            "  loss = cross_entropy(m(batch.x, batch.job, batch.town), batch.label)\n"
            "  optim = adam(lr = 0.01)\n  held_out = 20%%\n  epochs = 5\n}\n",
            file, missing);
    fclose(f);
}

/* The label follows from age and job. */
static void write_table(const char *name, int rows, const char *extra)
{
    static const char *const jobs[] = {"nurse", "\"cook, head\"", "smith"};
    char path[500];
    snprintf(path, sizeof path, "%s/%s", e2e_tmp(), name);
    FILE *f = fopen(path, "wb");
    EXPECT(f, path);
    fprintf(f, "age,height,job,town,label\r\n");
    for (int i = 0; i < rows; i++) {
        int age = 20 + i * 37 % 50, job = i * 7 % 3;
        fprintf(f, "%d,%s,%s,%s,%s\r\n", age, i % 11 ? "171.5" : "", jobs[job],
                i * 5 % 4 < 2 ? "X" : "Y", age + 20 * job > 60 ? "yes" : "no");
    }
    fprintf(f, "%s", extra);
    fclose(f);
}

int main(void)
{
    e2e_begin();
    write_table("people.csv", 400, "");
    write_table("more.csv", 40, "30,160,pilot,X,no\r\n");
    write_table("damaged.csv", 40, "30,tall,smith,X,no\r\n");
    write_model("m.scrimp", "people.csv", "error");
    write_model("own.scrimp", "people.csv", "own");
    expect_there(0, "320 examples to train on, 80 held out", "$SCRIMP train m.scrimp --out whole");
    expect_there(0, "", "$SCRIMP train m.scrimp --out parts -q --steps 70");
    expect_there(0, "", "$SCRIMP train m.scrimp --out parts -q --resume");
    expect_there(0, "", "cmp whole/model.safetensors parts/model.safetensors");
    expect_there(0, "", "cmp whole/trainer.json parts/trainer.json");
    expect_there(0, "",
                 "$SCRIMP eval m.scrimp --checkpoint whole > loss && grep '^accuracy 0.9' loss");
    expect_there(0, "", "grep -q '\"cook, head\"' whole/trainer.json");
    expect_there(1, "damaged.csv: line 42, column height: 'tall' is no number",
                 "$SCRIMP train m.scrimp --data damaged.csv");
    expect_there(1,
                 "more.csv: line 42, column job: 'pilot' is no value that the model was trained on",
                 "$SCRIMP eval m.scrimp --checkpoint whole --data more.csv");
    expect_there(1, "field x was trained with column height where the model now has age",
                 "sed 's/height/age/' m.scrimp > other.scrimp && "
                 "$SCRIMP train other.scrimp --out parts --resume --data people.csv");
    expect_there(0, "",
                 "$SCRIMP train own.scrimp --out own -q && $SCRIMP eval own.scrimp "
                 "--checkpoint own --data more.csv");
    expect_there(
        1, "error[E505]: the data's job goes up to 3, the model has 3",
        "sed 's/embedding(4/embedding(3/' own.scrimp > few.scrimp && $SCRIMP train few.scrimp");
    return e2e_end();
}
