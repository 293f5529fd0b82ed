/* Our own mistakes: print and abort.  User mistakes go through diag.h, environment errors through
 * a status and a message. */
#ifndef SCRIMP_IR_SUPPORT_BUG_H
#define SCRIMP_IR_SUPPORT_BUG_H

#include <stdio.h>
#include <stdlib.h>

#define BUG(...)                                                                                   \
    do {                                                                                           \
        fprintf(stderr, "scrimp: internal error at %s:%d: ", __FILE__, __LINE__);                  \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputs("\nThis is a bug in scrimp; please report it with the model file.\n", stderr);       \
        abort();                                                                                   \
    } while (0)

#endif
