/* cow_originals.c: keeps the host's versions of files that a sandbox changes (originals.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "layers/originals.h"
#include "runtime/cow.h"

#define COLLECT_MAX 10000u /* files after one command */

typedef struct places {
    int originals, base;
} places;

static int open_places(const csn_runtime *rt, places *ret)
{
    const csn_cow *c = rt->cow;

    ret->originals = csn_layer_originals(c->tree, rt->id);
    ret->base = open(c->host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return ret->originals < 0 ? ret->originals : ret->base < 0 ? -errno : 0;
}

static void close_places(places *p)
{
    if (p->originals >= 0)
        close(p->originals);
    if (p->base >= 0)
        close(p->base);
}

void csn_cow_collect(const csn_runtime *rt, struct timespec began)
{
    const csn_cow *c = rt->cow;
    csn_layer_record r;
    places p;

    if (!c || csn_layer_record_read(c->tree, rt->id, &r) < 0)
        return;
    csn_autofd int layer = csn_layer_open_fs(c->tree, r.names, 0);
    if (!r.copy && layer >= 0 && open_places(rt, &p) == 0)
        (void)csn_originals_collect(p.originals, layer, p.base, began, COLLECT_MAX, NULL);
    if (!r.copy && layer >= 0)
        close_places(&p);
    csn_layer_record_release(&r);
}

void csn_cow_keep(const csn_runtime *rt, const char *path)
{
    const char *below = rt->cow ? csn_path_below(path, rt->base.path) : NULL;
    places p;

    if (!below || !*below || strstr(below, "..") || strstr(below, "//") || strstr(below, "/./"))
        return; /* by way of a link: the next command's collection finds it */
    if (open_places(rt, &p) == 0)
        (void)csn_original_take(p.originals, p.base, below);
    close_places(&p);
}

int csn_cow_inherit(const csn_cow *c, const char *names, const char *id)
{
    char owner[CSN_NAME_BYTES_MAX + 1];
    int rc = *names ? csn_layer_owner(c->tree, names, owner) : -ENOENT;

    if (rc < 0)
        return 0;
    csn_autofd int to = csn_layer_originals(c->tree, id);
    int from = to < 0 ? -1 : csn_layer_originals(c->tree, owner);
    DIR *d = from < 0 ? NULL : fdopendir(from);
    if (!d && from >= 0)
        close(from);
    for (struct dirent *e; d && rc == 0 && (e = readdir(d));)
        if (e->d_name[0] != '.' && linkat(from, e->d_name, to, e->d_name, 0) < 0)
            rc = -errno;
    if (d)
        closedir(d);
    return d ? rc : -EIO;
}
