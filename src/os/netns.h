/* netns.h: the network namespace of a jail. Static programs link this. */
#pragma once
#include <stdint.h>

/* Makes a network namespace and enters it: 127.0.0.1 and ::1 are up. This costs more than all
 * other namespaces together, so a helper process of the keeper makes it, and the keeper
 * enters it later. Returns a descriptor of it, or -errno. */
int csn_netns_make(void);
int csn_netns_enter(int ns); /* 0 or -errno */
/* How often the kernel had no route for a packet in the caller's network; 0 if that is not
 * known. proc: a directory of /proc. */
uint64_t csn_netns_unrouted(int proc);
/* Does a process listen on this port of 127.0.0.1 or ::1 in the caller's network? Returns 0, or
 * -errno (-ECONNREFUSED: none does). */
int csn_port_probe(uint16_t port);
