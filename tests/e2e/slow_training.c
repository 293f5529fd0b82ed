/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Full trainings on real data: MNIST to 97.5%, tiny Shakespeare to 1.95.  $SCRIMP_DATA is a folder
 * with mnist/ (IDX) and tinyshakespeare.txt; skipped without it. */
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_trained(const char *command)
{
    Result r = run("%s", command);
    EXPECT(r.code == 0, r.err);
    printf("%s\n%s", command, strlen(r.err) > 400 ? r.err + strlen(r.err) - 400 : r.err);
    result_free(&r);
}

int main(void)
{
    if (!getenv("SCRIMP_DATA")) {
        fputs("set SCRIMP_DATA to a folder with mnist/ and tinyshakespeare.txt\n", stderr);
        return 77;
    }
    e2e_begin();
    expect_trained(
        "$SCRIMP train $EXAMPLES/convnet.scrimp --data $SCRIMP_DATA/mnist --out $TMP/convnet -q");
    json_t *o =
        run_json(0, "$SCRIMP eval $EXAMPLES/convnet.scrimp --data $SCRIMP_DATA/mnist --checkpoint "
                    "$TMP/convnet --json");
    EXPECT(json_get_number(o, "accuracy") >= 0.975, "convnet reaches 97.5%");
    json_decref(o);
    expect_trained("$SCRIMP train $EXAMPLES/chargpt.scrimp --data $SCRIMP_DATA/tinyshakespeare.txt "
                   "--out $TMP/gpt -q");
    o = run_json(0, "$SCRIMP eval $EXAMPLES/chargpt.scrimp --data $SCRIMP_DATA/tinyshakespeare.txt "
                    "--checkpoint "
                    "$TMP/gpt --json");
    EXPECT(json_get_number(o, "loss") <= 1.95, "chargpt reaches 1.95");
    json_decref(o);
    return e2e_end();
}
