/* content.c: opens what a listed change is about.
 *
 * The tree may have changed since the list was made: the inode is compared, and another one is
 * -ESTALE. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "layers/changes.h"
#include "layers/entry.h"

static int open_side(const csn_layer_stack *s, const csn_layer_change *c, bool after, int flags)
{
    const csn_change_side *side = after ? &c->after : &c->before;
    csn_entry_tree tree = {.root = s->base};
    struct stat st;

    if (after && c->layer >= s->count)
        return -EINVAL;
    if (after)
        tree = (csn_entry_tree){s->layers[c->layer], true};
    csn_autofd int fd = csn_entry_open_path(&tree, c->path, flags);
    /* A link, a socket, a whiteout, or a directory on the way that is none now. */
    if (fd == -ELOOP || fd == -ENXIO || fd == -ENOTDIR)
        return -ESTALE;
    if (fd < 0)
        return csn_steal_fd(&fd);
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_dev != side->dev || st.st_ino != side->ino ||
        ((st.st_mode ^ side->mode) & S_IFMT) != 0)
        return -ESTALE;
    return csn_steal_fd(&fd);
}

int csn_layer_open(const csn_layer_stack *s, const csn_layer_change *c, bool after)
{
    if (!S_ISREG(after ? c->after.mode : c->before.mode))
        return -EINVAL;
    return open_side(s, c, after, O_RDONLY);
}

char *csn_layer_readlink(const csn_layer_stack *s, const csn_layer_change *c, bool after)
{
    char text[PATH_MAX + 1];

    if (!S_ISLNK(after ? c->after.mode : c->before.mode)) {
        errno = EINVAL;
        return NULL;
    }
    csn_autofd int fd = open_side(s, c, after, O_PATH);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    ssize_t n = readlinkat(fd, "", text, sizeof(text));
    return n < 0 ? NULL : strndup(text, (size_t)n);
}
