/* netport.h: port numbers as people write them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1..65535 in decimal, no sign, no leading zero, nothing around it. */
bool csn_port_parse(const char *text, size_t len, uint16_t *ret);

/* One entry of `publish` (a port inside, shown on the host's loopback) or of `host_ports` (a
 * port of the host's loopback, lent inward). */
typedef struct csn_netport {
    uint16_t host;   /* 0: any that is free */
    uint16_t inside; /* 1..65535 */
} csn_netport;

/* PORT (the same on both sides) or HOSTPORT:PORT. HOSTPORT 0, "any that is free", is for those
 * who bind it (publish): with may_choose false it is refused. *why (may be NULL) continues the
 * sentence "TEXT is no port: ..."; static. */
bool csn_netport_parse(const char *text, bool may_choose, csn_netport *ret, const char **why);
