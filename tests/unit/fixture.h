/* fixture.h: a local sandbox's file side alone, without keeper or core, on the corpus tree. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "corpus.h"
#include "runtime/runtime.h"

typedef struct room {
    corpus fx;
    csn_config config;
    csn_runtime l;
    char home[96];
} room;

__attribute__((unused)) static csn_status room_try_open(room *r, csn_error **err)
{
    memset(&r->l, 0, sizeof(r->l));
    r->l.config = &r->config;
    r->l.run_fd = r->l.keeper_fd = r->l.keeper_pidfd = r->l.stop_fd = -1;
    r->l.base.fd = r->l.home.fd = -1;
    r->l.id = strdup("local-1-test");
    pthread_mutex_init(&r->l.commit_lock, NULL);
    r->l.backend = "room";
    r->l.commit_fd = -1;
    r->l.file_uid = geteuid();
    r->l.file_max = r->l.config ? r->l.config->file_max : 0;
    return csn_runtime_grants_open(&r->l, err);
}

__attribute__((unused)) static void room_close(room *r)
{
    csn_runtime_grants_close(&r->l);
    pthread_mutex_destroy(&r->l.commit_lock);
    if (r->l.run_fd >= 0)
        close(r->l.run_fd);
    free(r->l.run_path);
    free(r->l.id);
    memset(&r->l, 0, sizeof(r->l));
}

/* The tree, and a sandbox whose base it is. The home is beside it and counts as outside. */
__attribute__((unused)) static void room_make(room *r)
{
    memset(r, 0, sizeof(*r));
    corpus_build(&r->fx, false);
    snprintf(r->home, sizeof(r->home), "%s/outdir", r->fx.top);
    r->config.size = sizeof(r->config);
    r->config.workspace = r->fx.root;
    r->config.home = r->home;
    assert_int_equal(room_try_open(r, NULL), CSN_OK);
}

/* Opens the sandbox again with what was changed in r->config. */
__attribute__((unused)) static void room_again(room *r)
{
    room_close(r);
    assert_int_equal(room_try_open(r, NULL), CSN_OK);
}

__attribute__((unused)) static void room_clean(room *r)
{
    room_close(r);
    corpus_wipe(&r->fx);
}

typedef struct room_bytes {
    char data[4096]; /* the first of them */
    uint64_t len, counted;
    int answer; /* what the sink says, CSN_SINK_* */
} room_bytes;

__attribute__((unused)) static int room_sink(void *ctx, int stream, const void *data,
                                             size_t len)
{
    room_bytes *b = ctx;

    (void)stream;
    if (!data) {
        b->counted += len;
        return CSN_SINK_COUNT;
    }
    if (b->len < sizeof(b->data)) {
        size_t n = sizeof(b->data) - (size_t)b->len;
        memcpy(b->data + b->len, data, len < n ? len : n);
    }
    b->len += len;
    return b->answer;
}

__attribute__((unused)) static csn_status room_read(room *r, const char *path, room_bytes *b,
                                                    csn_error **err)
{
    csn_file_stat st;
    csn_sink sink = {room_sink, b};

    return csn_runtime_read(&r->l, path, 0, 0, CSN_NO_LIMIT, &sink, &st, err);
}

typedef struct room_text {
    const char *at;
    size_t left;
} room_text;

__attribute__((unused)) static int64_t room_source(void *ctx, void *buf, size_t len)
{
    room_text *t = ctx;
    size_t n = len < t->left ? len : t->left;

    memcpy(buf, t->at, n);
    t->at += n;
    t->left -= n;
    return (int64_t)n;
}

__attribute__((unused)) static csn_status room_write_opts(room *r, const char *path,
                                                          const char *text, uint32_t flags,
                                                          uint32_t mode, const char *if_hash,
                                                          csn_error **err)
{
    room_text t = {text, strlen(text)};
    csn_written w = {0};
    csn_write_req req = {.path = path,
                         .source = {room_source, &t},
                         .flags = flags,
                         .mode = mode,
                         .if_hash = if_hash};
    csn_status st = csn_runtime_write(&r->l, &req, 1, &w, err);

    free(w.resolved_path);
    return st;
}

__attribute__((unused)) static csn_status room_write(room *r, const char *path,
                                                     const char *text, uint32_t flags)
{
    return room_write_opts(r, path, text, flags, 0, NULL, NULL);
}

/* Does the file hold exactly this, seen without caisson? */
__attribute__((unused)) static bool room_holds(room *r, const char *path, const char *text)
{
    char buf[4096];
    int fd = openat(r->fx.fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

__attribute__((unused)) static bool room_has(room *r, const char *path)
{
    struct stat st;

    return fstatat(r->fx.fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A number that changes when anything in the tree does: names, types, modes, content sizes. */
typedef struct room_print {
    uint64_t sum, temps;
} room_print;

static int room_print_entry(void *ctx, const char *path, const struct stat *st,
                            const char *target)
{
    room_print *p = ctx;
    uint64_t h = 1469598103934665603u;

    for (const char *s = path; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    for (const char *s = target ? target : ""; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    h = (h ^ st->st_mode) * 1099511628211u;
    h = (h ^ st->st_ino) * 1099511628211u;
    h = (h ^ st->st_nlink) * 1099511628211u;
    if (!S_ISDIR(st->st_mode)) {
        h = (h ^ (uint64_t)st->st_size) * 1099511628211u;
        h = (h ^ (uint64_t)st->st_mtim.tv_nsec) * 1099511628211u;
    }
    p->sum += h;
    p->temps += strstr(path, ".csn-") != NULL;
    return 0;
}

__attribute__((unused)) static room_print room_fingerprint(room *r)
{
    room_print p = {0};
    int fd = openat(r->fx.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(csn_tree_walk(fd, room_print_entry, &p) == 0, "walk");
    close(fd);
    return p;
}
