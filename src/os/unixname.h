/* unixname.h: by which names unix sockets of this network can be reached. */
#pragma once

/* Calls fn with each path that a socket is bound to and that somebody could connect to: as it
 * was given to bind, so it may be relative, and nothing may be there any more. Stops when fn
 * returns non-zero. 0 or -errno: nobody can tell. */
int csn_unix_names(int (*fn)(void *ctx, const char *path), void *ctx);
