/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fibers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 128 * 1024 };

typedef enum State { READY, WAITS, DONE } State;

/* A fiber runs one body after the other: its stack is made once. */
typedef struct Fiber {
    char *stack;
    void *here; /* what fibers_switch goes on with; NULL: to be started */
    State state;
} Fiber;

static Fiber fiber[FIBERS_MOST];
static void *scheduler;
static int running;
static void (*run_body)(void *user, int i);
static void *run_user;

static void entry(void);

#ifdef __x86_64__
enum { KEPT_REGISTERS = 6 };

/* Keeps the registers that a function has to keep and the top of the stack in *from, and takes
 * those that `to` kept.  ucontext asks the kernel for the mask of signals, and longjmp the library
 * for its cleanups, at every switch. */
__attribute__((visibility("hidden"))) void fibers_switch(void **from, void *to);
__asm__(".text\n"
        ".globl fibers_switch\n"
        ".hidden fibers_switch\n"
        ".type fibers_switch, @function\n"
        "fibers_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\n"
        "ret\n"
        ".size fibers_switch, . - fibers_switch\n");

/* What fibers_switch leaves on a stack: the registers, where to return to, and a word, as if entry
 * had been called from there. */
static void *first_place(char *stack)
{
    void **top = (void **)(void *)(stack + STACK_BYTES) - KEPT_REGISTERS - 2;
    for (int i = 0; i < KEPT_REGISTERS + 2; i++)
        top[i] = NULL;
    *(void (**)(void)) & top[KEPT_REGISTERS] = entry;
    return top;
}
#else
/* The context that is left lies on its own stack. */
static void fibers_switch(void **from, void *to)
{
    ucontext_t here;
    *from = &here;
    swapcontext(&here, to);
}

/* A context at the far end of the stack, which it leaves free. */
static void *first_place(char *stack)
{
    ucontext_t *c = (ucontext_t *)(void *)stack;
    getcontext(c);
    c->uc_stack.ss_sp = stack + sizeof *c;
    c->uc_stack.ss_size = STACK_BYTES - sizeof *c;
    c->uc_link = NULL;
    makecontext(c, entry, 0);
    return c;
}
#endif

static void leave(State state)
{
    Fiber *f = &fiber[running];
    f->state = state;
    fibers_switch(&f->here, scheduler);
}

static void entry(void)
{
    for (;;) {
        run_body(run_user, running);
        leave(DONE);
    }
}

void fibers_barrier(void)
{
    leave(WAITS);
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

static void start(Fiber *f)
{
    if (!f->stack)
        f->stack = new_stack();
    f->here = first_place(f->stack);
}

/* Lets fiber i run to its next barrier or to its end. */
static void step(int i)
{
    Fiber *f = &fiber[i];
    running = i;
    if (!f->here)
        start(f);
    fibers_switch(&scheduler, f->here);
}

/* Those that wait in vain. */
static void give_up(int n)
{
    for (int i = 0; i < n; i++)
        if (fiber[i].state == WAITS)
            fiber[i].here = NULL;
}

bool fibers_run(int n, const int *order, void (*body)(void *user, int i), void *user)
{
    run_body = body;
    run_user = user;
    for (int i = 0; i < n; i++)
        fiber[i].state = READY;
    for (int done = 0; done < n;) {
        done = 0;
        for (int k = 0; k < n; k++) {
            step(order[k]);
            done += fiber[order[k]].state == DONE;
        }
        if (done && done < n) {
            give_up(n);
            return false;
        }
    }
    return true;
}
