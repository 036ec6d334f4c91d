/* spec.c: the serialised form of a keeper's orders.
 *
 * Written by the library, read once by the keeper before anything else happens. The memfd is
 * sealed, so what was checked is what is used. A spec of another version is refused: library
 * and keeper are installed together and must match. What an attacker could control: nothing
 * here as long as the library is sound; it is checked and fuzzed (fuzz_keeper_spec) all the
 * same, because the paths it lists are removed with our rights. */
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

static void put_net(csn_packer *o, const csn_gateway_net_order *n)
{
    csn_put_u32(o, n->mode);
    if (n->mode == CSN_GATEWAY_NET_NONE)
        return;
    csn_put_u32(o, n->proxy_port);
    csn_put_u32(o, n->lent_count);
    for (uint32_t i = 0; i < n->lent_count && i < CSN_GATEWAY_NET_LENT_MAX; i++)
        csn_put_u32(o, n->lent[i]);
}

static void put_walls(csn_packer *o, const csn_confinement *w)
{
    csn_put_u32(o, w->on);
    if (w->on == 0)
        return;
    csn_put_u32(o, w->uid);
    csn_put_u32(o, w->gid);
    csn_put_u32(o, w->seccomp);
    csn_put_u32(o, w->given);
    csn_put_u32(o, w->no_tcp);
    csn_put_u64(o, w->pids_max);
    csn_put_u64(o, w->nofile_max);
    csn_put_u64(o, w->data_max);
    csn_put_u64(o, w->memory_max);
    put_net(o, &w->net);
    csn_put_u64(o, w->mounts.size);
    csn_put_u64(o, w->mounts.inodes);
    csn_put_u32(o, (uint32_t)w->mounts.count);
    for (size_t i = 0; i < w->mounts.count; i++) {
        const csn_mount *m = &w->mounts.list[i];
        csn_put_u32(o, m->kind);
        csn_put_u32(o, m->flags);
        csn_put_u32(o, m->access);
        csn_put_u32(o, (uint32_t)m->fd);
        csn_put_str(o, m->from);
        csn_put_str(o, m->to);
    }
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
    csn_put_u32(o, spec->flags);
    csn_put_u64(o, spec->lifetime_ms);
    csn_put_u64(o, spec->tag_base);
    csn_put_str(o, spec->id);
    csn_put_str(o, spec->socket);
    put_list(o, spec->remove, CSN_KEEPER_REMOVE_MAX);
    put_list(o, spec->groups, CSN_CGROUP_KINDS);
    if (spec->flags & CSN_SPEC_TAGGED)
        csn_put_u32(o, spec->user);
    put_walls(o, &spec->walls);
}

/* Absolute, not the root, and no step back: it will be removed. */
static bool removable(const char *path)
{
    size_t len = strlen(path);

    if (path[0] != '/' || path[strspn(path, "/")] == '\0')
        return false;
    return !strstr(path, "/../") && !(len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

/* A group that this project made, by its name: everything in it will be killed. */
static bool own_group(const char *path)
{
    const char *last = strrchr(path, '/');

    return removable(path) && strlen(path) < CSN_CGROUP_PATH_MAX &&
           strncmp(last + 1, CSN_CGROUP_PREFIX, strlen(CSN_CGROUP_PREFIX)) == 0;
}

static bool sane(const csn_keeper_spec *s)
{
    bool sweeps = (s->flags & CSN_SPEC_SWEEP) != 0;

    for (size_t i = 0; s->remove[i]; i++)
        if (!removable(s->remove[i]))
            return false;
    for (size_t i = 0; s->groups[i]; i++)
        if (!sweeps || !own_group(s->groups[i]))
            return false;
    if (sweeps ? (s->flags & CSN_SPEC_DETACHED) != 0 || s->walls.on != 0
               : (s->flags & CSN_SPEC_TAGGED) != 0)
        return false;
    if ((s->flags & CSN_SPEC_SOCKETS) &&
        (s->flags != CSN_SPEC_SOCKETS || !(s->walls.on & CSN_CONFINE_BIT(CSN_CONFINE_NET))))
        return false;
    if ((s->flags & CSN_SPEC_GROUPED) && (sweeps || s->walls.on == 0))
        return false;
    if (s->user != 0 && (s->user < CSN_SPEC_USER_LOW || s->user == UINT32_MAX))
        return false;
    if ((s->flags & ~CSN_SPEC_ALL) != 0 || (s->socket && s->socket[0] != '/'))
        return false;
    return (s->tag_base & CSN_TAG_SEQ_MASK) == 0 && s->tag_base >= CSN_TAG_MARK &&
           s->tag_base < 2 * CSN_TAG_MARK;
}

/* A place in the new root: absolute, no `..`; the root itself for the first, if it is one that
 * is read-only. GIVEN ones count from 0. */
static bool sane_place(const csn_mount *m, bool first)
{
    bool frame = first && (m->kind == CSN_MOUNT_BIND || m->kind == CSN_MOUNT_GIVEN) &&
                 (m->flags & CSN_MOUNT_RDONLY) && m->to && strcmp(m->to, "/") == 0;

    return frame || (m->to && removable(m->to));
}

static bool sane_mount(const csn_mount *m, bool first, uint32_t given)
{
    if (m->kind < 1 || m->kind > CSN_MOUNT_KINDS || (m->flags & ~CSN_MOUNT_ALL) != 0 ||
        !sane_place(m, first))
        return false;
    switch ((csn_mount_kind)m->kind) {
    case CSN_MOUNT_LINK:
    case CSN_MOUNT_TEXT:
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

static int get_mounts(csn_unpacker *in, csn_confinement *w, csn_mount *room, csn_mount **ret)
{
    uint32_t n = csn_get_u32(in);
    csn_autofree csn_mount *own = NULL;

    if (n > CSN_MOUNTS_MAX)
        return -EPROTO;
    csn_mount *list = room ? room : (own = calloc(n + 1, sizeof(*list)));
    if (!list)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        csn_mount *m = &list[i];
        m->kind = csn_get_u32(in);
        m->flags = csn_get_u32(in);
        m->access = csn_get_u32(in);
        m->fd = (int32_t)csn_get_u32(in);
        m->from = csn_get_str(in, CSN_SPEC_TEXT_MAX, true);
        m->to = csn_get_str(in, CSN_PATH_MAX, false);
        if (in->error != 0 || !sane_mount(m, i == 0, w->given))
            return -EPROTO;
    }
    w->mounts.list = list;
    w->mounts.count = n;
    *ret = CSN_STEAL(own);
    return 0;
}

/* A network with a way out is only ever one of the jail's own. */
static int get_net(csn_unpacker *in, const csn_confinement *w, csn_gateway_net_order *ret)
{
    ret->mode = csn_get_u32(in);
    if (ret->mode == CSN_GATEWAY_NET_NONE)
        return 0;
    uint32_t proxy_port = csn_get_u32(in);
    ret->lent_count = csn_get_u32(in);
    if (ret->mode >= CSN_GATEWAY_NET_MODES || proxy_port > UINT16_MAX ||
        ret->lent_count > CSN_GATEWAY_NET_LENT_MAX ||
        !(w->on & CSN_CONFINE_BIT(CSN_CONFINE_NET)))
        return -EPROTO;
    ret->proxy_port = (uint16_t)proxy_port;
    for (uint32_t i = 0; i < ret->lent_count; i++) {
        uint32_t port = csn_get_u32(in);
        if (port == 0 || port > UINT16_MAX)
            return -EPROTO;
        ret->lent[i] = (uint16_t)port;
    }
    return 0;
}

static int get_walls(csn_unpacker *in, csn_mount *room, csn_keeper_spec *s)
{
    csn_confinement *w = &s->walls;

    w->on = csn_get_u32(in);
    if (w->on == 0)
        return 0;
    w->uid = csn_get_u32(in);
    w->gid = csn_get_u32(in);
    w->seccomp = csn_get_u32(in);
    w->given = csn_get_u32(in);
    w->no_tcp = csn_get_u32(in);
    w->pids_max = csn_get_u64(in);
    w->nofile_max = csn_get_u64(in);
    w->data_max = csn_get_u64(in);
    w->memory_max = csn_get_u64(in);
    if (get_net(in, w, &w->net) < 0)
        return -EPROTO;
    w->mounts.size = csn_get_u64(in);
    w->mounts.inodes = csn_get_u64(in);
    if ((w->on & ~CSN_CONFINE_ALL) != 0 || w->given > CSN_SPEC_GIVEN_MAX)
        return -EPROTO;
    /* Who watches memory ends everybody it can see: only ever in a pid namespace. */
    if (w->memory_max != 0 && !(w->on & CSN_CONFINE_BIT(CSN_CONFINE_NAMESPACES)))
        return -EPROTO;
    return get_mounts(in, w, room, &s->mounts);
}

/* The rest of the list is NULL already. */
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
    s.flags = csn_get_u32(&in);
    s.lifetime_ms = csn_get_u64(&in);
    s.tag_base = csn_get_u64(&in);
    s.id = csn_get_str(&in, CSN_SPEC_ID_MAX, false);
    s.socket = csn_get_str(&in, CSN_PATH_MAX, true);
    int rc = get_list(&in, s.remove, CSN_KEEPER_REMOVE_MAX);
    if (rc == 0)
        rc = get_list(&in, s.groups, CSN_CGROUP_KINDS);
    if (rc == 0 && (s.flags & CSN_SPEC_TAGGED))
        s.user = csn_get_u32(&in);
    if (rc == 0)
        rc = get_walls(&in, room, &s);
    if (rc == 0 && (csn_unpacker_end(&in) < 0 || !sane(&s)))
        rc = -EPROTO;
    if (rc < 0)
        csn_spec_release(&s);
    else
        *ret = s;
    return rc;
}
