/* core_fallback.h: the places in which derived operations are tested, shared by
 * core_fallback*.c.
 *
 * One test body runs on every place: with dash and bash as sh over GNU tools, with busybox, and
 * with a PATH from which the better tools are missing (of this host's tools: a busybox shell
 * finds its own whatever the PATH). A test has a fresh directory, under its name inside (at)
 * and on the host (host). */
#pragma once
/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/bash.h"
#include "backends/busybox.h"
#include "core/fallback.h"

typedef struct place {
    const char *name;
    bool busybox;        /* else this host's tools */
    bool bash_as_sh;     /* on the host: bash in place of sh */
    bool no_times;       /* ls tells no usable time */
    bool no_t;           /* mv and ln do not know -T */
    bool old_find;       /* find does not know -printf */
    const char *missing; /* words: tools that are not in the PATH; NULL: all are */
    char path[96];       /* PATH=..., then */
    const csn_backend_ops *ops;
    void *state;
    csn_fs fs;
    char root[64];           /* on the host */
    char at[128], host[256]; /* the directory of the running test */
    unsigned count;
    unsigned execs; /* since the test began */
} place;

static place places[] = {
    {.name = "dash"},
    {.name = "bash", .bash_as_sh = true},
    {.name = "busybox", .busybox = true},
    {.name = "old find", .missing = "link", .old_find = true},
    {.name = "no find", .missing = "find link"},
    {.name = "no stat", .no_times = true, .missing = "stat", .old_find = true},
    {.name = "poor", .no_times = true, .missing = "find stat readlink link", .no_t = true},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* Counts what the operations cost, and puts bash in place of sh where asked. */
static csn_status counted_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                               csn_exec_end *ret, csn_error **err)
{
    place *p = state;
    const char *argv[16];
    const char *const env[] = {"LC_ALL=C", p->path, NULL};
    csn_exec_req mine = *req;
    char shell[80];

    p->execs++;
    if (p->missing)
        mine.env = env;
    if (p->bash_as_sh) {
        size_t n = 0;
        while (req->argv[n] && n < 15) {
            argv[n] = req->argv[n];
            n++;
        }
        argv[n] = NULL;
        snprintf(shell, sizeof(shell), "%s/sh", p->root);
        argv[0] = shell;
        mine.argv = argv;
    }
    return p->ops->exec(p->state, &mine, sink, ret, err);
}

static const csn_backend_ops counted = {
    .size = sizeof(csn_backend_ops), .name = "counted", .exec = counted_exec};

/* A PATH of links to this host's tools, without those that are missing here. */
static inline void make_path(place *p)
{
    static const char *const tools[] = {
        "cat", "chmod", "chown", "cp", "dd",   "find", "head", "link",     "ln", "ls", "mkdir",
        "mv",  "rm",    "rmdir", "sh", "stat", "sync", "tail", "readlink", "tr", "wc",
    };
    /* a tool that does not know an option of GNU's */
    static const char without[] =
        "#!/bin/sh\ncase \"$*\" in *'%s'*) echo 'invalid option' >&2; "
        "exit 1;; esac\nexec %s \"$@\"\n";
    char path[200], tool[64], words[100], script[200];

    snprintf(words, sizeof(words), " %s ", p->missing);
    snprintf(path, sizeof(path), "%s/bin", p->root);
    snprintf(p->path, sizeof(p->path), "PATH=%s/bin", p->root);
    assert_int_equal(mkdir(path, 0755), 0);
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        snprintf(tool, sizeof(tool), " %s ", tools[i]);
        if (strstr(words, tool))
            continue;
        snprintf(path, sizeof(path), "%s/bin/%s", p->root, tools[i]);
        snprintf(tool, sizeof(tool), "/bin/%s", tools[i]);
        if (access(tool, X_OK) != 0)
            snprintf(tool, sizeof(tool), "/usr/bin/%s", tools[i]);
        const char *no = NULL;
        if (p->no_t && (strcmp(tools[i], "mv") == 0 || strcmp(tools[i], "ln") == 0))
            no = "T ";
        else if (p->old_find && strcmp(tools[i], "find") == 0)
            no = "-printf";
        if (!no) {
            assert_int_equal(symlink(tool, path), 0);
            continue;
        }
        int len = snprintf(script, sizeof(script), without, no, tool);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        assert_int_equal(write(fd, script, (size_t)len), len);
        close(fd);
    }
}

static inline void place_open(place *p)
{
    char path[200];

    snprintf(p->root, sizeof(p->root), "/tmp/csn-fallback-XXXXXX");
    assert_non_null(mkdtemp(p->root));
    assert_int_equal(chmod(p->root, 0755), 0);
    if (p->busybox)
        p->ops = csn_test_busybox_ops(p->root, &p->state);
    else
        p->ops = csn_test_bash_ops(p->root, &p->state);
    if (!p->ops)
        return;
    if (p->missing)
        make_path(p);
    snprintf(path, sizeof(path), "%s/sh", p->root);
    if (p->bash_as_sh)
        assert_int_equal(symlink("/bin/bash", path), 0);
    p->fs = (csn_fs){.ops = &counted, .state = p};
}

static inline void place_close(place *p)
{
    csn_fs host = {.ops = &counted, .state = &places[0]};

    if (p->root[0])
        (void)csn_derive_remove(&host, p->root, CSN_FILE_RECURSIVE, NULL);
    if (p->busybox)
        csn_test_busybox_free(p->state);
    else
        csn_test_bash_free(p->state);
}

/* Setup and teardown of one test. */
static int fresh(void **state)
{
    place *p = *state;

    if (!p->ops) {
        print_message("# SKIP %s: %s\n", p->name, csn_test_backend_why());
        if (getenv("CSN_MUST_WORK"))
            fail_msg("%s: %s", p->name, csn_test_backend_why());
        skip();
    }
    p->count++;
    p->execs = 0;
    if (p->busybox)
        snprintf(p->at, sizeof(p->at), "/room/t%u", p->count);
    else
        snprintf(p->at, sizeof(p->at), "%s/t%u", p->root, p->count);
    snprintf(p->host, sizeof(p->host), "%s%s", p->busybox ? p->root : "", p->at);
    assert_int_equal(mkdir(p->host, 0755), 0);
    return 0;
}

/* "at/name" inside and "host/name"; static buffers, several at once. */
static inline const char *in(const place *p, const char *name)
{
    static char ring[8][8192];
    static unsigned next;
    char *s = ring[next++ % 8];

    snprintf(s, sizeof(ring[0]), "%s/%s", p->at, name);
    return s;
}

static inline const char *on_host(const place *p, const char *name)
{
    static char ring[8][8192];
    static unsigned next;
    char *s = ring[next++ % 8];

    snprintf(s, sizeof(ring[0]), "%s/%s", p->host, name);
    return s;
}

static inline void put(const place *p, const char *name, const void *data, size_t len)
{
    int fd = open(on_host(p, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

static inline void puts_to(const place *p, const char *name, const char *text)
{
    put(p, name, text, strlen(text));
}

/* What a file holds, as a static string (at most 64 KiB). */
static inline const char *get(const place *p, const char *name, size_t *ret_len)
{
    static char text[65537];
    int fd = open(on_host(p, name), O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    assert_true(n >= 0);
    text[n] = '\0';
    if (ret_len)
        *ret_len = (size_t)n;
    return text;
}

static inline bool there(const place *p, const char *name)
{
    struct stat st;

    return lstat(on_host(p, name), &st) == 0;
}

static inline unsigned mode_of(const place *p, const char *name)
{
    struct stat st;

    assert_int_equal(lstat(on_host(p, name), &st), 0);
    return st.st_mode & 07777;
}

/* Nothing of ours may stay: neither staged content nor what was moved aside. */
static inline void nothing_left(const place *p)
{
    DIR *d = opendir(p->host);

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, ".csn-", 5) == 0)
            fail_msg("left over: %s", e->d_name);
    closedir(d);
}

/* Expects a failure with this status and, when text is given, this in its message. */
static inline void failed(csn_status got, csn_status want, csn_error *err, const char *text)
{
    if (got != want)
        fail_msg("got %s (%s), want %s", csn_status_name(got), csn_error_message(err),
                 csn_status_name(want));
    assert_non_null(err);
    assert_int_equal(csn_error_code(err), want);
    if (text && !strstr(csn_error_message(err), text))
        fail_msg("'%s' is not in '%s'", text, csn_error_message(err));
    csn_error_free(err);
}

static inline void worked(csn_status got, csn_error *err)
{
    if (got != CSN_OK)
        fail_msg("%s: %s", csn_status_name(got), csn_error_message(err));
}
#define OK(call)                                                                               \
    do {                                                                                       \
        csn_error *err = NULL;                                                                 \
        worked((call), err);                                                                   \
    } while (0)
#define FAILS(status, text, call)                                                              \
    do {                                                                                       \
        csn_error *err = NULL;                                                                 \
        csn_status got_ = (call);                                                              \
        failed(got_, (status), err, (text));                                                   \
    } while (0)

/* Names that shells and tools like to misunderstand. */
static const char *const odd_names[] = {
    "plain",        "with space",   " lead", "trail ",    "-dash",       "--help",
    "new\nline",    "end\n",        "\n\n",  "tab\there", "it's",        "\"quoted\"",
    "$HOME",        "`id`",         "$(id)", "a;b",       "a&b|c",       "*",
    "?[a]",         "back\\slash",  "\\n",   "\\0101",    "%s%n",        "~",
    "...",          "..foo",        "-> x",  "a -> b",    "caf\xc3\xa9", "non\xffutf8",
    "\x01\x1b[31m", "\xe2\x80\xae", "{a,b}", "#x",        "!x",          "'",
    "\nE0\n",       "\xc3\x28",     "=",     "x' -> 'y",  "new\n\nline",
};
#define ODD_NAMES (sizeof(odd_names) / sizeof(odd_names[0]))
/* Where a command is run for each name, the lesser places do with every third. */
static inline bool left_out(const place *p, size_t i)
{
    return (p->missing || p->bash_as_sh) && i % 3 != 0;
}

/* Runs every body on every place, as one TAP list. */
typedef struct body {
    const char *name;
    CMUnitTestFunction fn;
} body;

static inline int run_bodies(const char *group, const body *bodies, size_t count)
{
    struct CMUnitTest *tests = calloc(count * PLACES, sizeof(*tests));
    char(*names)[128] = calloc(count * PLACES, sizeof(*names));
    size_t n = 0;

    if (!tests || !names)
        return 1;
    for (size_t i = 0; i < PLACES; i++)
        place_open(&places[i]);
    for (size_t i = 0; i < PLACES; i++)
        for (size_t j = 0; j < count; j++, n++) {
            snprintf(names[n], sizeof(names[n]), "%s: %s", places[i].name, bodies[j].name);
            tests[n] = (struct CMUnitTest){.name = names[n],
                                           .test_func = bodies[j].fn,
                                           .setup_func = fresh,
                                           .initial_state = &places[i]};
        }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = _cmocka_run_group_tests(group, tests, n, NULL, NULL);
    for (size_t i = PLACES; i > 0; i--)
        place_close(&places[i - 1]);
    free(tests);
    free(names);
    return rc;
}
