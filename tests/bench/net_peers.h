/* net_peers.h: other ways out of a network namespace, for bench_net to measure beside ours. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NET_WAYS_MAX 6

/* A way to the server. */
typedef struct net_way {
    const char *name;
    int ns; /* the network it starts from; -1: the server's own */
    char address[16];
    uint16_t port;
    uint16_t target; /* the address is that of a proxy: the port to CONNECT to; 0: it is not */
    pid_t pid;       /* who carries it; 0: nobody */
    char path[64];   /* of its network, while it starts; "": none */
} net_way;

/* Starts what is installed, each in a network of its own: slirp4netns, pasta, and the proxy of
 * srt if $CSN_BENCH_SRT is the directory of that package. Says which are left out. How many. */
size_t net_peers_start(net_way *ret, size_t max, int world, uint16_t port);
void net_peers_end(const net_way *ways, size_t n);

/* A connection that way; -1. A proxy is asked for a tunnel, or as yet for nothing. The caller
 * is back in `world`. */
int net_way_reach(const net_way *w, int world, bool tunnel);
/* Requests a second that wrk finds with so many connections; 0: there is no wrk, or it cannot
 * go that way. */
double net_way_wrk(const net_way *w, unsigned connections);
