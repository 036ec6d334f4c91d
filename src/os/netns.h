/* netns.h: the network of a jail. Raw system calls: static programs link it. */
#pragma once
#include <stdint.h>

/* A network namespace of its own costs more than all other namespaces together, so it is made
 * by a second process while the caller does something else. */
typedef struct csn_netns_work {
    int pid;   /* of the other; shares our memory and descriptors until it is done */
    int fd;    /* the namespace; -1: there is none */
    int error; /* why, errno */
} csn_netns_work;

/* Begins. *w must stay where it is until join. 0 or -errno. */
int csn_netns_begin(csn_netns_work *w);
/* Waits for it and enters it: loopback is up, 127.0.0.1 and ::1 work, nothing else is there.
 * Must follow begin, whatever came between. 0 or -errno. */
int csn_netns_join(csn_netns_work *w);
/* Does somebody listen on this port of 127.0.0.1 or ::1, in the caller's network? 0, or -errno
 * (-ECONNREFUSED: nobody). */
int csn_port_probe(uint16_t port);
