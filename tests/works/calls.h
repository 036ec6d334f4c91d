/* calls.h: system calls as ordinary programs make them, one function for each kind of use.
 *
 * Linked into one program that tests/works/calls.sh runs inside a jail, a use at a time, in an
 * empty working directory. Each returns 0; what went wrong is printed, with the errno, so that
 * a failure says which wall answered. The same program works outside. */
#pragma once
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct use {
    const char *name;
    int (*run)(void);
} use;

/* The condition must hold. */
#define TRY(condition)                                                                         \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            printf("%s:%d: %s: %m\n", __FILE__, __LINE__, #condition);                         \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

/* Ended by an entry without a name. */
extern const use file_uses[], ipc_uses[], process_uses[];
