/* aside.c: csn_aside_list, csn_aside_restore and csn_aside_remove: protected files that a jail
 * moved out of a workspace (backend/jail/quarantine.c).
 *
 *   <state>/aside/SANDBOX/N/item   the file
 *   <state>/aside/SANDBOX/N/from   its former path, quoted as csn_path_printable does; the
 * reason
 *
 * An agent made the items, chose their names, and may change the workspace at the same time.
 * Invariants: no symlink is followed, neither in the store nor on the path to which an item
 * goes back; only a plain name in an open directory is changed; nothing is replaced unless the
 * caller asks for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "caisson/records.h"
#include "core/internal.h"
#include "core/result.h"
#include "os/atomic.h"
#include "os/beneath.h"
#include "os/statedir.h"
#include "os/tree.h"

#define ITEM      "item"
#define FROM      "from"
#define FROM_MAX  (4u * CSN_PATH_MAX + 4096u)
#define CHUNK     65536u
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- the note of its origin ---------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reverses csn_path_printable in place. Returns the text after the closing quote, or NULL. */
static char *unquote(char *text)
{
    char *to = text, *p = text + 1;

    if (text[0] != '\'')
        return NULL;
    while (*p && *p != '\'') {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (p[1] == 'x' && hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0) {
            *to++ = (char)(hex_digit(p[2]) * 16 + hex_digit(p[3]));
            p += 4;
        } else if (p[1] == '\'' || p[1] == '\\') {
            *to++ = p[1];
            p += 2;
        } else {
            return NULL;
        }
    }
    if (*p != '\'')
        return NULL;
    *to = '\0';
    return p + 1;
}

typedef struct origin {
    char *text; /* malloc'd; the others point into it */
    const char *path, *reason;
    int64_t moved_ms;
} origin;

/* A note that is missing or damaged leaves fields NULL. 0 or -errno. */
static int read_origin(int slot, origin *ret)
{
    csn_autofd int fd =
        openat(slot, FROM, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    csn_autofree char *text = malloc(FROM_MAX + 1);
    struct stat st;

    *ret = (origin){0};
    if (!text)
        return -ENOMEM;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    ret->moved_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    ssize_t n = pread(fd, text, FROM_MAX, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    char *rest = unquote(text);
    if (!rest || *rest != '\n')
        return 0;
    rest[1 + strcspn(rest + 1, "\n")] = '\0';
    ret->path = text[0] == '/' ? text : NULL;
    ret->reason = rest[1] ? rest + 1 : NULL;
    ret->text = CSN_STEAL(text);
    return 0;
}

/* ---- list ---------------------------------------------------------------------------- */

typedef struct listing {
    csn_arena *arena;
    const char *path; /* of the store */
    csn_aside_entry *items;
    size_t count, room;
} listing;

static int add_bytes(void *ctx, const char *path, const struct stat *st, const char *target)
{
    uint64_t *bytes = ctx;

    (void)path;
    (void)target;
    *bytes += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    return 0;
}

static const char *type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "directory";
    return S_ISLNK(mode) ? "symlink" : "other";
}

static bool grow(listing *l)
{
    if (l->count < l->room)
        return true;
    size_t room = l->room ? l->room * 2 : 64;
    csn_aside_entry *more = reallocarray(l->items, room, sizeof(*more));
    if (!more)
        return false;
    l->items = more;
    l->room = room;
    return true;
}

static bool is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");

    return n > 0 && n < 10 && s[n] == '\0';
}

/* 0 or -errno. A slot without an item is being filled and is skipped. */
static int add_slot(listing *l, int dir, const char *sandbox, const char *number)
{
    csn_autofd int slot = is_number(number) ? openat(dir, number, DIR_FLAGS) : -1;
    struct stat st;
    origin o;

    if (slot < 0 || fstatat(slot, ITEM, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    int rc = read_origin(slot, &o);
    if (rc < 0 || !grow(l))
        return rc < 0 ? rc : (free(o.text), -ENOMEM);
    csn_aside_entry *e = &l->items[l->count];
    *e = (csn_aside_entry){
        .id = csn_arena_printf(l->arena, "%s/%s", sandbox, number),
        .sandbox = csn_arena_strdup(l->arena, sandbox),
        .path = o.path ? csn_arena_strdup(l->arena, o.path) : NULL,
        .reason = o.reason ? csn_arena_strdup(l->arena, o.reason) : NULL,
        .kept = csn_arena_printf(l->arena, "%s/%s/%s/" ITEM, l->path, sandbox, number),
        .type = type_of(st.st_mode),
        .bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
        .moved_ms = o.moved_ms};
    if (S_ISDIR(st.st_mode)) {
        csn_autofd int tree = openat(slot, ITEM, DIR_FLAGS);
        if (tree >= 0)
            (void)csn_tree_walk(tree, add_bytes, &e->bytes);
    }
    bool whole =
        e->id && e->sandbox && e->kept && !e->path == !o.path && !e->reason == !o.reason;
    free(o.text);
    l->count += whole;
    return whole ? 0 : -ENOMEM;
}

/* Calls add_slot for each entry of the directory of a sandbox. */
static int add_sandbox(listing *l, int store, const char *sandbox)
{
    int fd = csn_name_valid(sandbox) ? openat(store, sandbox, DIR_FLAGS) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    int rc = 0;

    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;)
        rc = add_slot(l, fd, sandbox, e->d_name);
    closedir(dir);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const csn_aside_entry *x = a, *y = b;

    if (x->moved_ms != y->moved_ms)
        return x->moved_ms < y->moved_ms ? -1 : 1;
    size_t lx = strlen(x->id), ly = strlen(y->id);
    return lx != ly ? (lx < ly ? -1 : 1) : strcmp(x->id, y->id);
}

static int read_store(listing *l, int store)
{
    DIR *dir = fdopendir(store);
    int rc = dir ? 0 : -errno;

    if (!dir)
        close(store);
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;)
        rc = add_sandbox(l, store, e->d_name);
    if (dir)
        closedir(dir);
    return rc;
}

csn_status csn_aside_list(csn_aside_list_result **ret, csn_error **err)
{
    csn_autofree char *path = NULL;

    if (!ret)
        return csn_fail(err, CSN_INVALID, "aside: no place for the list");
    csn_aside_list_result *r = csn_result_new(sizeof(*r));
    if (!r)
        return csn_fail(err, CSN_NOMEM, "aside");
    int store = csn_statedir_find(CSN_DIR_STATE, "aside", &path);
    listing l = {.arena = csn_result_arena(r), .path = path};
    int rc = store >= 0 ? read_store(&l, store) : store == -ENOENT ? 0 : store;
    csn_aside_entry *items =
        rc == 0 ? csn_arena_array(l.arena, l.count + 1, sizeof(*items)) : NULL;
    if (items && l.count > 0) {
        qsort(l.items, l.count, sizeof(*items), by_time);
        memcpy(items, l.items, l.count * sizeof(*items));
    }
    r->items = items;
    r->count = l.count;
    free(l.items);
    if (!items) {
        csn_result_free(r);
        return csn_statedir_fail(err, rc < 0 ? -rc : ENOMEM, CSN_DIR_STATE, "aside");
    }
    *ret = r;
    return CSN_OK;
}

void csn_aside_list_free(csn_aside_list_result *r)
{
    csn_result_free(r);
}

/* ---- one entry ----------------------------------------------------------------------- */

/* An open entry: the directory of its sandbox, its own, and its number. */
typedef struct entry {
    int sandbox, slot;
    char number[16];
} entry;

static void entry_close(entry *e)
{
    if (e->slot >= 0)
        close(e->slot);
    if (e->sandbox >= 0)
        close(e->sandbox);
}

static csn_status entry_open(const char *id, entry *ret, csn_error **err)
{
    const char *slash = id ? strchr(id, '/') : NULL;
    csn_autofree char *sandbox = slash ? strndup(id, (size_t)(slash - id)) : NULL;
    csn_autofree char *shown = csn_path_printable(id ? id : "");

    if (!sandbox || !csn_name_valid(sandbox) || !is_number(slash + 1)) {
        csn_status st =
            csn_fail(err, CSN_INVALID, "%s is not the id of an entry", shown ? shown : "it");
        return csn_error_advise(st, err, "an id is SANDBOX/NUMBER");
    }
    *ret = (entry){.sandbox = -1, .slot = -1};
    snprintf(ret->number, sizeof(ret->number), "%s", slash + 1);
    csn_autofd int store = csn_statedir_find(CSN_DIR_STATE, "aside", NULL);
    if (store < 0 && store != -ENOENT)
        return csn_statedir_fail(err, -store, CSN_DIR_STATE, "aside");
    ret->sandbox = store >= 0 ? openat(store, sandbox, DIR_FLAGS) : -1;
    ret->slot = ret->sandbox >= 0 ? openat(ret->sandbox, ret->number, DIR_FLAGS) : -1;
    if (ret->slot >= 0)
        return CSN_OK;
    entry_close(ret);
    return csn_fail(err, CSN_NOT_FOUND, "there is no entry %s", shown ? shown : id);
}

/* Removes what is left of the entry. */
static int entry_drop(const entry *e)
{
    return csn_tree_remove_force(e->sandbox, e->number);
}

csn_status csn_aside_remove(const char *id, csn_error **err)
{
    entry e;
    csn_status st = entry_open(id, &e, err);

    if (st < 0)
        return st;
    int rc = entry_drop(&e);
    entry_close(&e);
    return rc == 0 ? CSN_OK : csn_fail_errno(err, -rc, "remove entry '%s'", id);
}

/* ---- restore ------------------------------------------------------------------------- */

/* True if every component is a plain name. */
static bool is_plain(const char *path)
{
    for (const char *p = path; *p;) {
        size_t n;
        p += *p == '/';
        n = strcspn(p, "/");
        if (n == 0 || (n <= 2 && strncmp(p, "..", n) == 0))
            return false;
        p += n;
    }
    return path[0] == '/';
}

static int copy_data(int from, int to)
{
    csn_autofree char *buf = malloc(CHUNK);
    ssize_t n = 0;
    int rc = buf ? 0 : -ENOMEM;

    while (rc == 0 && (n = read(from, buf, CHUNK)) > 0)
        rc = csn_write_full(to, buf, (size_t)n, NULL);
    return rc == 0 && n < 0 ? -errno : rc;
}

/* To another file system. The copy gets its name when it is complete. */
static int copy_file(int slot, int dir, const char *name, bool replace)
{
    csn_autofd int from =
        openat(slot, ITEM, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    csn_temp t = CSN_TEMP_NONE;
    struct stat st;

    if (from < 0)
        return -errno;
    if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
        return -EMEDIUMTYPE;
    int rc = csn_temp_create(&t, dir, st.st_mode & 0777);
    if (rc == 0)
        rc = copy_data(from, t.fd);
    if (rc == 0) {
        csn_temp_complete(&t);
        rc = csn_temp_publish(&t, dir, name, replace ? 0 : CSN_TEMP_EXCL);
    }
    csn_temp_drop(&t, dir);
    return rc;
}

/* 0 or -errno; -EMEDIUMTYPE: this type cannot be copied to another file system. */
static int put_back(int slot, int dir, const char *name, bool replace)
{
    struct stat st;

    if (fstatat(slot, ITEM, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (renameat2(slot, ITEM, dir, name, replace ? 0 : RENAME_NOREPLACE) == 0)
        return 0;
    int e = errno;
    if (e == EINVAL && !replace && !S_ISDIR(st.st_mode)) /* a file system without the flag */
        return linkat(slot, ITEM, dir, name, 0) < 0 ? -errno : 0;
    if (e != EXDEV)
        return -e;
    return S_ISREG(st.st_mode) ? copy_file(slot, dir, name, replace) : -EMEDIUMTYPE;
}

static csn_status restore_failed(int rc, const char *id, const char *path, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(path);
    csn_status st;

    switch (rc) {
    case -EEXIST:
    case -EISDIR:
    case -ENOTEMPTY:
        st = csn_fail(err, CSN_EXISTS, "there is something at %s by now", shown ? shown : "");
        return csn_error_advise(st, err, "move it away, or replace a file with --force");
    case -ELOOP:
        return csn_fail(err, CSN_DENIED,
                        "a symbolic link is on the path %s; a sandbox may have made it",
                        shown ? shown : "");
    case -ENOENT:
    case -ENOTDIR:
        return csn_fail(err, CSN_NOT_FOUND, "the directory of %s does not exist any more",
                        shown ? shown : "");
    case -EMEDIUMTYPE:
        return csn_fail(err, CSN_UNSUPPORTED,
                        "'%s' is no file, and %s is on another file system", id,
                        shown ? shown : "");
    default:
        return csn_fail_errno(err, -rc, "restore '%s' to %s", id, shown ? shown : "");
    }
}

/* The path is that of the host. The directory is opened first; what happens to its path later
 * changes nothing. */
static int restore_to(int slot, const char *path, bool replace)
{
    csn_autofree char *parent = csn_path_dir(path);
    csn_autofd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (!parent || root < 0)
        return parent ? -errno : -ENOMEM;
    csn_autofd int dir = csn_beneath_open(root, parent[1] ? parent + 1 : ".",
                                          O_PATH | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
    return dir < 0 ? dir : put_back(slot, dir, csn_path_base(path), replace);
}

csn_status csn_aside_restore(const char *id, uint32_t flags, csn_error **err)
{
    csn_status st = csn_flags_check(flags, CSN_ASIDE_REPLACE, "restore", err);
    entry e;
    origin o;

    if (st == CSN_OK)
        st = entry_open(id, &e, err);
    if (st < 0)
        return st;
    int rc = read_origin(e.slot, &o);
    if (rc < 0) {
        st = csn_fail(err, CSN_NOMEM, "restore");
    } else if (!o.path || !is_plain(o.path)) {
        st = csn_fail(err, CSN_NOT_FOUND, "it is not known where '%s' was", id);
    } else {
        rc = restore_to(e.slot, o.path, (flags & CSN_ASIDE_REPLACE) != 0);
        st = rc < 0 ? restore_failed(rc, id, o.path, err) : CSN_OK;
    }
    if (st == CSN_OK)
        (void)entry_drop(&e);
    free(o.text);
    entry_close(&e);
    return st;
}
