/* rootfs_template.c: finds or makes the root template of a jail and plans its mounts.
 *
 * Shares may have a new path for every sandbox (a directory per task), and a template for each
 * path would fill the disk. A template therefore has only the first component of a share's path
 * that it lacks; the rest is created in a tmpfs that is mounted there and then made read-only.
 *
 * If no template can be stored, and for a detached jail, which may outlive the process that
 * holds the lock on the template, all entries are created and mounted one by one. */
#include "backend/jail/rootfs_template.h"

#include <errno.h>
#include <string.h>

#include "backend/jail/etc_files.h"
#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/path.h"
#include "os/landlock.h"
#include "os/statedir.h"

#define FORMAT_VERSION "3" /* format of a stored template */
/* Flags of an entry that is a mount point: for one mount, or for a tmpfs with more paths. */
#define MOUNTPOINT (1u << 30)
#define TMPFS_DIR  (1u << 31)

static void add(csn_rootfs_template *t, uint32_t kind, uint32_t flags, const char *from,
                const char *to)
{
    if (t->count < CSN_ROOTFS_TEMPLATE_MAX)
        t->v[t->count] =
            (csn_mount){.kind = kind, .flags = flags, .fd = -1, .from = from, .to = to};
    t->count++;
}

void csn_rootfs_template_add(csn_rootfs_template *t, uint32_t kind, const char *from,
                             const char *to)
{
    add(t, kind, 0, from, to);
}

void csn_rootfs_template_mountpoint(csn_rootfs_template *t, const char *to, bool dir)
{
    add(t, dir ? CSN_MOUNT_DIR : CSN_MOUNT_TEXT, MOUNTPOINT, dir ? NULL : "", to);
}

bool csn_rootfs_template_is_absent(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES ||
           error == EPERM || error == ENXIO;
}

static bool is_complete(const csn_rootfs_template *t)
{
    if (t->count > CSN_ROOTFS_TEMPLATE_MAX || t->partial)
        return false;
    for (size_t i = 0; i < t->count; i++)
        if (!t->v[i].to || (!t->v[i].from && t->v[i].kind != CSN_MOUNT_DIR))
            return false; /* out of memory */
    return true;
}

/* ---- shares ---- */

/* What the template has at a path: nothing, a directory with entries of the template, or a file
 * or mount point. */
enum found { ABSENT, OWN_DIR, OTHER };

static enum found find_at(const csn_rootfs_template *t, const char *path)
{
    enum found found = ABSENT;

    for (size_t i = 0; i < t->count && i < CSN_ROOTFS_TEMPLATE_MAX; i++) {
        const char *rest = t->v[i].to ? csn_path_below(t->v[i].to, path) : NULL;
        if (!rest)
            continue;
        if (*rest == '\0' &&
            (t->v[i].kind != CSN_MOUNT_DIR || t->v[i].flags & (MOUNTPOINT | TMPFS_DIR)))
            return OTHER;
        found = OWN_DIR;
    }
    return found;
}

static void place_share(csn_rootfs_template *t, const csn_jail_share *share)
{
    for (const char *end = strchr(share->inside + 1, '/');; end = strchr(end + 1, '/')) {
        size_t len = end ? (size_t)(end - share->inside) : strlen(share->inside);
        const char *path = csn_arena_memdup(t->arena, share->inside, len);
        enum found there = path ? find_at(t, path) : ABSENT;
        if (there == ABSENT && end)
            add(t, CSN_MOUNT_DIR, TMPFS_DIR, NULL, path);
        else if (there == ABSENT)
            csn_rootfs_template_mountpoint(t, path, !share->file);
        if (there != OWN_DIR || !end)
            return;
    }
}

/* ---- the stored template ---- */

static void make_key(const csn_rootfs_template *t, char key[CSN_HASH_HEX])
{
    csn_hash h;

    csn_hash_init(&h);
    csn_hash_add(&h, FORMAT_VERSION, sizeof(FORMAT_VERSION));
    for (size_t i = 0; i < t->count; i++) {
        csn_hash_add(&h, &t->v[i].kind, sizeof(t->v[i].kind));
        csn_hash_add(&h, t->v[i].to, strlen(t->v[i].to) + 1);
        if (t->v[i].from)
            csn_hash_add(&h, t->v[i].from, strlen(t->v[i].from) + 1);
    }
    csn_etc_hash(&h, t->etc);
    csn_hash_hex(&h, key);
}

/* The path of the template, locked until j is released. NULL: it does not exist and cannot be
 * created. */
static const char *find_or_make(csn_jail *j, const csn_rootfs_template *t)
{
    char key[CSN_HASH_HEX];
    csn_autofree char *store_path = NULL;
    csn_autofd int store = csn_statedir_open(CSN_DIR_STATE, "frames", &store_path);

    if (store < 0 || !is_complete(t))
        return NULL;
    make_key(t, key);
    int rc = csn_rootfs_template_hold(store, key, &j->template_lock);
    if (rc < 0) {
        csn_rootfs_template all = *t;
        csn_etc_add_copies(&all, t->etc);
        rc = is_complete(&all) ? csn_rootfs_template_make(store, key, all.v, all.count)
                               : -ENOMEM;
        if (rc == 0)
            rc = csn_rootfs_template_hold(store, key, &j->template_lock);
    }
    return rc < 0 ? NULL : csn_arena_printf(j->arena, "%s/%s", store_path, key);
}

static void mount_template(csn_jail *j, const csn_rootfs_template *t, const char *path)
{
    csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_RDONLY | CSN_MOUNT_TRUSTED, 0, path, "/");
    j->template =
        (csn_jail_share){.option = "root", .host = path, .inside = "/", .as_is = true};
    if (j->idmapped) /* only root can reach its path */
        csn_jail_give(j, &j->template);
    for (size_t i = 0; i < t->count; i++)
        if (t->v[i].flags & TMPFS_DIR)
            csn_jail_add(j, CSN_MOUNT_SCRATCH, CSN_MOUNT_RDONLY, 0, NULL, t->v[i].to);
}

static void mount_each(csn_jail *j, csn_rootfs_template *t)
{
    const uint32_t copied =
        CSN_MOUNT_RDONLY | CSN_MOUNT_OPTIONAL | CSN_MOUNT_NARROW | CSN_MOUNT_TRUSTED;

    csn_etc_add_copies(t, t->etc);
    for (size_t i = 0; i < t->count && i < CSN_ROOTFS_TEMPLATE_MAX; i++) {
        const csn_mount *m = &t->v[i];
        bool bind = m->kind == CSN_MOUNT_BIND;
        if (!(m->flags & (MOUNTPOINT | TMPFS_DIR)))
            csn_jail_add(j, m->kind, bind ? copied : 0, bind ? CSN_LL_READ : 0, m->from, m->to);
    }
    if (t->count > CSN_ROOTFS_TEMPLATE_MAX)
        j->mount_count = CSN_MOUNTS_MAX + 1; /* csn_jail_plan fails */
}

static const char *const *links_of(const csn_rootfs_template *t)
{
    const size_t most = 16; /* more links than a root directory has */
    const char **links = csn_arena_array(t->arena, most + 1, sizeof(*links));
    size_t n = 0;

    for (size_t i = 0; links && n < most && i < t->count && i < CSN_ROOTFS_TEMPLATE_MAX; i++)
        if (t->v[i].kind == CSN_MOUNT_LINK && strrchr(t->v[i].to, '/') == t->v[i].to)
            links[n++] = t->v[i].to;
    if (links)
        links[n] = NULL;
    return links;
}

void csn_jail_add_template(const csn_runtime *rt, csn_jail *j, csn_rootfs_template *t,
                           const csn_jail_share *shares, size_t count)
{
    size_t own = t->count;
    const char *path = NULL;

    j->links = links_of(t);
    for (size_t i = 0; i < count; i++)
        place_share(t, &shares[i]);
    /* Without an id-mapped mount only the caller itself can reach its path. Sandboxes inside
     * read the list of mounts: with a template, places of the tmpfs seem to exist below /proc
     * too. */
    if (!rt->detached && !j->nested && (j->idmapped || !j->other_user))
        path = find_or_make(j, t);
    if (path) {
        mount_template(j, t, path);
        return;
    }
    t->count = own;
    mount_each(j, t);
}
