/* socket_divert.h: a command whose internet sockets belong to another network namespace.
 *
 * A process cannot enter another network namespace without privileges that nothing in a jail
 * has, but a socket stays in the namespace it was made in. With seccomp user notification a
 * supervisor process in that namespace makes the sockets. Local sockets are not affected.
 * Static programs link this. */
#pragma once

/* Makes the process at the other end of `to`, a SEQPACKET pair, create all further internet
 * sockets of the caller and its children. For a child between vfork and exec with no_new_privs
 * set. Returns 0, or -errno: then the command must not run. */
int csn_socket_divert_install(int to);
/* Makes sockets in the caller's network namespace for the command at the other end of `from`.
 * Returns 0 when all copies of that end are closed, or -errno. */
int csn_socket_divert_serve(int from);
