/* fuzz_keeper_spec.c: orders for a keeper. What is accepted must be safe to act on: paths that
 * will be removed are absolute, below the root and without steps back; groups are ours. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_keeper_spec s;
    csn_packer o;

    if (csn_spec_get(data, size, NULL, &s) < 0)
        return 0;
    for (size_t i = 0; s.remove[i]; i++) {
        const char *p = s.remove[i];
        must(i < CSN_KEEPER_REMOVE_MAX && p[0] == '/' && strspn(p, "/") < strlen(p));
        for (const char *at = p; (at = strstr(at, "/..")) != NULL; at++)
            must(at[3] != '/' && at[3] != '\0');
    }
    for (size_t i = 0; s.groups[i]; i++) {
        const char *p = s.groups[i], *last = strrchr(p, '/');
        must(i < CSN_CGROUP_KINDS && p[0] == '/' && strlen(p) < CSN_CGROUP_PATH_MAX);
        must(strncmp(last + 1, CSN_CGROUP_PREFIX, strlen(CSN_CGROUP_PREFIX)) == 0);
        must(!strstr(p, "/../") && s.flags == CSN_SPEC_SWEEP && s.confinement.on == 0);
    }
    must(s.confinement.net.mode < CSN_GATEWAY_NET_MODES &&
         s.confinement.net.host_port_count <= CSN_GATEWAY_NET_HOST_PORTS_MAX);
    must(s.confinement.net.mode == CSN_GATEWAY_NET_NONE ||
         (s.confinement.on & CSN_CONFINE_BIT(CSN_CONFINE_NET)));
    for (uint32_t i = 0; i < s.confinement.net.host_port_count; i++)
        must(s.confinement.net.host_ports[i] != 0);
    must(!(s.flags & CSN_SPEC_GROUPED) ||
         (s.confinement.on != 0 && !(s.flags & CSN_SPEC_SWEEP)));
    must(s.id && strlen(s.id) <= CSN_SPEC_ID_MAX);
    must((s.tag_base & CSN_TAG_SEQ_MASK) == 0);
    csn_packer_init(&o, NULL, 0);
    csn_spec_put(&o, &s);
    must(o.error == 0 && o.len == size && memcmp(o.data, data, size) == 0);
    csn_packer_release(&o);
    csn_spec_release(&s);
    return 0;
}
