/* protected_scan.c: finds protected files that a command created or changed.
 *
 * Runs with the scan lock held, as the caller, on the host's directory. The agent, whose other
 * processes may still run, controls names, contents, links and permissions.
 *
 * Invariants: files are opened by plain names in open directories, never through a link; the
 * text that is checked was read from one descriptor; a file that cannot be read or parsed is
 * moved to quarantine; a workspace that could not be scanned is reported. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/error.h"
#include "base/log.h"
#include "base/path.h"
#include "os/beneath.h"
#include "policy/protected_names.h"
#include "search/changed.h"

#define TEXT_MAX  (1u << 20)   /* larger configs count as unreadable */
#define INDEX_MAX (512u << 20) /* larger indexes count as unreadable */
#define TRIES     16           /* while another process puts the file back */
#define MOVED     "moved here"
#define LEFT      "not changed, but possibly moved here; left in place"

#define WIDENED_MAX 64u
#define WALKS       3 /* while directories are moved */

/* A directory whose mode was changed for the scan, and the mode it had. */
typedef struct widened {
    int fd;
    mode_t mode;
} widened;

typedef struct scan {
    csn_runtime *rt;
    csn_protected *g;
    csn_protected_tree *t;
    const struct timespec *own;   /* from when changes of this sandbox count; NULL: none */
    const struct timespec *since; /* may be earlier: see adopted */
    csn_protected_adopted adopted;
    const csn_deny_sink *denials;
    bool cache_loaded; /* with what other sandboxes scanned meanwhile */
    bool needs_cache;  /* a hit cannot be decided without it */
    widened widened[WIDENED_MAX];
    size_t widened_count;
} scan;

/* ---- files that need no check ---- */

/* True if a file has, or had at the start, further names: then it may change below a mount. */
static bool is_shared(const csn_protected_tree *t, const char *path)
{
    for (size_t i = 0; i < t->place_count; i++)
        if (t->places[i].shared && csn_path_below(path, t->places[i].path))
            return true;
    return false;
}

/* True below a read-only mount whose file is still the same. */
static bool is_still_mounted(const csn_protected_tree *t, const char *path)
{
    csn_protected_id id;

    for (size_t i = 0; i < t->place_count; i++) {
        const csn_protected_place *p = &t->places[i];
        size_t n = strlen(p->path);
        if (!p->rule || p->absent || p->link || strncmp(path, p->path, n) != 0 ||
            (path[n] != '\0' && path[n] != '/'))
            continue;
        if (csn_protected_identify(t->fd, p->path, &id) && memcmp(&id, &p->id, sizeof(id)) == 0)
            return true;
    }
    return false;
}

static bool is_excepted(const scan *s, const char *below)
{
    csn_autofree char *path = NULL;

    if (s->g->exception_count == 0)
        return false;
    if (asprintf(&path, "%s/%s", s->t->inside, below) < 0) {
        path = NULL;
        return false;
    }
    return csn_protected_is_excepted_target(s->g, path);
}

/* ---- checking contents ---- */

/* Reads a whole regular file into *ret, malloc'd. */
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
            return -EAGAIN; /* the file grew meanwhile */
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

/* Length of object names according to the config of this index. Without exactly one line about
 * the format, 20 is assumed: a sha256 index then fails to parse and is moved to quarantine. */
static size_t hash_len(int dir)
{
    static const char key[] = "objectformat";
    csn_autofd int own = open_plain(dir, "config");
    /* a worktree uses the config of its repository */
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

static uint8_t config_rule(void)
{
    uint8_t rule = 0;

    while (rule < UINT8_MAX &&
           csn_protected_name_rule_kind(rule) != CSN_PROTECTED_NAME_GITCONFIG)
        rule++;
    return rule;
}

/* A harmless file may refer only to a plain directory of the workspace, or to none. */
static bool is_plain_or_absent(const csn_protected_tree *t, const char *dir)
{
    csn_autofd int fd =
        csn_beneath_open(t->fd, *dir ? dir : ".", O_PATH | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);

    return fd >= 0 || fd == -ENOENT;
}

/* NULL: harmless; else the reason, malloc'd. */
static char *check_text(const scan *s, csn_protected_content *doc, int more)
{
    csn_protected_content_verdict v;
    char *why = NULL;

    doc->workspace = s->t->named;
    csn_protected_content_check(doc, &v);
    if (!v.harmless)
        why = strdup(v.why ? v.why : "not harmless");
    else if (v.real_dir && !is_plain_or_absent(s->t, v.real_dir))
        why =
            strdup("it refers to a path with a link, or to something that is not a directory");
    if (!why && v.also && more > 0) {
        csn_autofd int fd = csn_beneath_open(s->t->fd, v.also, O_RDONLY, CSN_BENEATH_NOFOLLOW);
        csn_autofree char *text = NULL;
        csn_protected_content also = {.rule = config_rule(), .path = v.also};
        int rc = read_all(fd, TEXT_MAX, &text, &also.len);
        also.text = text;
        if (rc == 0)
            why = check_text(s, &also, more - 1);
        else if (rc != -ENOENT)
            why = strdup("the config it refers to cannot be read");
    }
    csn_protected_content_verdict_release(&v);
    return why;
}

static char *check_file(const scan *s, const csn_changed *hit)
{
    csn_protected_name_kind kind = csn_protected_name_rule_kind(hit->rule);
    csn_protected_content doc = {
        .rule = hit->rule, .path = hit->path, .link = S_ISLNK(hit->st->st_mode)};
    csn_autofree char *text = NULL;

    if (doc.link || kind == CSN_PROTECTED_NAME_ALWAYS || kind == CSN_PROTECTED_NAME_FILE)
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
    char *why = check_text(s, &doc, 1);
    if (!why || strcmp(hit->path, ".git/config") != 0)
        return why;
    /* If the mount is gone, the user replaced the file: the user's lines are not checked. */
    csn_autofree char *rest = csn_protected_gitconfig_strip(s->t, doc.text, doc.len, &doc.len);
    if (!rest)
        return why;
    free(why);
    doc.text = rest;
    return check_text(s, &doc, 1);
}

/* ---- quarantine ---- */

static bool may_exist(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* Repeats until the name is free, since another process may put the file back. */
static int move_out(const scan *s, int dir, const char *name, const char *from, char **ret_path)
{
    int rc = -ENOENT;

    for (int i = 0; i < TRIES && may_exist(dir, name); i++) {
        csn_autofree char *path = NULL;
        rc = csn_quarantine_file(&s->g->quarantine, s->rt->id, dir, name, from, &path);
        if (rc < 0)
            break;
        if (path && !*ret_path)
            *ret_path = CSN_STEAL(path);
    }
    return rc == 0 && may_exist(dir, name) ? -EBUSY : rc;
}

static void quarantine_file(const scan *s, int dir, const char *name, const char *below,
                            const char *rule)
{
    csn_autofree char *was = NULL, *from = NULL, *now = NULL, *worse = NULL;

    if (asprintf(&was, "%s/%s", s->t->host, below) < 0)
        was = NULL;
    csn_autofree char *shown = was ? csn_path_printable(was) : NULL;
    if (asprintf(&from, "%s\n%s\n", shown ? shown : "?", rule) < 0)
        from = NULL;
    int rc = move_out(s, dir, name, from ? from : "", &now);
    if (rc == -ENOENT && !now)
        return; /* it was removed meanwhile */
    if (rc < 0 &&
        asprintf(&worse, "%s; it could not be removed: %s", rule, csn_errno_text(-rc)) < 0)
        worse = NULL;
    csn_log_debug("sandbox '%s': %s was moved to quarantine", s->rt->id, shown ? shown : "?");
    csn_protected_report(s->denials, s->t, below, worse ? worse : rule, now);
}

/* A file that stays in place is reported once. */
static bool is_first_report(const scan *s, const struct stat *st)
{
    const csn_scan_cache_dir id = {.dev = st->st_dev,
                                   .ino = st->st_ino,
                                   .sec = st->st_ctim.tv_sec,
                                   .nsec = (uint32_t)st->st_ctim.tv_nsec};

    if (csn_scan_cache_has(&s->g->reported, &id))
        return false;
    csn_scan_cache_add(&s->g->reported, &id);
    return true;
}

/* Decides about an unchanged file in a directory that the last scan did not see at this place.
 * True if the file is older than that scan: the directory was moved since. A newer file was not
 * made by a sandbox and stays. If there was no scan, the file counts as moved. */
static bool was_moved_here(const csn_protected_tree *t, const struct stat *st)
{
    const struct timespec *then = &t->cached_at, *c = &st->st_ctim;

    return !t->has_cache || c->tv_sec < then->tv_sec ||
           (c->tv_sec == then->tv_sec && c->tv_nsec <= then->tv_nsec);
}

static int change_mode(int fd, mode_t mode)
{
    char link[40];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fd may be O_PATH */
    return chmod(link, mode & 07777);
}

/* Adds read and search permission until restore_modes, if we own the directory. Beyond
 * WIDENED_MAX directories the mode is not restored. Using the descriptor ensures that the mode
 * of the same directory is restored. */
static bool make_readable(scan *s, int fd)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
        change_mode(fd, st.st_mode | S_IRUSR | S_IXUSR) < 0)
        return false;
    int kept = s->widened_count < WIDENED_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (kept >= 0)
        s->widened[s->widened_count++] = (widened){.fd = kept, .mode = st.st_mode};
    return true;
}

static void restore_modes(scan *s)
{
    while (s->widened_count > 0) {
        const widened *o = &s->widened[--s->widened_count];
        (void)change_mode(o->fd, o->mode);
        close(o->fd);
    }
}

/* git can use a directory that it cannot list, so make it readable and scan it. */
static int open_unlisted(scan *s, const csn_changed *hit)
{
    csn_autofd int fd =
        openat(hit->dir, hit->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (make_readable(s, fd))
        return CSN_CHANGED_AGAIN;
    csn_protected_report(s->denials, s->t, hit->path, "a directory that cannot be listed",
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

/* For places to which a protected file leads. */
static void quarantine_place(void *ctx, int dir, const char *name, const char *below,
                             const char *rule)
{
    const scan *s = ctx;

    if (!is_excepted(s, below) && (!is_still_mounted(s->t, below) || is_shared(s->t, below)))
        quarantine_file(s, dir, name, below, rule);
}

/* Packages that are installed below an agent's directory have hundreds of links. */
static bool is_installed(const char *path)
{
    return strstr(path, "/node_modules/") != NULL;
}

/* Follows an unchanged file; nothing that an exception or a mount covers. */
static void check_old(scan *s, const csn_changed *hit)
{
    if (is_excepted(s, hit->path) || is_still_mounted(s->t, hit->path) ||
        is_installed(hit->path))
        return;
    if (!csn_protected_check_refers(s->t, s->since, s->cache_loaded || s->t->has_cache, hit,
                                    quarantine_place, s))
        s->needs_cache = true;
}

static bool is_earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Changed before this sandbox: by one that ended without a scan. */
static bool is_adopted(const scan *s, const struct stat *st)
{
    return s->adopted.count > 0 && (!s->own || is_earlier(&st->st_ctim, s->own));
}

static int check_hit(void *ctx, const csn_changed *hit)
{
    scan *s = ctx;

    if (hit->unlisted)
        return open_unlisted(s, hit);
    if (hit->old) {
        check_old(s, hit);
        return 0;
    }
    if (is_excepted(s, hit->path) ||
        (is_adopted(s, hit->st)
             ? csn_protected_marks_held(&s->adopted, hit->path)
             : is_still_mounted(s->t, hit->path) && !is_shared(s->t, hit->path)))
        return 0;
    csn_autofree char *why = check_file(s, hit);
    if (!why)
        return 0;
    bool moved = hit->moved && was_moved_here(s->t, hit->st), stays = hit->moved && !moved;
    if (stays && !s->cache_loaded) {
        s->needs_cache = true;
        return 0;
    }
    csn_autofree char *text = rule_text(hit, why, stays ? LEFT : moved ? MOVED : "");
    const char *rule = text ? text : csn_protected_name_rule_text(hit->rule);
    if (!stays)
        quarantine_file(s, hit->dir, hit->name, hit->path, rule);
    else if (is_first_report(s, hit->st))
        csn_protected_report(s->denials, s->t, hit->path, rule, NULL);
    return 0;
}

/* A command may have removed permissions of the workspace itself. */
static bool make_root_readable(scan *s)
{
    struct stat st;

    return fstat(s->t->fd, &st) == 0 &&
           (st.st_mode & (S_IRUSR | S_IXUSR)) != (S_IRUSR | S_IXUSR) &&
           make_readable(s, s->t->fd);
}

/* The places of this walk are those of the last scan from now on. A record is only saved if no
 * other sandbox has changes that this scan left to it. */
static void keep_memory(csn_protected *g, csn_protected_tree *t, const struct timespec *start,
                        bool save)
{
    bool same = csn_scan_cache_same(&t->cache.now, &t->cache.were);

    csn_changed_memory_keep(&t->cache);
    t->cached_at = *start;
    t->has_cache = true;
    if (save)
        csn_protected_cache_save(g, t, same);
    else if (!same)
        t->record_ino = 0;
}

static int ignore_hit(void *ctx, const csn_changed *hit)
{
    (void)ctx;
    (void)hit;
    return 0;
}

/* One walk; again if a directory was moved meanwhile. */
static int walk(scan *s)
{
    csn_protected_tree *t = s->t;
    int rc = -EAGAIN;

    for (int i = 0; i < WALKS && rc == -EAGAIN; i++) {
        rc = csn_changed_scan(t->fd, &csn_protected_name_rules, s->since, check_hit, s,
                              &t->cache, NULL);
        if (rc == -EACCES && make_root_readable(s))
            rc = -EAGAIN;
    }
    return rc;
}

static int scan_tree(scan *s)
{
    csn_protected_tree *t = s->t;
    struct timespec start;
    int rc = 0;

    /* not the coarse clock, which may lag behind the times of existing files */
    clock_gettime(CLOCK_REALTIME, &start);
    do {
        if (s->needs_cache) {
            csn_protected_cache_load(s->g, t);
            s->cache_loaded = true;
            s->needs_cache = false;
        }
        rc = walk(s);
    } while (rc == 0 && s->needs_cache);
    int lost = csn_protected_check_places(t, s->since, quarantine_place, s);
    rc = rc == 0 ? lost : rc;
    restore_modes(s);
    if (rc < 0)
        return rc;
    keep_memory(s->g, t, &start, !s->adopted.others);
    return 0;
}

/* Reads what the last scan of each workspace saw, or walks it. */
static void survey_tree(csn_protected *g, csn_protected_tree *t, bool clean)
{
    struct timespec start;

    csn_protected_cache_load(g, t);
    /* What this sandbox has changed already must not count as seen. */
    if (t->has_cache || !clean || t->fd < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &start);
    int rc = csn_changed_scan(t->fd, &csn_protected_name_rules, &start, ignore_hit, NULL,
                              &t->cache, NULL);
    if (rc < 0)
        csn_log_debug("workspace %s cannot be surveyed: %s", t->host, csn_errno_text(-rc));
    else
        keep_memory(g, t, &start, false);
}

void csn_protected_prepare(csn_runtime *rt)
{
    csn_protected *g = rt->jail->protected;

    pthread_mutex_lock(&g->scan_lock);
    pthread_mutex_lock(&g->lock);
    bool prepared = g->prepared, clean = g->clean;
    pthread_mutex_unlock(&g->lock);
    for (size_t i = 0; !prepared && i < g->tree_count; i++)
        survey_tree(g, &g->trees[i], clean);
    pthread_mutex_lock(&g->lock);
    g->prepared = true;
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_unlock(&g->scan_lock);
}

/* Scans one workspace, with the changes of sandboxes that ended before they were scanned. */
static int scan_all(scan *s)
{
    csn_protected_adopted *a = &s->adopted;

    if (s->t->fd < 0)
        return -ENOENT;
    csn_protected_marks_adopt(s->rt, s->t, a);
    if (!s->own && a->count == 0)
        return 0;
    s->since = a->count > 0 && (!s->own || is_earlier(&a->since, s->own)) ? &a->since : s->own;
    int rc = scan_tree(s);
    csn_protected_marks_release(s->t, a, rc == 0);
    return rc;
}

int csn_protected_scan(csn_runtime *rt, const struct timespec *since,
                       const csn_deny_sink *denials)
{
    csn_protected *g = rt->jail->protected;
    int worst = 0;

    for (size_t i = 0; i < g->tree_count; i++) {
        scan s = {.rt = rt, .g = g, .t = &g->trees[i], .own = since, .denials = denials};
        csn_autofree char *text = NULL;
        int rc = scan_all(&s);
        if (rc == 0)
            continue;
        worst = rc;
        if (asprintf(&text, "could not be scanned: %s", csn_errno_text(-rc)) < 0)
            text = NULL;
        csn_protected_report(denials, s.t, "", text ? text : "could not be scanned", NULL);
    }
    return worst;
}
