/* protected_scan.c: after a command: what changed in the workspace, and is it harmless?
 *
 * Runs with the scan lock held, as the caller, on the host's directory. Names, contents, links
 * and permissions in it are the agent's, whose other processes may still run. Invariants:
 * everything is reached by plain names from held directories, never through a link; a file is
 * checked by what was read from one descriptor; a file that is not understood or cannot be read
 * is moved to quarantine; what could not be scanned is reported. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/log.h"
#include "base/path.h"
#include "os/beneath.h"
#include "policy/protected_names.h"
#include "search/changed.h"

#define TEXT_MAX  (1u << 20)   /* larger configs are not judged */
#define INDEX_MAX (512u << 20) /* larger indexes are not judged */
#define TRIES     16           /* against one who puts it back each time */
#define MOVED     "it was moved here"
#define LEFT      "it was not changed, but may have been moved here; it was left"

#define OPENED_MAX 64u

/* A directory that was closed, and what its mode was. */
typedef struct opened {
    int fd;
    mode_t mode;
} opened;

typedef struct looking {
    csn_runtime *rt;
    csn_protected *g;
    csn_protected_tree *t;
    const struct timespec *since;
    const csn_deny_sink *denials;
    bool recalled;  /* all that is remembered was asked for */
    bool undecided; /* and would have been needed */
    opened opened[OPENED_MAX];
    size_t opened_count;
} looking;

/* ---- what the start has taken care of ---- */

/* Below a place that is read-only in the sandbox, and that nobody has replaced since? */
static bool is_held(const csn_protected_tree *t, const char *path)
{
    csn_protected_id id;

    for (size_t i = 0; i < t->place_count; i++) {
        const csn_protected_place *p = &t->places[i];
        size_t n = strlen(p->path);
        if (!p->rule || p->absent || strncmp(path, p->path, n) != 0 ||
            (path[n] != '\0' && path[n] != '/'))
            continue;
        if (csn_protected_identify(t->fd, p->path, &id) && memcmp(&id, &p->id, sizeof(id)) == 0)
            return true;
    }
    return false;
}

static bool is_open(const looking *l, const char *below)
{
    csn_autofree char *path = NULL;

    if (l->g->open_count == 0)
        return false;
    if (asprintf(&path, "%s/%s", l->t->inside, below) < 0) {
        path = NULL;
        return false;
    }
    return csn_protected_is_excepted(l->g, path);
}

/* ---- judging ---- */

/* All of a regular file; *ret is malloc'd. Not ours to read, or too large: an error. */
static int read_all(int fd, size_t max, char **ret, size_t *ret_len)
{
    struct stat st;
    size_t len = 0;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    if ((uint64_t)st.st_size > max)
        return -EFBIG;
    size_t room = (size_t)st.st_size + 1;
    csn_autofree char *buf = malloc(room);
    if (!buf)
        return -ENOMEM;
    for (ssize_t n = 1; n > 0; len += (size_t)n) {
        if (len == room)
            return -EAGAIN; /* it grows while it is read */
        n = read(fd, buf + len, room - len);
        if (n < 0)
            return -errno;
    }
    *ret = CSN_STEAL(buf);
    *ret_len = len;
    return 0;
}

static int open_plain(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* How long object names are, from the config that git would read beside this index. One line
 * that says so, and no other: with anything else the index is not understood, which is safe. */
static size_t hash_len(int dir)
{
    static const char key[] = "objectformat";
    csn_autofd int own = open_plain(dir, "config");
    /* In the directory of a worktree the config is that of the repository it belongs to. */
    csn_autofd int shared =
        own == -ENOENT ? csn_beneath_open(dir, "../../config", O_RDONLY, CSN_BENEATH_ROOTED)
                       : -1;
    csn_autofree char *text = NULL;
    size_t len = 0;

    if (read_all(own >= 0 ? own : shared, TEXT_MAX, &text, &len) < 0 || len == 0)
        return 20;
    text[len - 1] = '\0';
    const char *at = strcasestr(text, key);
    if (!at || strcasestr(at + 1, key))
        return 20;
    at += strlen(key);
    at += strspn(at, " \t");
    if (*at != '=')
        return 20;
    at += 1 + strspn(at + 1, " \t");
    return strncmp(at, "sha256", 6) == 0 && strspn(at + 6, " \t\r") == strcspn(at + 6, "\n")
               ? 32
               : 20;
}

/* The number of the rule for git configs. */
static uint8_t config_rule(void)
{
    uint8_t rule = 0;

    while (rule < UINT8_MAX &&
           csn_protected_name_rule_kind(rule) != CSN_PROTECTED_NAME_GITCONFIG)
        rule++;
    return rule;
}

/* Where a harmless file leads must be a plain directory of the workspace, or nothing. */
static bool leads_well(const csn_protected_tree *t, const char *dir)
{
    csn_autofd int fd =
        csn_beneath_open(t->fd, *dir ? dir : ".", O_PATH | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);

    return fd >= 0 || fd == -ENOENT;
}

/* Why the text is not harmless; malloc'd, NULL: it is. */
static char *judge_text(const looking *l, csn_protected_content *doc, int more)
{
    csn_protected_content_verdict v;
    char *why = NULL;

    doc->workspace = l->t->named;
    csn_protected_content_check(doc, &v);
    if (!v.harmless)
        why = strdup(v.why ? v.why : "not harmless");
    else if (v.real_dir && !leads_well(l->t, v.real_dir))
        why = strdup("it leads through a link, or to what is no directory");
    if (!why && v.also && more > 0) {
        csn_autofd int fd = csn_beneath_open(l->t->fd, v.also, O_RDONLY, CSN_BENEATH_NOFOLLOW);
        csn_autofree char *text = NULL;
        csn_protected_content also = {.rule = config_rule(), .path = v.also};
        int rc = read_all(fd, TEXT_MAX, &text, &also.len);
        also.text = text;
        if (rc == 0)
            why = judge_text(l, &also, more - 1);
        else if (rc != -ENOENT)
            why = strdup("the config it leads to cannot be read");
    }
    csn_protected_content_verdict_release(&v);
    return why;
}

static char *judge(const looking *l, const csn_changed *hit)
{
    csn_protected_name_kind kind = csn_protected_name_rule_kind(hit->rule);
    csn_protected_content doc = {
        .rule = hit->rule, .path = hit->path, .link = S_ISLNK(hit->st->st_mode)};
    csn_autofree char *text = NULL;

    if (doc.link || kind == CSN_PROTECTED_NAME_ALWAYS)
        return strdup(doc.link ? "a symbolic link" : "");
    csn_autofd int fd = open_plain(hit->dir, hit->name);
    int rc = read_all(fd, kind == CSN_PROTECTED_NAME_GITINDEX ? INDEX_MAX : TEXT_MAX, &text,
                      &doc.len);
    if (rc == -ENOENT)
        return NULL;
    if (rc < 0)
        return strdup("it cannot be read");
    doc.text = text;
    doc.hash_len = kind == CSN_PROTECTED_NAME_GITINDEX ? hash_len(hit->dir) : 0;
    char *why = judge_text(l, &doc, 1);
    if (!why || strcmp(hit->path, ".git/config") != 0)
        return why;
    /* The user's own, and replaced by the user: else it would be held. What was in it may be.
     */
    csn_autofree char *rest = csn_protected_gitconfig_strip(l->t, doc.text, doc.len, &doc.len);
    if (!rest)
        return why;
    free(why);
    doc.text = rest;
    return judge_text(l, &doc, 1);
}

/* ---- consequences ---- */

/* In doubt it is. */
static bool is_there(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno != ENOENT;
    return !S_ISDIR(st.st_mode);
}

/* Until the name is free: another process may put it back. */
static int take_away(const looking *l, int dir, const char *name, const char *from,
                     char **ret_path)
{
    int rc = -ENOENT;

    for (int i = 0; i < TRIES && is_there(dir, name); i++) {
        csn_autofree char *path = NULL;
        rc = csn_quarantine_file(&l->g->aside, l->rt->id, dir, name, from, &path);
        if (rc < 0)
            break;
        if (path && !*ret_path)
            *ret_path = CSN_STEAL(path);
    }
    return rc == 0 && is_there(dir, name) ? -EBUSY : rc;
}

static void set_aside(const looking *l, int dir, const char *name, const char *below,
                      const char *rule)
{
    csn_autofree char *was = NULL, *from = NULL, *now = NULL, *worse = NULL;

    if (asprintf(&was, "%s/%s", l->t->host, below) < 0)
        was = NULL;
    csn_autofree char *shown = was ? csn_path_printable(was) : NULL;
    if (asprintf(&from, "%s\n%s\n", shown ? shown : "?", rule) < 0)
        from = NULL;
    int rc = take_away(l, dir, name, from ? from : "", &now);
    if (rc == -ENOENT && !now)
        return; /* it went by itself */
    if (rc < 0 && asprintf(&worse, "%s; it is still there: %s", rule, strerrordesc_np(-rc)) < 0)
        worse = NULL;
    csn_log_debug("sandbox '%s': %s was set aside", l->rt->id, shown ? shown : "?");
    csn_protected_report(l->denials, l->t, below, worse ? worse : rule, now);
}

/* What is left in place is said once. */
static bool is_news(const looking *l, const struct stat *st)
{
    const csn_scan_cache_dir id = {.dev = st->st_dev,
                                   .ino = st->st_ino,
                                   .sec = st->st_ctim.tv_sec,
                                   .nsec = (uint32_t)st->st_ctim.tv_nsec};

    if (csn_scan_cache_has(&l->g->told, &id))
        return false;
    csn_scan_cache_add(&l->g->told, &id);
    return true;
}

/* An old file, in a directory that may have been moved to its meaningful name just now. When
 * the last scan has seen the file but not that directory under that name, it was. A file that
 * came between that scan and this command is not of the sandbox's making. Without a memory, or
 * for such a file, it stays. */
static bool was_moved_here(const csn_protected_tree *t, const struct stat *st)
{
    const struct timespec *then = &t->remembered, *c = &st->st_ctim;

    return t->remembers && (c->tv_sec < then->tv_sec ||
                            (c->tv_sec == then->tv_sec && c->tv_nsec <= then->tv_nsec));
}

static int change_mode(int fd, mode_t mode)
{
    char link[40];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fd may be O_PATH */
    return chmod(link, mode & 07777);
}

/* For its owner, who we are, until it was looked through (close_again). One too many stays
 * open. Through the descriptor nothing else than what was looked at is changed. */
static bool open_for_us(looking *l, int fd)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
        change_mode(fd, st.st_mode | S_IRUSR | S_IXUSR) < 0)
        return false;
    int kept = l->opened_count < OPENED_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (kept >= 0)
        l->opened[l->opened_count++] = (opened){.fd = kept, .mode = st.st_mode};
    return true;
}

static void close_again(looking *l)
{
    while (l->opened_count > 0) {
        const opened *o = &l->opened[--l->opened_count];
        (void)change_mode(o->fd, o->mode);
        close(o->fd);
    }
}

/* git can use a directory that it cannot list. Ours to list it is when it is ours. */
static int open_up(looking *l, const csn_changed *hit)
{
    csn_autofd int fd =
        openat(hit->dir, hit->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (open_for_us(l, fd))
        return CSN_CHANGED_AGAIN;
    csn_protected_report(l->denials, l->t, hit->path, "a directory that cannot be listed",
                         NULL);
    return 0;
}

static char *rule_text(const csn_changed *hit, const char *why, const char *more)
{
    bool bare = !*why && !*more;
    char *text = NULL;
    int n = asprintf(&text, "%s%s%s%s%s%s", csn_protected_name_rule_text(hit->rule),
                     bare ? "" : " (", why, *why && *more ? "; " : "", more, bare ? "" : ")");

    return n < 0 ? NULL : text;
}

static int on_hit(void *ctx, const csn_changed *hit)
{
    looking *l = ctx;

    if (hit->unlisted)
        return open_up(l, hit);
    if (is_open(l, hit->path) || is_held(l->t, hit->path))
        return 0;
    csn_autofree char *why = judge(l, hit);
    if (!why)
        return 0;
    if (hit->moved && !l->recalled) {
        l->undecided = true;
        return 0;
    }
    bool moved = hit->moved && was_moved_here(l->t, hit->st), stays = hit->moved && !moved;
    csn_autofree char *text = rule_text(hit, why, stays ? LEFT : moved ? MOVED : "");
    const char *rule = text ? text : csn_protected_name_rule_text(hit->rule);
    if (!stays)
        set_aside(l, hit->dir, hit->name, hit->path, rule);
    else if (is_news(l, hit->st))
        csn_protected_report(l->denials, l->t, hit->path, rule, NULL);
    return 0;
}

/* A file that the user's config includes, and that was not there when the sandbox started. 0,
 * or -errno: nobody knows whether it is now. */
static int look_for_absent(const looking *l, const csn_protected_place *p)
{
    csn_autofree char *dir = csn_path_dir(p->path);
    csn_autofd int fd =
        dir ? csn_beneath_open(l->t->fd, dir, O_RDONLY | O_DIRECTORY, 0) : -ENOMEM;

    if (fd < 0)
        return csn_protected_is_absent(-fd) ? 0 : fd;
    if (is_there(fd, csn_path_base(p->path)) && !is_open(l, p->path))
        set_aside(l, fd, csn_path_base(p->path), p->path, p->rule);
    return 0;
}

/* A command may close the workspace itself behind it. */
static bool open_root(looking *l)
{
    struct stat st;

    return fstat(l->t->fd, &st) == 0 &&
           (st.st_mode & (S_IRUSR | S_IXUSR)) != (S_IRUSR | S_IXUSR) &&
           open_for_us(l, l->t->fd);
}

static int scan_tree(looking *l)
{
    csn_protected_tree *t = l->t;
    struct timespec start;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &start); /* the finer one: nothing older has a later time */
    /* Others that have the sandbox may know better what the last scan found. */
    l->recalled = t->remembers && l->g->stamp < 0;
    do {
        if (l->undecided) {
            csn_protected_cache_load(t);
            l->recalled = true;
            l->undecided = false;
        }
        rc = csn_changed_scan(t->fd, &csn_protected_name_rules, l->since, on_hit, l, &t->memory,
                              NULL);
        if (rc == -EACCES && open_root(l))
            rc = csn_changed_scan(t->fd, &csn_protected_name_rules, l->since, on_hit, l,
                                  &t->memory, NULL);
    } while (rc == 0 && l->undecided);
    for (size_t n = 0; n < t->place_count; n++) {
        int lost = t->places[n].absent ? look_for_absent(l, &t->places[n]) : 0;
        rc = rc == 0 ? lost : rc;
    }
    close_again(l);
    if (rc < 0)
        return rc;
    csn_changed_memory_keep(&t->memory);
    t->remembered = start;
    t->remembers = t->scanned = true;
    return 0;
}

int csn_protected_scan(csn_runtime *rt, const struct timespec *since,
                       const csn_deny_sink *denials)
{
    csn_protected *g = rt->jail->protected;
    int worst = 0;

    for (size_t i = 0; i < g->tree_count; i++) {
        looking l = {.rt = rt, .g = g, .t = &g->trees[i], .since = since, .denials = denials};
        csn_autofree char *text = NULL;
        int rc = l.t->fd < 0 ? -ENOENT : scan_tree(&l);
        if (rc == 0)
            continue;
        worst = rc;
        if (asprintf(&text, "it could not be looked through: %s", strerrordesc_np(-rc)) < 0)
            text = NULL;
        csn_protected_report(denials, l.t, "", text ? text : "it could not be looked through",
                             NULL);
    }
    return worst;
}
