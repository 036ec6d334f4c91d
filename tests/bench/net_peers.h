/* net_peers.h: other ways out of a network namespace, for bench_net to measure beside ours. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NET_WAYS_MAX 7
#define NET_NAME     "ok.test" /* what the server is called, for who goes by names */
#define NET_ASK_MAX  768
#define NET_INSIDE   "inside" /* how a program calls itself to run net_peers_inside() */

/* A way to the server. */
typedef struct net_way {
    const char *name;
    int ns; /* the network it starts from; -1: the server's own */
    char address[16];
    uint16_t port;
    uint16_t target; /* the address is that of a proxy: the port to ask it for; 0: it is not */
    bool tunnel;     /* the proxy is asked to CONNECT for requests too */
    char auth[512];  /* the line by which the proxy knows who asks; "": it does not want it */
    pid_t pid;       /* who carries it; 0: nobody, or another way's */
    int link;        /* it ends by itself when this is closed; 0: it is killed */
    char path[64];   /* a mount of its own, until it is forgotten; "": none */
} net_way;

/* Starts what is installed, each in a network of its own: slirp4netns, pasta, and srt, which is
 * $CSN_BENCH_SRT or on PATH and wants bwrap, socat and rg: with its two relays, as programs use
 * it for plain HTTP and by CONNECT, and its proxy without them. Says which are left out. How
 * many. */
size_t net_peers_start(net_way *ret, size_t max, int world, uint16_t port);
void net_peers_end(net_way *ways, size_t n);
/* What this program is inside srt: says where it is, and waits for the end. */
int net_peers_inside(void);

/* A connection that way; -1. A proxy is asked for a tunnel, or as yet for nothing. The caller
 * is back in `world`. */
int net_way_reach(const net_way *w, int world, bool tunnel);
/* A request as that way wants it: a proxy is told where to, as programs do for plain HTTP. */
size_t net_way_ask(const net_way *w, char ret[NET_ASK_MAX]);
/* Requests a second that wrk finds with so many connections; 0: there is no wrk, or it cannot
 * go that way. */
double net_way_wrk(const net_way *w, unsigned connections);
