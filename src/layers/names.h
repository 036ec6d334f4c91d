/* names.h: the names of a directory in several trees at once. Internal to src/layers. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct csn_name {
    const char *text;
    size_t at;   /* its place in the text of all */
    uint32_t in; /* one bit for each tree that has it */
} csn_name;

/* Zeroed: empty. */
typedef struct csn_names {
    char *text;
    size_t len, room;
    csn_name *v;
    size_t count, v_room;
} csn_names;

/* 0 or -errno; -E2BIG: more than CSN_LAYER_CHANGES_MAX. */
int csn_names_add(csn_names *l, const char *name, uint32_t tree);
/* Ends the additions: sorts bytewise, each name once. v[i].text is valid from now on. */
void csn_names_merge(csn_names *l);
void csn_names_release(csn_names *l);
