/* shared_list.c: a list that is the same in one result after another is converted once.
 *
 * Each result of a command has the layers of its sandbox, forty strings that rarely change.
 * Converting them takes longer than all other fields together. The last list is kept with the
 * text it was made of, and frozen, because several results refer to it. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

static bool append(shared_list *l, const char *s)
{
    size_t len = s ? strlen(s) + 1 : 1;

    if (l->used + len > l->cap) {
        size_t cap = 2 * (l->used + len);
        char *more = realloc(l->text, cap);
        if (!more)
            return false;
        l->text = more;
        l->cap = cap;
    }
    memcpy(l->text + l->used, s ? s : "\1", len);
    l->used += len;
    return true;
}

/* The strings of all items, one after another. */
static bool serialize(shared_list *l, const shape *s, const char *items, size_t count)
{
    l->used = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < s->count; k++) {
            const char *text;
            memcpy(&text, items + i * s->size + s->fields[k].offset, sizeof(text));
            if (!append(l, text))
                return false;
        }
    return true;
}

static void keep(instance *in, napi_env env, napi_value list)
{
    shared_list old = in->kept;

    if (old.list)
        napi_delete_reference(env, old.list);
    in->kept = in->candidate;
    in->candidate = (shared_list){.text = old.text, .cap = old.cap};
    in->kept.list = NULL;
    napi_object_freeze(env, list);
    napi_create_reference(env, list, 1, &in->kept.list);
}

napi_value shared_list_convert(instance *in, napi_env env, const shape *s, const void *items,
                               size_t count)
{
    napi_value list = NULL;
    shared_list *now = &in->candidate, *kept = &in->kept;

    if (!serialize(now, s, items, count))
        return convert_list(in, env, s, items, count);
    if (kept->list && kept->used == now->used &&
        memcmp(kept->text, now->text, now->used) == 0 &&
        napi_get_reference_value(env, kept->list, &list) == napi_ok && list)
        return list;
    list = convert_list(in, env, s, items, count);
    if (list)
        keep(in, env, list);
    return list;
}

void shared_list_release(instance *in)
{
    free(in->kept.text);
    free(in->candidate.text);
}
