/* netns.h: the network of a jail. Raw system calls: static programs link it. */
#pragma once
#include <stdint.h>

/* Makes one and enters it: loopback is up, 127.0.0.1 and ::1 work, nothing else is there. That
 * costs more than all other namespaces together, so a helper
 * process of the keeper makes it, and the keeper enters it later. A descriptor of it, or
 * -errno.
 */
int csn_netns_make(void);
int csn_netns_enter(int ns); /* 0 or -errno */
/* Does somebody listen on this port of 127.0.0.1 or ::1, in the caller's network? 0, or -errno
 * (-ECONNREFUSED: nobody). */
int csn_port_probe(uint16_t port);
