/* scan_fixture.h: scans of the room of a test, and what they found. */
#pragma once
#include "git_fixture.h"
#include "policy/protected_names.h"
#include "search/changed.h"

#define LEN(array) (sizeof(array) / sizeof(*(array)))
#define HIT_MAX    64

typedef struct hits {
    char *paths[HIT_MAX];
    csn_changed kept[HIT_MAX]; /* without what they point to */
    size_t count;
    csn_changed_count stats;
    int rc;
} hits;

static git_fixture r;
static csn_changed_memory *known; /* NULL but where a test remembers */

static int setup(void **state)
{
    (void)state;
    git_room_make(&r);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    git_room_wipe(&r);
    return 0;
}

static int keep(void *ctx, const csn_changed *hit)
{
    hits *h = ctx;
    struct stat st;

    /* what we are given is what is there */
    assert_int_equal(fstatat(hit->dir, hit->name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(st.st_ino == hit->st->st_ino);
    if (h->count == HIT_MAX || hit->old) /* escape/c3_targets.sh tries what is old */
        return hit->old ? 0 : 1;
    h->paths[h->count] = strdup(hit->path);
    h->kept[h->count++] = *hit;
    return 0;
}

static void hits_free(hits *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->paths[i]);
    memset(h, 0, sizeof(*h));
}

/* Fills h with what changed since then; NULL: ever. */
static void look(hits *h, const struct timespec *since)
{
    static const struct timespec ever = {0};

    memset(h, 0, sizeof(*h));
    h->rc = csn_changed_scan(r.fd, &csn_protected_name_rules, since ? since : &ever, keep, h,
                             known, &h->stats);
}

static inline const csn_changed *found(const hits *h, const char *path)
{
    const csn_changed *hit = NULL;

    for (size_t i = 0; i < h->count; i++) {
        if (strcmp(h->paths[i], path) != 0)
            continue;
        assert_null(hit); /* told once */
        hit = &h->kept[i];
    }
    return hit;
}

static inline void must_find(const char *const *want, size_t n, const struct timespec *since)
{
    hits h;

    look(&h, since);
    assert_int_equal(h.rc, 0);
    for (size_t i = 0; i < n; i++)
        if (!found(&h, want[i]))
            fail_msg("%s was not found", want[i]);
    if (h.count > n)
        fail_msg("%zu more than wanted; the last is %s", h.count - n, h.paths[h.count - 1]);
    hits_free(&h);
}

/* A moment that everything made before is older than. Files may be stamped by the finer clock,
 * so the coarse one has to pass it. */
static inline struct timespec a_moment(void)
{
    struct timespec fine, coarse;

    clock_gettime(CLOCK_REALTIME, &fine);
    do {
        usleep(1000);
        csn_changed_now(&coarse);
    } while (coarse.tv_sec < fine.tv_sec ||
             (coarse.tv_sec == fine.tv_sec && coarse.tv_nsec <= fine.tv_nsec));
    return coarse;
}

static inline void link_to(const char *target, const char *path)
{
    assert_int_equal(symlinkat(target, r.fd, path), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
