/* command_record.c: a snapshot before each command, and the list of files that it changed.
 *
 * The snapshot freezes the upper layer, so the layers that were open before the command still
 * have every file as it was: the difference of two lists of changes, one before and one after
 * the command, is what the command changed, with the content of both sides. If another command
 * runs, there is no snapshot; a file that was changed twice then has no hash `before`. */
#include "core/command_record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "core/layer_access.h"

struct csn_command_record {
    csn_layer_access before;
    csn_layer_changes list;
    csn_arena *arena; /* of the event's changes */
    csn_audit_change *changes;
    size_t count;
    uint64_t total;
};

static int ignore_entry(void *ctx, const csn_snapshot_entry *e)
{
    (void)ctx;
    (void)e;
    return 0;
}

/* Takes a snapshot unless something runs. */
static csn_status save(csn_sandbox *sb, csn_error **err)
{
    csn_layer_access a;
    csn_status st = csn_layer_access_recover(sb, &a, err);
    bool running = st == CSN_OK && a.running;

    csn_layer_access_close(&a);
    if (st == CSN_OK && !running)
        st = sb->ops->workspace->snapshot(sb->state, NULL, CSN_SNAPSHOT_AUTOMATIC, ignore_entry,
                                          NULL, err);
    return st < 0 ? csn_wrap(st, err, "snapshot before the command") : st;
}

csn_status csn_command_record_begin(csn_call *c, csn_command_record **ret, csn_error **err)
{
    csn_sandbox *sb = c->sb;

    *ret = NULL;
    if (!(sb->config->flags & (CSN_OPEN_UNDO | CSN_OPEN_RECORD)))
        return CSN_OK;
    csn_status st = save(sb, err);
    if (st < 0 || !(sb->config->flags & CSN_OPEN_RECORD))
        return st;
    csn_command_record *r = calloc(1, sizeof(*r));
    if (!r)
        return csn_fail(err, CSN_NOMEM, "record changes");
    r->arena = csn_arena_new();
    st = csn_layer_access_open(sb, &r->before, err);
    if (st == CSN_OK && r->arena)
        st = csn_layer_changes_list(&r->before.stack, NULL, &r->list, err);
    else if (st == CSN_OK)
        st = csn_fail(err, CSN_NOMEM, "record changes");
    if (st < 0) {
        csn_command_record_free(r);
        return csn_wrap(st, err, "record changes");
    }
    *ret = r;
    return CSN_OK;
}

/* ---- the difference of two lists ---- */

/* One side of a change: in the layers, or in the base. */
typedef struct side {
    const csn_layer_stack *stack;
    const csn_layer_change *change;
    bool after;
} side;

static const csn_change_side *side_of(const side *s)
{
    return s->after ? &s->change->after : &s->change->before;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_side(const csn_change_side *a, const csn_change_side *b)
{
    return a->mode == b->mode && a->size == b->size && a->dev == b->dev && a->ino == b->ino &&
           same_time(a->mtime, b->mtime) && same_time(a->ctime, b->ctime);
}

/* NULL: no regular file or link, or it is not the same any more. */
static const char *hash_side(csn_arena *arena, const side *s)
{
    const csn_change_side *seen = side_of(s);
    char hex[CSN_HASH_HEX], chunk[65536];
    struct stat st;
    csn_hash h;
    ssize_t n;

    if (S_ISLNK(seen->mode)) {
        csn_autofree char *text = csn_layer_readlink(s->stack, s->change, s->after);
        if (!text)
            return NULL;
        csn_hash_bytes(text, strlen(text), hex);
        return csn_arena_strdup(arena, hex);
    }
    csn_autofd int fd =
        S_ISREG(seen->mode) ? csn_layer_open(s->stack, s->change, s->after) : -1;
    if (fd < 0)
        return NULL;
    csn_hash_init(&h);
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        csn_hash_add(&h, chunk, (size_t)n);
    if (n < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != seen->size ||
        !same_time(st.st_mtim, seen->mtime))
        return NULL;
    csn_hash_hex(&h, hex);
    return csn_arena_strdup(arena, hex);
}

static void add(csn_command_record *r, const side *before, const side *after)
{
    const csn_change_side *b = side_of(before), *a = side_of(after);

    if (r->total++ >= CSN_AUDIT_CHANGES_MAX)
        return;
    csn_audit_change *to = &r->changes[r->count];
    *to = (csn_audit_change){.path = csn_arena_strdup(r->arena, after->change->path),
                             .existed = b->mode != 0,
                             .exists = a->mode != 0,
                             .before = hash_side(r->arena, before),
                             .after = hash_side(r->arena, after)};
    r->count += to->path != NULL;
}

/* The order of csn_layer_changes: bytewise per component. */
static int compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int x = *a == '/' ? 1 : *a ? (unsigned char)*a + 2 : 0;
    int y = *b == '/' ? 1 : *b ? (unsigned char)*b + 2 : 0;
    return x - y;
}

static void compare_lists(csn_command_record *r, const csn_layer_stack *now,
                          const csn_layer_changes *list)
{
    const csn_layer_stack *then = &r->before.stack;
    size_t i = 0, k = 0;

    while (i < r->list.count || k < list->count) {
        const csn_layer_change *old = i < r->list.count ? &r->list.v[i] : NULL;
        const csn_layer_change *new = k < list->count ? &list->v[k] : NULL;
        int order = !old ? 1 : !new ? -1 : compare_paths(old->path, new->path);
        if (order < 0) /* as the base has it again */
            add(r, &(side){then, old, true}, &(side){then, old, false});
        else if (order > 0)
            add(r, &(side){now, new, false}, &(side){now, new, true});
        else if (!same_side(&old->after, &new->after))
            add(r, &(side){then, old, true}, &(side){now, new, true});
        i += order <= 0;
        k += order >= 0;
    }
}

void csn_command_record_end(csn_call *c, csn_command_record *r)
{
    csn_layer_changes list = {0};
    csn_layer_access now;

    if (!r)
        return;
    r->changes = csn_arena_array(r->arena, CSN_AUDIT_CHANGES_MAX, sizeof(*r->changes));
    csn_status st = csn_layer_access_open(c->sb, &now, NULL);
    if (st == CSN_OK && r->changes)
        st = csn_layer_changes_list(&now.stack, NULL, &list, NULL);
    if (st == CSN_OK && r->changes)
        compare_lists(r, &now.stack, &list);
    csn_layer_changes_release(&list);
    csn_layer_access_close(&now);
    c->event.changes = r->changes;
    c->event.change_count = r->count;
    c->event.change_total = r->total;
    c->event.changes_unknown = st < 0 || !r->changes;
}

void csn_command_record_free(csn_command_record *r)
{
    if (!r)
        return;
    csn_layer_changes_release(&r->list);
    csn_layer_access_close(&r->before);
    csn_arena_free(r->arena);
    free(r);
}
