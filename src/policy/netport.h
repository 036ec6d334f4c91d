/* netport.h: parse port numbers. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1..65535 in decimal, no sign, no leading zero, nothing around it. */
bool csn_port_parse(const char *text, size_t len, uint16_t *ret);

/* One entry of `publish` (a port inside, reachable on the host's loopback) or of `host_ports`
 * (a port of the host's loopback, reachable inside). */
typedef struct csn_netport {
    uint16_t host;   /* 0: any free one */
    uint16_t inside; /* 1..65535 */
} csn_netport;

/* PORT (the same on both sides) or HOSTPORT:PORT. HOSTPORT 0 (any free one) is accepted only
 * with may_choose. *why (may be NULL) completes "TEXT is no port: ..."; static. */
bool csn_netport_parse(const char *text, bool may_choose, csn_netport *ret, const char **why);
