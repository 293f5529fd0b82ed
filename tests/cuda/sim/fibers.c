/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fibers.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 128 * 1024 };

typedef enum State { FRESH, WAITS, DONE } State;

/* A fiber is entered once with ucontext, from then on with setjmp, which makes no system call. */
typedef struct Fiber {
    char *stack;
    jmp_buf here;
    State state;
} Fiber;

static Fiber fiber[FIBERS_MOST];
static jmp_buf scheduler;
static ucontext_t start, entered;
static int running;
static void (*run_body)(void *user, int i);
static void *run_user;

static void finish(void)
{
    fiber[running].state = DONE;
    _longjmp(scheduler, 1);
}

static void entry(void)
{
    run_body(run_user, running);
    finish();
}

void fibers_barrier(void)
{
    Fiber *f = &fiber[running];
    f->state = WAITS;
    if (_setjmp(f->here) == 0)
        _longjmp(scheduler, 1);
}

static char *new_stack(void)
{
    char *s = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        perror("simulator: no stack for a thread");
        exit(2);
    }
    return s;
}

static void enter(Fiber *f)
{
    if (!f->stack)
        f->stack = new_stack();
    getcontext(&entered);
    entered.uc_stack.ss_sp = f->stack;
    entered.uc_stack.ss_size = STACK_BYTES;
    entered.uc_link = NULL;
    makecontext(&entered, entry, 0);
    swapcontext(&start, &entered);
}

/* Lets fiber i run to its next barrier or to its end. */
static void step(int i)
{
    Fiber *f = &fiber[i];
    running = i;
    if (_setjmp(scheduler) != 0)
        return;
    if (f->state == FRESH)
        enter(f);
    else
        _longjmp(f->here, 1);
}

bool fibers_run(int n, const int *order, void (*body)(void *user, int i), void *user)
{
    run_body = body;
    run_user = user;
    for (int i = 0; i < n; i++)
        fiber[i].state = FRESH;
    for (int done = 0; done < n;) {
        done = 0;
        for (int k = 0; k < n; k++) {
            if (fiber[order[k]].state != DONE)
                step(order[k]);
            done += fiber[order[k]].state == DONE;
        }
        if (done && done < n)
            return false;
    }
    return true;
}
