/* record.c: what another process needs to attach to a detached jail.
 *
 * Written once at open, next to the sandbox's metadata (core/state.c). A handle that connects
 * later reads it instead of planning again: the workspace and the other shares may have been
 * changed, moved or removed since, and the jail keeps what it was made with. What only the
 * keeper knows (its user, what the kernel gave it) is asked of the keeper. The directory is
 * private to the user, so the record is trusted as far as the user is; it is read with bounds
 * all the same. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strv.h"
#include "os/atomic.h"
#include "os/statedir.h"

#define MAGIC   0x4a4e5343u /* "CSNJ" */
#define VERSION 1u
#define MAX     (4u << 20)

/* ---- writing ---- */

static void put_strv(csn_packer *o, const char *const *v)
{
    csn_put_u32(o, (uint32_t)csn_strv_len(v));
    for (size_t i = 0; v && v[i]; i++)
        csn_put_str(o, v[i]);
}

static void put_ports(csn_packer *o, const csn_jail_net *n)
{
    csn_put_u32(o, n != NULL);
    csn_put_u32(o, n ? n->npublish : 0);
    for (uint32_t i = 0; n && i < n->npublish; i++) {
        csn_put_u32(o, n->publish[i].inside);
        csn_put_u32(o, n->publish[i].outside);
    }
}

static void put_record(const csn_runtime *rt, csn_packer *o)
{
    const csn_jail *j = rt->jail;

    csn_put_u32(o, MAGIC);
    csn_put_u32(o, VERSION);
    csn_put_u32(o, rt->level);
    csn_put_str(o, j->weaker);
    csn_put_str(o, rt->base.path);
    csn_put_str(o, rt->home.path);
    csn_put_str(o, j->place);
    csn_put_str(o, j->tmp);
    csn_put_u64(o, rt->file_max);
    csn_put_u32(o, (uint32_t)j->shares->count);
    for (size_t i = 0; i < j->shares->count; i++) {
        const csn_jail_share *s = &j->shares->v[i];
        csn_put_str(o, s->option);
        csn_put_str(o, s->host);
        csn_put_str(o, s->inside);
        csn_put_u32(o, s->writable);
    }
    csn_put_u32(o, (uint32_t)j->mount_count);
    for (size_t i = 0; i < j->mount_count; i++) {
        csn_put_u32(o, j->mounts[i].kind);
        csn_put_u32(o, j->mounts[i].flags);
        csn_put_u32(o, j->mounts[i].access);
        csn_put_str(o, j->mounts[i].to);
    }
    put_strv(o, j->links);
    put_strv(o, (const char *const *)j->denied);
    put_ports(o, j->net);
    csn_protected_put(j->protected, o);
}

csn_status csn_jail_record_save(csn_runtime *rt, csn_error **err)
{
    csn_autofd int dir = csn_runtime_state_dir(rt, true);
    csn_autofd int fd =
        dir < 0 ? dir
                : openat(dir, CSN_STATE_JAIL,
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    csn_packer o;

    if (fd < 0)
        return csn_fail_errno(err, dir < 0 ? -dir : errno, "record of sandbox '%s'", rt->id);
    csn_packer_init(&o, NULL, 0);
    put_record(rt, &o);
    int rc = o.error != 0 ? -o.error : o.len > MAX ? -EFBIG : 0;
    if (rc == 0)
        rc = csn_write_full(fd, o.data, o.len, NULL);
    csn_packer_release(&o);
    return rc < 0 ? csn_fail_errno(err, -rc, "record of sandbox '%s'", rt->id) : CSN_OK;
}

/* ---- reading ---- */

/* A copy that lives as long as the jail. */
static const char *get_str(csn_jail *j, csn_unpacker *in, bool may_be_null)
{
    const char *s = csn_get_str(in, CSN_PATH_MAX, may_be_null);
    const char *copy = s ? csn_arena_strdup(j->arena, s) : NULL;

    if (s && !copy)
        in->error = ENOMEM;
    return copy;
}

static void get_dup(csn_unpacker *in, char **ret)
{
    const char *s = csn_get_str(in, CSN_PATH_MAX, false);

    *ret = s ? strdup(s) : NULL;
    if (s && !*ret)
        in->error = ENOMEM;
}

/* How many entries follow. Each takes at least one byte. */
static uint32_t get_count(csn_unpacker *in)
{
    uint32_t n = csn_get_u32(in);

    if (n > (size_t)(in->end - in->p))
        in->error = EPROTO;
    return in->error == 0 ? n : 0;
}

static void *get_array(csn_jail *j, csn_unpacker *in, size_t count, size_t size)
{
    void *v = csn_arena_array(j->arena, count, size);

    if (!v)
        in->error = ENOMEM;
    return v;
}

static const char *const *get_strv(csn_jail *j, csn_unpacker *in)
{
    uint32_t n = get_count(in);
    const char **v = get_array(j, in, n + 1, sizeof(*v));

    for (uint32_t i = 0; v && i < n; i++)
        v[i] = get_str(j, in, false);
    return v;
}

static void get_shares(csn_jail *j, csn_unpacker *in)
{
    uint32_t n = get_count(in);

    if (n == 0 || n > CSN_JAIL_SHARES_MAX) {
        in->error = in->error ? in->error : EPROTO;
        return;
    }
    j->shares = get_array(j, in, 1, sizeof(*j->shares) + n * sizeof(j->shares->v[0]));
    if (!j->shares)
        return;
    j->shares->count = n;
    for (uint32_t i = 0; i < n; i++) {
        csn_jail_share *s = &j->shares->v[i];
        s->option = get_str(j, in, false);
        s->host = get_str(j, in, false);
        s->inside = get_str(j, in, false);
        s->writable = csn_get_u32(in) != 0;
    }
}

static void get_mounts(csn_jail *j, csn_unpacker *in)
{
    uint32_t n = get_count(in);

    if (n > CSN_MOUNTS_MAX)
        in->error = EPROTO;
    for (uint32_t i = 0; in->error == 0 && i < n; i++) {
        csn_mount *m = &j->mounts[j->mount_count++];
        m->kind = csn_get_u32(in);
        m->flags = csn_get_u32(in);
        m->access = csn_get_u32(in);
        m->to = get_str(j, in, false);
    }
}

static csn_status get_ports(csn_jail *j, csn_unpacker *in, csn_error **err)
{
    bool network = csn_get_u32(in) != 0;
    uint32_t n = csn_get_u32(in);

    if (in->error != 0 || !network)
        return CSN_OK;
    csn_status st = csn_jail_net_new(j, err);
    if (st < 0)
        return st;
    if (n > CSN_GATEWAY_PORTS_MAX)
        in->error = EPROTO;
    for (uint32_t i = 0; in->error == 0 && i < n; i++) {
        j->net->publish[i].inside = csn_get_u32(in);
        j->net->publish[i].outside = csn_get_u32(in);
        j->net->npublish = i + 1;
    }
    return CSN_OK;
}

static csn_status another_version(const csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_fail(err, CSN_UNAVAILABLE,
                             "sandbox '%s' was made by another version of caisson", rt->id);

    return csn_error_advise(st, err, "caisson destroy %s ends it", rt->id);
}

static csn_status get_record(csn_runtime *rt, csn_unpacker *in, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_status st = CSN_OK;

    if (csn_get_u32(in) != MAGIC || csn_get_u32(in) != VERSION)
        return another_version(rt, err);
    uint32_t level = csn_get_u32(in);
    rt->level =
        level == CSN_LEVEL_LANDLOCK_ONLY ? CSN_LEVEL_LANDLOCK_ONLY : CSN_LEVEL_NAMESPACES;
    j->weaker = get_str(j, in, true);
    get_dup(in, &rt->base.path);
    get_dup(in, &rt->home.path);
    j->place = get_str(j, in, true);
    j->tmp = get_str(j, in, true);
    rt->file_max = csn_get_u64(in);
    get_shares(j, in);
    get_mounts(j, in);
    j->links = get_strv(j, in);
    const char *const *denied = get_strv(j, in);
    for (size_t i = 0; in->error == 0 && denied[i]; i++)
        in->error = csn_strv_push(&j->denied, denied[i]);
    if (in->error == 0)
        st = get_ports(j, in, err);
    if (st == CSN_OK && in->error == 0)
        st = csn_protected_get(rt, in, err);
    if (st == CSN_OK && csn_unpacker_end(in) < 0)
        st = csn_fail(err, in->error == ENOMEM ? CSN_NOMEM : CSN_UNAVAILABLE,
                      "record of sandbox '%s' is damaged", rt->id);
    return st;
}

csn_status csn_jail_record_load(csn_runtime *rt, csn_error **err)
{
    csn_autofd int dir = csn_runtime_state_dir(rt, false);
    csn_autofd int fd =
        dir < 0 ? -1 : openat(dir, CSN_STATE_JAIL, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    csn_unpacker in;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > MAX)
        return another_version(rt, err);
    csn_autofree uint8_t *data = malloc((size_t)st.st_size + 1);
    ssize_t n = data ? read(fd, data, (size_t)st.st_size) : -1;
    if (n < 0)
        return csn_fail_errno(err, errno, "record of sandbox '%s'", rt->id);
    csn_unpacker_init(&in, data, (size_t)n);
    csn_status got = get_record(rt, &in, err);
    if (got < 0)
        return got;
    return rt->level == CSN_LEVEL_NAMESPACES ? csn_jail_make_rules(rt, err)
                                             : csn_landlock_only_rules(rt, err);
}
