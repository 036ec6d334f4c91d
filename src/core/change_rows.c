/* change_rows.c: builds the rows of csn_diff and csn_commit from a list of changes. */
#include "core/change_rows.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "layers/diff.h"
#include "layers/originals.h"

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Times of a directory change with its contents, which have rows of their own. */
static bool host_changed(const csn_layer_access *access, const csn_layer_change *c)
{
    csn_original o = {.content = -1};

    if (access->originals >= 0 && !S_ISDIR(c->before.mode))
        (void)csn_original_find(access->originals, c->path, &o);
    if (o.content >= 0)
        close(o.content);
    if (o.known)
        return !csn_original_is_current(&o, &c->before);
    return c->before.mode != 0 && !S_ISDIR(c->before.mode) &&
           is_later(c->before.ctime, access->since);
}

static bool has_content(const csn_layer_change *c)
{
    return S_ISREG(c->before.mode) || S_ISREG(c->after.mode) || S_ISLNK(c->before.mode) ||
           S_ISLNK(c->after.mode);
}

static csn_status fill_facts(csn_arena *arena, const csn_layer_stack *stack,
                             const csn_layer_change *c, uint32_t want, csn_change *to,
                             csn_error **err)
{
    unsigned facts = (want & CSN_DIFF_COUNTS ? CSN_FACTS_LINES : 0) |
                     (want & CSN_DIFF_HASHES ? CSN_FACTS_HASHES : 0);
    csn_diff_facts f;

    if (facts == 0 || !has_content(c))
        return CSN_OK;
    csn_status st = csn_diff_facts_read(stack, c, facts, &f, err);
    if (st < 0)
        return st;
    to->binary = f.binary;
    to->lines_added = f.added;
    to->lines_removed = f.removed;
    to->hash_before = f.before_hash[0] ? csn_arena_strdup(arena, f.before_hash) : NULL;
    to->hash_after = f.after_hash[0] ? csn_arena_strdup(arena, f.after_hash) : NULL;
    return (f.before_hash[0] && !to->hash_before) || (f.after_hash[0] && !to->hash_after)
               ? csn_fail(err, CSN_NOMEM, "changes")
               : CSN_OK;
}

csn_status csn_change_rows(csn_arena *arena, const csn_layer_access *access,
                           const csn_layer_changes *changes, csn_commit_guard *guard,
                           uint32_t want, csn_change **ret, csn_error **err)
{
    csn_change *rows = csn_arena_array(arena, changes->count + 1, sizeof(*rows));
    csn_status st = rows ? CSN_OK : csn_fail(err, CSN_NOMEM, "changes");

    for (size_t i = 0; st == CSN_OK && i < changes->count; i++) {
        const csn_layer_change *c = &changes->v[i];
        rows[i] = (csn_change){.path = csn_arena_strdup(arena, c->path),
                               .kind = c->kind,
                               .mode_before = c->before.mode,
                               .mode_after = c->after.mode,
                               .size_before = c->before.size,
                               .size_after = c->after.size,
                               .host_changed = host_changed(access, c),
                               .held = csn_commit_guard_rule(guard, c)};
        st = rows[i].path ? fill_facts(arena, &access->stack, c, want, &rows[i], err)
                          : csn_fail(err, CSN_NOMEM, "changes");
    }
    if (st == CSN_OK)
        *ret = rows;
    return st;
}
