/* netport.c: parse PORT and HOSTPORT:PORT. */
#include "policy/netport.h"

#include <string.h>

bool csn_port_parse(const char *text, size_t len, uint16_t *ret)
{
    uint32_t n = 0;

    if (len == 0 || len > 5 || text[0] == '0')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (uint32_t)(text[i] - '0');
    }
    if (n > UINT16_MAX)
        return false;
    *ret = (uint16_t)n;
    return true;
}

static bool fault(const char **why, const char *text)
{
    if (why)
        *why = text;
    return false;
}

bool csn_netport_parse(const char *text, bool may_choose, csn_netport *ret, const char **why)
{
    const char *colon = strchr(text, ':'), *inside = colon ? colon + 1 : text;
    csn_netport p = {.host = 0};

    if (!csn_port_parse(inside, strlen(inside), &p.inside))
        return fault(why, "expected PORT or HOSTPORT:PORT, each of 1 to 65535");
    if (!colon) {
        p.host = p.inside;
    } else if (strncmp(text, "0:", 2) == 0) {
        if (!may_choose)
            return fault(why, "there is no port 0 to be lent");
    } else if (!csn_port_parse(text, (size_t)(colon - text), &p.host)) {
        return fault(why, "expected PORT or HOSTPORT:PORT, each of 1 to 65535");
    }
    *ret = p;
    return true;
}
