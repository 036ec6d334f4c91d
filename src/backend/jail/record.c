/* record.c: saves and loads the record from which another process attaches to a detached jail.
 *
 * Written once at open, next to the sandbox's metadata (core/state.c). A handle that connects
 * later reads it instead of planning again: the shares may have been changed, moved or removed
 * since, but the jail keeps its original mounts. Facts that only the keeper knows (its user,
 * kernel features) are requested from the keeper. Only the user can write to the directory, so
 * the record is trusted; it is nevertheless read with bounds. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/cover.h"
#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strv.h"
#include "os/atomic.h"
#include "os/statedir.h"

#define MAGIC    0x4a4e5343u /* "CSNJ" */
#define VERSION  2u
#define MAX      (8u << 20)
#define WRITABLE (1u << 0) /* of a share */
#define COW      (1u << 1)
#define KEY      (1u << 31) /* in the number of a cover: a row of policy/key_places.h */

/* ---- format ---- */

typedef struct header {
    uint32_t magic, version, level;
    const char *weaker, *base, *home, *place, *tmp;
    uint64_t file_max;
    uint32_t share_count, mount_count, link_count, covered_count;
    uint32_t network, port_count; /* network: 1 if the jail has a gateway */
} header;

static const csn_field header_fields[] = {
    CSN_FIELD(header, U32, magic, MAGIC, MAGIC),
    CSN_FIELD(header, U32, version, VERSION, VERSION),
    CSN_FIELD(header, U32, level, CSN_LEVEL_LANDLOCK_ONLY, CSN_LEVEL_NAMESPACES),
    CSN_FIELD(header, OPTIONAL_TEXT, weaker, 0, CSN_PATH_MAX),
    CSN_FIELD(header, TEXT, base, 1, CSN_PATH_MAX),
    CSN_FIELD(header, TEXT, home, 1, CSN_PATH_MAX),
    CSN_FIELD(header, OPTIONAL_TEXT, place, 0, CSN_PATH_MAX),
    CSN_FIELD(header, OPTIONAL_TEXT, tmp, 0, CSN_PATH_MAX),
    CSN_FIELD(header, U64, file_max, 0, UINT64_MAX),
    CSN_FIELD(header, U32, share_count, 1, CSN_JAIL_SHARES_MAX),
    CSN_FIELD(header, U32, mount_count, 0, CSN_MOUNTS_MAX),
    CSN_FIELD(header, U32, link_count, 0, CSN_MOUNTS_MAX),
    CSN_FIELD(header, U32, covered_count, 0, CSN_COVER_NAMES_MAX),
    CSN_FIELD(header, U32, network, 0, 1),
    CSN_FIELD(header, U32, port_count, 0, CSN_GATEWAY_PORTS_MAX),
    {0}};

static const csn_field share_fields[] = {
    CSN_FIELD(csn_jail_share, TEXT, option, 1, CSN_PATH_MAX),
    CSN_FIELD(csn_jail_share, TEXT, host, 1, CSN_PATH_MAX),
    CSN_FIELD(csn_jail_share, TEXT, inside, 1, CSN_PATH_MAX),
    {0}};

static const csn_field mount_fields[] = {CSN_FIELD(csn_mount, U32, kind, 1, CSN_MOUNT_KINDS),
                                         CSN_FIELD(csn_mount, U32, flags, 0, UINT32_MAX),
                                         CSN_FIELD(csn_mount, U32, access, 0, UINT32_MAX),
                                         CSN_FIELD(csn_mount, TEXT, to, 1, CSN_PATH_MAX),
                                         {0}};

/* ---- writing ---- */

static void put_strv(csn_packer *o, const char *const *v)
{
    for (size_t i = 0; v && v[i]; i++)
        csn_put_str(o, v[i]);
}

static void put_record(const csn_runtime *rt, csn_packer *o)
{
    const csn_jail *j = rt->jail;
    const header h = {.magic = MAGIC,
                      .version = VERSION,
                      .level = rt->level,
                      .weaker = j->weaker,
                      .base = rt->base.path,
                      .home = rt->home.path,
                      .place = j->place,
                      .tmp = j->tmp,
                      .file_max = rt->file_max,
                      .share_count = (uint32_t)j->shares->count,
                      .mount_count = (uint32_t)j->mount_count,
                      .link_count = (uint32_t)csn_strv_len(j->links),
                      .covered_count = j->covers ? (uint32_t)j->covers->name_count : 0,
                      .network = j->net != NULL,
                      .port_count = j->net ? j->net->npublish : 0};

    csn_put_fields(o, header_fields, &h);
    for (size_t i = 0; i < j->shares->count; i++) {
        csn_put_fields(o, share_fields, &j->shares->v[i]);
        csn_put_u32(o, (j->shares->v[i].writable ? WRITABLE : 0) |
                           (j->shares->v[i].cow ? COW : 0));
    }
    for (size_t i = 0; i < j->mount_count; i++)
        csn_put_fields(o, mount_fields, &j->mounts[i]);
    put_strv(o, j->links);
    for (uint32_t i = 0; i < h.covered_count; i++) {
        csn_put_str(o, j->covers->names[i].path);
        uint32_t cover = j->covers->names[i].cover;
        csn_put_u32(o, j->covers->v[cover].key ? KEY | (cover - j->covers->first_key) : cover);
    }
    for (uint32_t i = 0; i < h.port_count; i++) {
        csn_put_u32(o, j->net->publish[i].inside);
        csn_put_u32(o, j->net->publish[i].outside);
    }
    csn_protected_put(j->protected, o);
}

csn_status csn_jail_record_save(csn_runtime *rt, csn_error **err)
{
    csn_autofd int fd = openat(rt->run_fd, CSN_STATE_JAIL,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    csn_packer o;

    if (fd < 0)
        return csn_runtime_run_failed(rt, errno, "record", err);
    csn_packer_init(&o, NULL, 0);
    put_record(rt, &o);
    int rc = o.error != 0 ? -o.error : o.len > MAX ? -EFBIG : 0;
    if (rc == 0)
        rc = csn_write_full(fd, o.data, o.len, NULL);
    csn_packer_release(&o);
    return rc < 0 ? csn_fail_errno(err, -rc, "record of sandbox '%s'", rt->id) : CSN_OK;
}

/* ---- reading: strings borrow from the bytes, which are in the jail's arena ---- */

static csn_status another_version(const csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_fail(err, CSN_UNAVAILABLE,
                             "sandbox '%s' was made by another version of caisson", rt->id);

    return csn_error_advise(st, err, "caisson destroy %s ends it", rt->id);
}

static int get_shares(csn_jail *j, csn_unpacker *in, uint32_t count)
{
    j->shares = csn_arena_alloc(j->arena, sizeof(*j->shares) + count * sizeof(j->shares->v[0]));
    if (!j->shares)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        csn_jail_share *s = &j->shares->v[j->shares->count++];
        if (csn_get_fields(in, share_fields, s) < 0)
            return -EPROTO;
        uint32_t flags = csn_get_u32(in);
        s->writable = (flags & WRITABLE) != 0;
        s->cow = (flags & COW) != 0;
    }
    return 0;
}

/* The denials are those of the config, and the keys; the record has the paths that were
 * covered. */
static int get_covers(csn_runtime *rt, csn_unpacker *in, uint32_t count)
{
    int rc = csn_cover_read(rt, NULL) < 0 ? -EPROTO : 0;

    for (uint32_t i = 0; rc == 0 && in->error == 0 && i < count; i++) {
        const char *path = csn_get_str(in, CSN_PATH_MAX, false);
        uint32_t cover = csn_get_u32(in);
        if ((cover & KEY) && csn_cover_keys_read(rt, NULL) < 0)
            return -ENOMEM;
        if (cover & KEY)
            cover = rt->jail->covers->first_key + (cover & ~KEY);
        if (!path || cover >= rt->jail->covers->count)
            rc = -EPROTO;
        else if (csn_cover_add_name(rt, cover, path, NULL) < 0)
            rc = -ENOMEM;
    }
    return rc;
}

static int get_lists(csn_runtime *rt, csn_unpacker *in, const header *h)
{
    csn_jail *j = rt->jail;
    const char **links = csn_arena_array(j->arena, h->link_count + 1, sizeof(*links));
    int rc = links ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < h->mount_count; i++)
        rc = csn_get_fields(in, mount_fields, &j->mounts[j->mount_count++]);
    for (uint32_t i = 0; rc == 0 && i < h->link_count; i++)
        links[i] = csn_get_str(in, CSN_PATH_MAX, false);
    j->links = links;
    return rc == 0 && rt->level == CSN_LEVEL_NAMESPACES ? get_covers(rt, in, h->covered_count)
                                                        : rc;
}

static int get_network(csn_jail *j, csn_unpacker *in, const header *h)
{
    if (h->network && csn_jail_net_new(j, NULL) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; j->net && i < h->port_count; i++) {
        j->net->publish[i].inside = csn_get_u32(in);
        j->net->publish[i].outside = csn_get_u32(in);
        j->net->npublish = i + 1;
    }
    return 0;
}

static int get_record(csn_runtime *rt, csn_unpacker *in, const header *h)
{
    csn_jail *j = rt->jail;
    int rc = get_shares(j, in, h->share_count);

    rt->level = h->level;
    rt->file_max = h->file_max;
    rt->base.path = strdup(h->base);
    rt->home.path = strdup(h->home);
    j->weaker = h->weaker;
    j->place = h->place;
    j->tmp = h->tmp;
    if (rc == 0 && (!rt->base.path || !rt->home.path))
        rc = -ENOMEM;
    if (rc == 0)
        rc = get_lists(rt, in, h);
    if (rc == 0)
        rc = get_network(j, in, h);
    if (rc == 0 && in->error == 0)
        rc = csn_protected_get(rt, in);
    return rc < 0 ? rc : csn_unpacker_end(in);
}

csn_status csn_jail_record_load(csn_runtime *rt, csn_error **err)
{
    csn_autofd int fd = openat(rt->run_fd, CSN_STATE_JAIL, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    csn_unpacker in;
    struct stat st;
    header h;

    if (fd < 0)
        return csn_runtime_run_failed(rt, errno, "record", err);
    if (fstat(fd, &st) < 0 || st.st_size > MAX)
        return another_version(rt, err);
    uint8_t *data = csn_arena_alloc(rt->jail->arena, (size_t)st.st_size + 1);
    ssize_t n = data ? read(fd, data, (size_t)st.st_size) : -1;
    if (n < 0)
        return csn_fail_errno(err, data ? errno : ENOMEM, "record of sandbox '%s'", rt->id);
    csn_unpacker_init(&in, data, (size_t)n);
    if (csn_get_fields(&in, header_fields, &h) < 0)
        return another_version(rt, err);
    int rc = get_record(rt, &in, &h);
    if (rc < 0)
        return csn_fail(err, rc == -ENOMEM ? CSN_NOMEM : CSN_UNAVAILABLE,
                        "record of sandbox '%s': %s", rt->id, strerrordesc_np(-rc));
    csn_status got = rt->level == CSN_LEVEL_NAMESPACES ? csn_cover_make_rules(rt, err)
                                                       : csn_landlock_only_rules(rt, err);
    if (got == CSN_OK)
        got = csn_cover_keys_describe(rt, err);
    return got < 0 ? got : csn_protected_join(rt, err);
}
