/* rootfs_template.c: which frame a jail has, and where its shares go in it.
 *
 * Called when a jail is planned. The shares' places are the caller's choice, and there may be a
 * new one for every sandbox (a directory per task): a frame for each would fill the disk. So a
 * frame has only the first name of such a place that is not there anyway, and the rest is made
 * in a loft, a piece of the sandbox's own tmpfs that is mounted there and closed to writing
 * when all is in it.
 *
 * Without a place for frames, and for a detached jail, which may outlive its maker and so the
 * lock on the frame, everything is made and mounted one by one. */
#include "backend/jail/rootfs_template.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/etc_files.h"
#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/path.h"
#include "os/landlock.h"
#include "os/statedir.h"

#define FORM_VERSION "3" /* of what csn_rootfs_template_make makes of a list */
/* Not flags of a mount, but why an entry is there: to mount something on. */
#define SPOT (1u << 30)
#define LOFT (1u << 31)

static void add(csn_rootfs_template *f, uint32_t kind, uint32_t flags, const char *from,
                const char *to)
{
    if (f->count < CSN_ROOTFS_TEMPLATE_MAX)
        f->v[f->count] =
            (csn_mount){.kind = kind, .flags = flags, .fd = -1, .from = from, .to = to};
    f->count++;
}

void csn_rootfs_template_add(csn_rootfs_template *f, uint32_t kind, const char *from,
                             const char *to)
{
    add(f, kind, 0, from, to);
}

void csn_rootfs_template_spot(csn_rootfs_template *f, const char *to, bool dir)
{
    add(f, dir ? CSN_MOUNT_DIR : CSN_MOUNT_TEXT, SPOT, dir ? NULL : "", to);
}

bool csn_rootfs_template_lacks(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES ||
           error == EPERM || error == ENXIO;
}

static bool whole(const csn_rootfs_template *f)
{
    if (f->count > CSN_ROOTFS_TEMPLATE_MAX || f->partial)
        return false;
    for (size_t i = 0; i < f->count; i++)
        if (!f->v[i].to || (!f->v[i].from && f->v[i].kind != CSN_MOUNT_DIR))
            return false; /* no memory */
    return true;
}

/* ---- shares ---- */

/* What the frame has at a path: nothing, a directory whose names are the frame's too, or
 * something that has others in it, or none. */
enum found { NOTHING, OPEN, CLOSED };

static enum found look(const csn_rootfs_template *f, const char *path)
{
    enum found found = NOTHING;

    for (size_t i = 0; i < f->count && i < CSN_ROOTFS_TEMPLATE_MAX; i++) {
        const char *rest = f->v[i].to ? csn_path_below(f->v[i].to, path) : NULL;
        if (!rest)
            continue;
        if (*rest == '\0' && (f->v[i].kind != CSN_MOUNT_DIR || f->v[i].flags & (SPOT | LOFT)))
            return CLOSED;
        found = OPEN;
    }
    return found;
}

static void place_share(csn_rootfs_template *f, const csn_jail_share *share)
{
    for (const char *end = strchr(share->inside + 1, '/');; end = strchr(end + 1, '/')) {
        size_t len = end ? (size_t)(end - share->inside) : strlen(share->inside);
        const char *path = csn_arena_memdup(f->arena, share->inside, len);
        enum found there = path ? look(f, path) : NOTHING;
        if (there == NOTHING && end)
            add(f, CSN_MOUNT_DIR, LOFT, NULL, path);
        else if (there == NOTHING)
            csn_rootfs_template_spot(f, path, !share->file);
        if (there != OPEN || !end)
            return;
    }
}

/* ---- the one there is ---- */

static void make_key(const csn_rootfs_template *f, char key[CSN_HASH_HEX])
{
    csn_hash h;

    csn_hash_init(&h);
    csn_hash_add(&h, FORM_VERSION, sizeof(FORM_VERSION));
    for (size_t i = 0; i < f->count; i++) {
        csn_hash_add(&h, &f->v[i].kind, sizeof(f->v[i].kind));
        csn_hash_add(&h, f->v[i].to, strlen(f->v[i].to) + 1);
        if (f->v[i].from)
            csn_hash_add(&h, f->v[i].from, strlen(f->v[i].from) + 1);
    }
    csn_etc_sign(&h);
    csn_hash_hex(&h, key);
}

/* Its path, held for as long as j is; NULL: there is none and can be none. */
static const char *get(csn_jail *j, const csn_rootfs_template *f)
{
    char key[CSN_HASH_HEX];
    csn_autofree char *store_path = NULL;
    csn_autofd int store = csn_statedir_open(CSN_DIR_STATE, "frames", &store_path);

    if (store < 0 || !whole(f))
        return NULL;
    make_key(f, key);
    int rc = csn_rootfs_template_hold(store, key, &j->template_lock);
    if (rc < 0) {
        csn_rootfs_template all = *f;
        csn_etc_files(&all);
        rc = whole(&all) ? csn_rootfs_template_make(store, key, all.v, all.count) : -ENOMEM;
        if (rc == 0)
            rc = csn_rootfs_template_hold(store, key, &j->template_lock);
    }
    return rc < 0 ? NULL : csn_arena_printf(j->arena, "%s/%s", store_path, key);
}

static void mount_frame(csn_jail *j, const csn_rootfs_template *f, const char *path)
{
    csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_RDONLY | CSN_MOUNT_TRUSTED, 0, path, "/");
    j->template =
        (csn_jail_share){.option = "root", .host = path, .inside = "/", .as_is = true};
    if (j->privileged) /* the way to it is root's alone */
        csn_jail_give(j, &j->template);
    for (size_t i = 0; i < f->count; i++)
        if (f->v[i].flags & LOFT)
            csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_RDONLY, 0, NULL, f->v[i].to);
}

static void mount_each(csn_jail *j, csn_rootfs_template *f)
{
    const uint32_t copied =
        CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NARROW | CSN_MOUNT_TRUSTED;

    csn_etc_files(f);
    for (size_t i = 0; i < f->count && i < CSN_ROOTFS_TEMPLATE_MAX; i++) {
        const csn_mount *m = &f->v[i];
        bool bind = m->kind == CSN_MOUNT_BIND;
        if (!(m->flags & (SPOT | LOFT)))
            csn_jail_add(j, m->kind, bind ? copied : 0, bind ? CSN_LL_READ : 0, m->from, m->to);
    }
    if (f->count > CSN_ROOTFS_TEMPLATE_MAX)
        j->mount_count = CSN_MOUNTS_MAX + 1; /* found out at the end */
}

static const char *const *links_of(const csn_rootfs_template *f)
{
    const size_t most = 16; /* names in the root */
    const char **links = csn_arena_array(f->arena, most + 1, sizeof(*links));
    size_t n = 0;

    for (size_t i = 0; links && n < most && i < f->count && i < CSN_ROOTFS_TEMPLATE_MAX; i++)
        if (f->v[i].kind == CSN_MOUNT_LINK && strrchr(f->v[i].to, '/') == f->v[i].to)
            links[n++] = f->v[i].to;
    if (links)
        links[n] = NULL;
    return links;
}

void csn_jail_add_template(const csn_runtime *rt, csn_jail *j, csn_rootfs_template *f,
                           const csn_jail_share *shares, size_t count)
{
    size_t own = f->count;
    const char *path = NULL;

    j->links = links_of(f);
    for (size_t i = 0; i < count; i++)
        place_share(f, &shares[i]);
    if (!rt->detached)
        path = get(j, f);
    if (path) {
        mount_frame(j, f, path);
        return;
    }
    f->count = own;
    mount_each(j, f);
}
