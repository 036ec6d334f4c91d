/* socket_divert.h: a command whose internet sockets are made by another process, in another
 * network. Raw system calls: static programs link it.
 *
 * A program cannot enter another network without rights that nothing in a jail has. But a
 * socket belongs to the network it was made in, whoever holds it. So the kernel is told to ask
 * somebody else whenever the command, or anything it starts, makes one: seccomp's user
 * notification. The answer is a socket of the other's network. Local sockets are not touched.
 */
#pragma once

/* From now on the caller and all it starts have their sockets made by who reads `to`, for good.
 * `to` is one end of a SEQPACKET pair. For a child between vfork and exec, with no_new_privs
 * set. 0 or -errno; then it must not run. */
int csn_sockets_divert(int to);
/* Makes the sockets, in the caller's network, for one command that diverts to the other end of
 * `from`. Until that end is closed by all: 0. -errno. Without it the command's calls fail. */
int csn_sockets_serve(int from);
