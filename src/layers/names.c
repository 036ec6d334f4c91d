/* names.c: collects names and merges them. Commands decide how many there are. */
#include "layers/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

int csn_names_add(csn_names *l, const char *name, uint32_t tree)
{
    size_t len = strlen(name) + 1;

    if (l->count >= CSN_LAYER_CHANGES_MAX)
        return -E2BIG;
    if (l->room - l->len < len) {
        size_t room = l->room ? 2 * l->room : 1024;
        char *text = realloc(l->text, room);
        if (!text)
            return -ENOMEM;
        l->text = text;
        l->room = room;
    }
    if (l->count == l->v_room) {
        size_t room = l->v_room ? 2 * l->v_room : 32;
        csn_name *v = reallocarray(l->v, room, sizeof(*v));
        if (!v)
            return -ENOMEM;
        l->v = v;
        l->v_room = room;
    }
    memcpy(l->text + l->len, name, len);
    l->v[l->count++] = (csn_name){.at = l->len, .in = tree};
    l->len += len;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const csn_name *)a)->text, ((const csn_name *)b)->text);
}

void csn_names_merge(csn_names *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        l->v[i].text = l->text + l->v[i].at;
    if (l->count > 1)
        qsort(l->v, l->count, sizeof(*l->v), by_text);
    for (size_t i = 0; i < l->count; i++)
        if (n > 0 && strcmp(l->v[n - 1].text, l->v[i].text) == 0)
            l->v[n - 1].in |= l->v[i].in;
        else
            l->v[n++] = l->v[i];
    l->count = n;
}

void csn_names_release(csn_names *l)
{
    free(l->text);
    free(l->v);
    *l = (csn_names){0};
}
