/* unix_sockets.h: lists the paths of unix sockets that accept connections. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct csn_unix_socket {
    const char *path;              /* as given to bind: may be relative or removed */
    bool known;                    /* the members below are valid */
    uint32_t ino;                  /* low 32 bits of the inode number */
    uint32_t dev_major, dev_minor; /* of its file system; st_dev may differ */
} csn_unix_socket;

/* Calls fn for each bound socket that can be connected to; stops when it returns non-zero.
 * Returns 0, or -errno when the kernel gives no list. */
int csn_unix_sockets_each(int (*fn)(void *ctx, const csn_unix_socket *name), void *ctx);
