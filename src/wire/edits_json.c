/* edits_json.c: reads a list of edits from JSON.
 *
 * A model writes the document. json_read.h checks its syntax; this file checks every key by
 * name and type, so that a misspelt key is an error and not a silent default. The result owns
 * copies and never points into the document. */
#include "wire/edits_json.h"

#include "base/error.h"
#include "base/json_read.h"

static csn_status take_edit(const csn_jval *v, size_t nth, const char *what, csn_arena *a,
                            csn_edit_item *ret, csn_error **err)
{
    static const char *const known[] = {"old_string", "new_string", "replace_all", NULL};
    const char *old_string = NULL, *new_string = NULL;
    bool all = false;

    if (!csn_jval_is_object(v))
        return csn_fail(err, CSN_INVALID, "%s: edit %zu is not an object", what, nth);
    csn_status st = csn_jval_only(v, known, what, err);
    if (st == CSN_OK)
        st = csn_jget_str(v, "old_string", &old_string, err);
    if (st == CSN_OK)
        st = csn_jget_str(v, "new_string", &new_string, err);
    if (st == CSN_OK)
        st = csn_jget_bool(v, "replace_all", &all, err);
    if (st < 0)
        return st;
    if (!old_string || !new_string)
        return csn_fail(err, CSN_INVALID, "%s: edit %zu has no \"%s\"", what, nth,
                        old_string ? "new_string" : "old_string");
    ret->old_string = csn_arena_strdup(a, old_string);
    ret->new_string = csn_arena_strdup(a, new_string);
    ret->replace_all = all;
    if (!ret->old_string || !ret->new_string)
        return csn_fail(err, CSN_NOMEM, "%s: edit %zu", what, nth);
    return CSN_OK;
}

csn_status csn_wire_edits(const char *json, size_t len, const char *what, csn_arena *a,
                          csn_edit_item **ret, size_t *ret_count, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    csn_status st = csn_json_parse(json, len, what, &root, err);
    if (st < 0)
        return st;
    const csn_jval *list = csn_jval_is_object(root) ? csn_jval_get(root, "edits") : root;
    if (!list || !csn_jval_is_array(list) || csn_jval_count(list) == 0)
        return csn_fail(err, CSN_INVALID, "%s: not a list of edits", what);
    size_t count = csn_jval_count(list);
    csn_edit_item *items = csn_arena_array(a, count, sizeof(*items));
    if (!items)
        return csn_fail(err, CSN_NOMEM, "%s", what);
    for (size_t i = 0; i < count; i++) {
        st = take_edit(csn_jval_at(list, i), i + 1, what, a, &items[i], err);
        if (st < 0)
            return st;
    }
    *ret = items;
    *ret_count = count;
    return CSN_OK;
}
