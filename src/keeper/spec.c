/* spec.c: encodes and decodes the spec of a keeper.
 *
 * The library writes it; the keeper reads it once, before it does anything else. A spec of
 * another version is refused: library and keeper are installed together. An attacker does not
 * control it while the library is sound. The decoder checks it nevertheless and is fuzzed
 * (fuzz_keeper_spec), because the keeper removes the paths and kills the groups it lists. */
#include "keeper/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

uint64_t csn_spec_tag_base(const char *id)
{
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a, then a finaliser for the high bits */

    for (const unsigned char *p = (const unsigned char *)id; *p; p++)
        h = (h ^ *p) * 0x100000001b3ull;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    return CSN_TAG_MARK | (h & (CSN_TAG_MARK - 1) & ~CSN_TAG_SEQ_MASK);
}

/* ---- fields and their checks ---- */

static const csn_field spec_fields[] = {
    CSN_FIELD(csn_keeper_spec, FLAGS, flags, 0, CSN_SPEC_ALL),
    CSN_FIELD(csn_keeper_spec, U64, lifetime_ms, 0, UINT64_MAX),
    CSN_FIELD(csn_keeper_spec, U64, record_check_ms, 0, UINT64_MAX),
    CSN_FIELD(csn_keeper_spec, U64, tag_base, CSN_TAG_MARK, 2 * CSN_TAG_MARK - 1),
    CSN_FIELD(csn_keeper_spec, TEXT, id, 0, CSN_SPEC_ID_MAX),
    CSN_FIELD(csn_keeper_spec, OPTIONAL_TEXT, socket, 0, CSN_PATH_MAX),
    CSN_FIELD(csn_keeper_spec, OPTIONAL_TEXT, layers, 0, CSN_PATH_MAX),
    {0}};

static const csn_field confinement_fields[] = {
    CSN_FIELD(csn_confinement, U32, uid, 0, UINT32_MAX),
    CSN_FIELD(csn_confinement, U32, gid, 0, UINT32_MAX),
    CSN_FIELD(csn_confinement, U32, seccomp, 0, UINT32_MAX),
    CSN_FIELD(csn_confinement, U32, given, 0, CSN_SPEC_GIVEN_MAX),
    CSN_FIELD(csn_confinement, U32, no_tcp, 0, UINT32_MAX),
    CSN_FIELD(csn_confinement, U32, guard, 0, 1),
    CSN_FIELD(csn_confinement, U32, pid_max, 0, INT32_MAX),
    CSN_FIELD(csn_confinement, U32, nested, 0, 1),
    CSN_FIELD(csn_confinement, U64, pids_max, 0, UINT64_MAX),
    CSN_FIELD(csn_confinement, U64, nofile_max, 0, UINT64_MAX),
    CSN_FIELD(csn_confinement, U64, data_max, 0, UINT64_MAX),
    CSN_FIELD(csn_confinement, U64, memory_max, 0, UINT64_MAX),
    CSN_FIELD(csn_confinement, U64, disk_max, 0, UINT64_MAX),
    CSN_FIELD(csn_confinement, U64, disk_files, 0, UINT64_MAX),
    CSN_FIELD(csn_confinement, OPTIONAL_TEXT, disk_dir, 0, CSN_PATH_MAX),
    {0}};

static const csn_field mount_fields[] = {
    CSN_FIELD(csn_mount, U32, kind, 1, CSN_MOUNT_KINDS),
    CSN_FIELD(csn_mount, FLAGS, flags, 0, CSN_MOUNT_ALL),
    CSN_FIELD(csn_mount, U32, access, 0, UINT32_MAX),
    CSN_FIELD(csn_mount, U32, fd, 0, UINT32_MAX),
    CSN_FIELD(csn_mount, OPTIONAL_TEXT, from, 0, CSN_SPEC_TEXT_MAX),
    CSN_FIELD(csn_mount, TEXT, to, 0, CSN_PATH_MAX),
    {0}};

static void put_net(csn_packer *o, const csn_gateway_net_order *n)
{
    csn_put_u32(o, n->mode);
    if (n->mode == CSN_GATEWAY_NET_NONE)
        return;
    csn_put_u32(o, n->proxy_port);
    csn_put_u32(o, n->host_port_count);
    for (uint32_t i = 0; i < n->host_port_count && i < CSN_GATEWAY_NET_HOST_PORTS_MAX; i++)
        csn_put_u32(o, n->host_ports[i]);
}

static void put_confinement(csn_packer *o, const csn_confinement *c)
{
    csn_put_u32(o, c->on);
    if (c->on == 0)
        return;
    csn_put_fields(o, confinement_fields, c);
    put_net(o, &c->net);
    csn_put_u64(o, c->mounts.size);
    csn_put_u64(o, c->mounts.inodes);
    csn_put_u32(o, (uint32_t)c->mounts.count);
    for (size_t i = 0; i < c->mounts.count; i++)
        csn_put_fields(o, mount_fields, &c->mounts.list[i]);
}

static void put_list(csn_packer *o, const char *const *list, uint32_t max)
{
    uint32_t n = 0;

    while (n < max && list[n])
        n++;
    csn_put_u32(o, n);
    for (uint32_t i = 0; i < n; i++)
        csn_put_str(o, list[i]);
}

void csn_spec_put(csn_packer *o, const csn_keeper_spec *spec)
{
    csn_put_u32(o, CSN_SPEC_MAGIC);
    csn_put_u32(o, CSN_SPEC_VERSION);
    csn_put_fields(o, spec_fields, spec);
    put_list(o, spec->remove, CSN_KEEPER_REMOVE_MAX);
    put_list(o, spec->groups, CSN_CGROUP_KINDS);
    if (spec->flags & CSN_SPEC_TAGGED) {
        csn_put_u32(o, spec->user);
        csn_put_u32(o, spec->tags_as);
    }
    put_confinement(o, &spec->confinement);
}

/* The keeper removes this directory with all its contents: absolute, not the root, no `..`. */
static bool is_removable(const char *path)
{
    size_t len = strlen(path);

    if (path[0] != '/' || path[strspn(path, "/")] == '\0')
        return false;
    return !strstr(path, "/../") && !(len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

/* The sweeper kills every process in this group: its name must be one that this project
 * gives. */
static bool is_own_group(const char *path)
{
    const char *last = strrchr(path, '/');

    return is_removable(path) && strlen(path) < CSN_CGROUP_PATH_MAX &&
           strncmp(last + 1, CSN_CGROUP_PREFIX, strlen(CSN_CGROUP_PREFIX)) == 0;
}

static bool is_valid(const csn_keeper_spec *s)
{
    bool sweeps = (s->flags & CSN_SPEC_SWEEP) != 0;

    for (size_t i = 0; s->remove[i]; i++)
        if (!is_removable(s->remove[i]))
            return false;
    for (size_t i = 0; s->groups[i]; i++)
        if (!sweeps || !is_own_group(s->groups[i]))
            return false;
    if (sweeps ? (s->flags & CSN_SPEC_DETACHED) != 0 || s->confinement.on != 0
               : (s->flags & CSN_SPEC_TAGGED) != 0)
        return false;
    if ((s->flags & CSN_SPEC_SOCKETS) &&
        (s->flags != CSN_SPEC_SOCKETS ||
         !(s->confinement.on & CSN_CONFINE_BIT(CSN_CONFINE_NET))))
        return false;
    if ((s->flags & CSN_SPEC_GROUPED) && (sweeps || s->confinement.on == 0))
        return false;
    if (s->user != 0 && (s->user < CSN_SPEC_USER_LOW || s->user == UINT32_MAX))
        return false;
    /* A confined keeper cannot reach them. */
    if (s->layers && ((!sweeps && s->confinement.on != 0) || !is_removable(s->layers)))
        return false;
    if (s->socket && s->socket[0] != '/')
        return false;
    return (s->tag_base & CSN_TAG_SEQ_MASK) == 0;
}

/* A mount point is a path below the new root. Only the first mount may be the root itself, as a
 * read-only template. */
static bool mount_point_is_valid(const csn_mount *m, bool first)
{
    bool template = first && (m->kind == CSN_MOUNT_BIND || m->kind == CSN_MOUNT_GIVEN) &&
                    (m->flags & CSN_MOUNT_RDONLY) && strcmp(m->to, "/") == 0;

    return template || is_removable(m->to);
}

static bool mount_is_valid(const csn_mount *m, bool first, uint32_t given)
{
    if (!mount_point_is_valid(m, first))
        return false;
    switch ((csn_mount_kind)m->kind) {
    case CSN_MOUNT_LINK:
    case CSN_MOUNT_TEXT:
    case CSN_MOUNT_OVERLAY:
        return m->from != NULL;
    case CSN_MOUNT_BIND:
        return m->from && m->from[0] == '/';
    case CSN_MOUNT_GIVEN:
        return m->fd >= 0 && (uint32_t)m->fd < given;
    case CSN_MOUNT_DIR:
    case CSN_MOUNT_SCRATCH:
    case CSN_MOUNT_PROC:
    case CSN_MOUNT_PTS:
    case CSN_MOUNT_QUEUES:
    case CSN_MOUNT_SELF:
    case CSN_MOUNT_MASK:
        break;
    }
    return true;
}

static int get_mounts(csn_unpacker *in, csn_confinement *c, csn_mount *room, csn_mount **ret)
{
    uint32_t n = csn_get_u32(in);
    csn_autofree csn_mount *own = NULL;

    if (n > CSN_MOUNTS_MAX)
        return -EPROTO;
    csn_mount *list = room ? room : (own = calloc(n + 1, sizeof(*list)));
    if (!list)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        if (csn_get_fields(in, mount_fields, &list[i]) < 0 ||
            !mount_is_valid(&list[i], i == 0, c->given))
            return -EPROTO;
    }
    c->mounts.list = list;
    c->mounts.count = n;
    *ret = CSN_STEAL(own);
    return 0;
}

/* Only a network namespace of the jail's own can have a gateway. */
static int get_net(csn_unpacker *in, const csn_confinement *c, csn_gateway_net_order *ret)
{
    ret->mode = csn_get_u32(in);
    if (ret->mode == CSN_GATEWAY_NET_NONE)
        return 0;
    uint32_t proxy_port = csn_get_u32(in);
    ret->host_port_count = csn_get_u32(in);
    if (ret->mode >= CSN_GATEWAY_NET_MODES || proxy_port > UINT16_MAX ||
        ret->host_port_count > CSN_GATEWAY_NET_HOST_PORTS_MAX ||
        !(c->on & CSN_CONFINE_BIT(CSN_CONFINE_NET)))
        return -EPROTO;
    ret->proxy_port = (uint16_t)proxy_port;
    for (uint32_t i = 0; i < ret->host_port_count; i++) {
        uint32_t port = csn_get_u32(in);
        if (port == 0 || port > UINT16_MAX)
            return -EPROTO;
        ret->host_ports[i] = (uint16_t)port;
    }
    return 0;
}

static int get_confinement(csn_unpacker *in, csn_mount *room, csn_keeper_spec *s)
{
    csn_confinement *c = &s->confinement;

    c->on = csn_get_u32(in);
    if (c->on == 0)
        return 0;
    if ((c->on & ~CSN_CONFINE_ALL) != 0 || csn_get_fields(in, confinement_fields, c) < 0 ||
        get_net(in, c, &c->net) < 0)
        return -EPROTO;
    c->mounts.size = csn_get_u64(in);
    c->mounts.inodes = csn_get_u64(in);
    /* Over memory_max and disk_max the keeper kills every process it sees, so it must have its
     * own pid namespace. */
    if ((c->memory_max != 0 || c->disk_max != 0) &&
        !(c->on & CSN_CONFINE_BIT(CSN_CONFINE_NAMESPACES)))
        return -EPROTO;
    return get_mounts(in, c, room, &s->mounts);
}

/* The caller has set all of ret to NULL. */
static int get_list(csn_unpacker *in, const char **ret, uint32_t max)
{
    uint32_t n = csn_get_u32(in);

    if (n > max)
        return -EPROTO;
    for (uint32_t i = 0; i < n; i++)
        ret[i] = csn_get_str(in, CSN_PATH_MAX, false);
    return 0;
}

void csn_spec_release(csn_keeper_spec *spec)
{
    free(spec->mounts);
    *spec = (csn_keeper_spec){0};
}

int csn_spec_get(const void *data, size_t len, csn_mount *room, csn_keeper_spec *ret)
{
    csn_keeper_spec s = {0};
    csn_unpacker in;

    csn_unpacker_init(&in, data, len);
    if (csn_get_u32(&in) != CSN_SPEC_MAGIC || csn_get_u32(&in) != CSN_SPEC_VERSION)
        return -EPROTO;
    int rc = csn_get_fields(&in, spec_fields, &s);
    if (rc == 0)
        rc = get_list(&in, s.remove, CSN_KEEPER_REMOVE_MAX);
    if (rc == 0)
        rc = get_list(&in, s.groups, CSN_CGROUP_KINDS);
    if (rc == 0 && (s.flags & CSN_SPEC_TAGGED)) {
        s.user = csn_get_u32(&in);
        s.tags_as = csn_get_u32(&in);
    }
    if (rc == 0)
        rc = get_confinement(&in, room, &s);
    if (rc == 0 && (csn_unpacker_end(&in) < 0 || !is_valid(&s)))
        rc = -EPROTO;
    if (rc < 0)
        csn_spec_release(&s);
    else
        *ret = s;
    return rc;
}
