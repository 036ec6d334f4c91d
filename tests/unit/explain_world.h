/* explain_world.h: the file systems that the tests of explain ask about, as a table, and checks
 * that show a list of denials as text. */
#pragma once
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/explain.h"

/* Who has it: the command (and may write it), the host (and its user may read, write it). */
enum {
    IN = 1,
    IN_W = 2,
    HOST = 4,
    HOST_R = 8,
    HOST_W = 16,
    DIR = 32,
    SOCK = 64,
    LINK = 128,
    DENIED = 256,
    HIDDEN = 512,
    MINE = HOST | HOST_R | HOST_W,
    BOTH_RW = IN | IN_W | MINE,
    BOTH_RO = IN | MINE
};

typedef struct thing {
    const char *path;
    unsigned is;
    const char *resolved, *needs;
} thing;

static const thing world[] = {
    {"/", IN | HOST | HOST_R | DIR, NULL, NULL},
    {"/home", HOST | HOST_R | DIR, NULL, NULL},
    {"/home/me", MINE | DIR, NULL, NULL},
    {"/home/me/x", MINE, NULL, NULL},
    {"/home/me/it's", MINE, NULL, NULL},
    {"/home/me/dir", MINE | DIR, NULL, NULL},
    {"/home/me/dir/x", MINE, NULL, NULL},
    {"/home/me/dir/x.h", MINE, NULL, NULL},
    {"/home/me/dir/a b", MINE, NULL, NULL},
    {"/home/me/dir/package.json", MINE, NULL, NULL},
    {"/home/me/dir/.git", MINE | DIR, NULL, NULL},
    {"/home/me/theirs", HOST, NULL, NULL},
    {"/home/me/theirs.d", HOST | HOST_R | DIR, NULL, NULL},
    {"/home/me/.bashrc", MINE, NULL, NULL},
    {"/home/me/.ssh", MINE | DIR, NULL, NULL},
    {"/home/me/.ssh/id_rsa", MINE, NULL, NULL},
    {"/home/me/keys/id_ed25519", MINE, NULL, NULL},
    {"/home/me/.config/tool.json", MINE, NULL, NULL},
    {"/home/me/.config/gh/hosts.yml", MINE, NULL, NULL},
    {"/home/me/.nvm/versions/node/v20/bin", MINE | DIR, NULL, NULL},
    {"/home/me/.nvm/versions/node/v20/bin/node", MINE, NULL, NULL},
    {"/home/me/.cargo/bin/cargo", MINE, NULL, NULL},
    {"/home/me/.cargo/bin", BOTH_RO | DIR, NULL, NULL},
    {"/home/me/.rustup", MINE | DIR, NULL, NULL},
    {"/home/me/.local/bin/pipx-tool", MINE | LINK,
     "/home/me/.local/share/venvs/t/bin/pipx-tool", NULL},
    {"/home/me/.local/bin", MINE | DIR, NULL, NULL},
    {"/home/me/.local/bin/mine", MINE, NULL, NULL},
    {"/home/me/libs/libz9.so", MINE, NULL, NULL},
    {"/usr/bin/python3", IN | HOST | HOST_R, NULL, NULL},
    {"/usr/bin/env", IN | HOST | HOST_R, NULL, NULL},
    {"/usr/bin/sh", IN | HOST | HOST_R, NULL, NULL},
    {"/usr/bin/linked", HOST | HOST_R | LINK, "/home/me/.nvm/versions/node/v20/bin/node", NULL},
    {"/usr/bin", IN | HOST | HOST_R | DIR, NULL, NULL},
    {"/usr", IN | HOST | HOST_R | DIR, NULL, NULL},
    {"/etc", IN | HOST | HOST_R | DIR, NULL, NULL},
    {"/etc/passwd", IN | HOST | HOST_R, NULL, NULL},
    {"/etc/shadow", HOST | HOST_R, NULL, NULL},
    {"/var/run/docker.sock", MINE | SOCK, "/run/docker.sock", NULL},
    {"/tmp/ssh-AbC/agent.12", MINE | SOCK, NULL, NULL},
    {"/srv/odd.socket", MINE | SOCK, NULL, NULL},
    {"/proj", BOTH_RW | DIR, NULL, NULL},
    {"/proj/a.c", BOTH_RW, NULL, NULL},
    {"/proj/denied", BOTH_RO | DENIED, NULL, NULL},
    {"/proj/node", BOTH_RW, NULL, NULL},
    {"/proj/script", BOTH_RW, NULL, "/home/me/.nvm/versions/node/v20/bin/node"},
    {"/proj/innocent", MINE | LINK, "/home/me/.ssh/id_rsa", NULL},
    {"/proj/trap/x", MINE, "/home/me/x", NULL},
    {"/proj/trap/.ssh", MINE | DIR, "/home/me/.ssh", NULL},
    {"/proj/../home/me/dir/x", MINE, "/home/me/dir/x", NULL},
    {"/proj/../../home/me/dir/x", MINE, "/home/me/dir/x", NULL},
    {"/proj/../lost", MINE, NULL, NULL},
    {"/ro", BOTH_RO | DIR, NULL, NULL},
    {"/ro/f", BOTH_RO, NULL, NULL},
    {"/ro/out", BOTH_RO | DIR, NULL, NULL},
    {"/ro/.git", BOTH_RO | DIR, NULL, NULL},
    {"/ro/.git/config", BOTH_RO, NULL, NULL},
    {"/ro/.git/hooks", BOTH_RO | DIR, NULL, NULL},
    {"/rootsown", IN | HOST | HOST_R | DIR, NULL, NULL},
    {"/tmp/note", MINE, NULL, NULL},
    {"/data", MINE | DIR, NULL, NULL},
    {"/data/set.csv", MINE, NULL, NULL},
    {"/hidden", HIDDEN, NULL, NULL},
    {"/hidden/f", HIDDEN, NULL, NULL},
    {"/hidden/f.c", HIDDEN, NULL, NULL},
    {"/hidden/id_rsa", HIDDEN, NULL, NULL},
    {"/hidden/new", HIDDEN, NULL, NULL},
    {"/hidden/kit/bin/tool", HIDDEN, NULL, NULL},
    {"/evil", MINE, "/home/\x1b[2Jme", NULL},
    {NULL, 0, NULL, NULL},
};

#define EXPLAIN_PATH                                                                           \
    "/home/me/.nvm/versions/node/v20/bin:/home/me/.cargo/bin:relative::"                       \
    "/home/me/.local/bin:/usr/bin"

static unsigned looks;

static void look(void *ctx, const char *path, csn_explain_fact *ret)
{
    (void)ctx;
    looks++;
    assert_int_equal(path[0], '/');
    assert_false(ret->host || ret->inside || ret->resolved);
    for (const thing *t = world; t->path; t++) {
        if (strcmp(t->path, path) != 0)
            continue;
        *ret = (csn_explain_fact){.inside = t->is & IN,
                                  .inside_readable = (t->is & IN) && !(t->is & DENIED),
                                  .inside_writable = t->is & IN_W,
                                  .hidden = t->is & HIDDEN,
                                  .host = t->is & HOST,
                                  .host_readable = t->is & HOST_R,
                                  .host_writable = t->is & HOST_W,
                                  .dir = t->is & DIR,
                                  .socket = t->is & SOCK,
                                  .link = t->is & LINK,
                                  .resolved = t->resolved,
                                  .needs = t->needs,
                                  .rule = t->is & DENIED ? "deny it" : NULL,
                                  .source = t->is & IN ? "config.read[0]" : NULL};
        return;
    }
}

static bool refuses(void *ctx, const char *syscall)
{
    (void)ctx;
    return strcmp(syscall, "unshare") == 0 || strcmp(syscall, "mount") == 0;
}

static inline csn_explain_in input(const char *text)
{
    return (csn_explain_in){
        .err = {.data = text, .len = text ? strlen(text) : 0},
        .exit_code = 1,
        .argv0 = "sh",
        .cwd = "/proj",
        .home = "/home/me",
        .host_home = "/home/me",
        .host_path = EXPLAIN_PATH,
        .path = EXPLAIN_PATH,
        .libs = "/home/me/libs",
        .probe = look,
        .refuses = refuses,
        .net_rule = "network none",
        .disk_max = 64u << 20,
        .file_max = 1u << 20,
        .memory_max = 3u << 30,
        .pids_max = 100,
    };
}

/* "op target -> hint" of all denials, each on a line; "" for none. */
static inline char *tell(const csn_explain_in *in)
{
    static char out[8192];
    csn_explain_out found = {0};
    size_t n = 0;

    looks = 0;
    assert_int_equal(csn_explain(in, &found, NULL), CSN_OK);
    assert_true(looks <= CSN_EXPLAIN_PROBES_MAX);
    out[0] = '\0';
    for (size_t i = 0; i < found.count; i++) {
        const csn_denial *d = &found.items[i];
        assert_non_null(d->rule);
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s %s -> %s", i ? "\n" : "", d->op,
                              d->target ? d->target : "-", d->hint ? d->hint : "-");
        assert_true(n < sizeof(out));
    }
    csn_explain_release(&found);
    return out;
}

static inline void check_in(const csn_explain_in *in, const char *want)
{
    const char *got = tell(in);

    if (strcmp(got, want) != 0)
        fail_msg("%.300s\n  found: %s\n  want:  %s", in->err.data ? in->err.data : "", got,
                 want);
}

static inline void check(const char *text, const char *want)
{
    csn_explain_in in = input(text);
    check_in(&in, want);
}

#define SECRET  "no grant is offered: it may hold keys or passwords"
#define SERVICE "no grant is offered: a service of the host answers there"
#define SYSTEM  "no grant is offered: the host's own programs and settings live there"
#define STARTED "no grant is offered: what is written there, the host would run"
#define WIDE    "no grant is offered: it holds too much; grant something below it"
#define READ_X  "read /home/me/dir/x -> --read /home/me/dir"
#define NODE    "exec node -> --read /home/me/.nvm/versions/node/v20"
