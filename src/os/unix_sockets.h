/* unix_sockets.h: by which names unix sockets of this network can be reached. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct csn_unix_name {
    const char *path; /* as it was given to bind: may be relative, and not be there any more */
    bool known;       /* which file it is, under whatever name, is known: */
    uint32_t ino;     /* the low half of its number */
    uint32_t dev_major,
        dev_minor; /* of its file system; stat may call that by another number */
} csn_unix_name;

/* Calls fn with each path that a socket is bound to and that somebody could connect to. Stops
 * when fn returns non-zero. 0 or -errno: nobody can tell. */
int csn_unix_names(int (*fn)(void *ctx, const csn_unix_name *name), void *ctx);
