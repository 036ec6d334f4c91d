/* store.c: records and directories of the layers of copy-on-write workspaces.
 *
 * The directory is private to the user, so records are trusted; they are nevertheless read with
 * bounds. Commands control what is in the directory `fs` of a layer, and nothing else here. */
#include "layers/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "os/atomic.h"
#include "os/tree.h"

#define MAGIC          "caisson-layers 1"
#define SWITCHING      MAGIC "\nswitching " /* first, so that the flag has a fixed place */
#define LINE_MAX_BYTES 1024
#define SEARCH         (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- names ---- */

bool csn_snapshot_name_is_valid(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789._-");

    return len > 0 && len <= CSN_SNAPSHOT_NAME && name[len] == '\0' && name[0] != '.' &&
           name[0] != '-';
}

void csn_layer_names_copy(char to[CSN_LAYER_NAMES], const char *names)
{
    snprintf(to, CSN_LAYER_NAMES, "%s", names);
}

size_t csn_layer_count(const char *names)
{
    size_t len = strlen(names);

    return (len + 1) / (CSN_OVERLAY_NAME + 1);
}

static bool names_are_valid(const char *names)
{
    csn_overlay ignored;

    return strlen(names) < CSN_LAYER_NAMES && csn_overlay_describe(names, &ignored) == 0;
}

int csn_layer_push(char names[CSN_LAYER_NAMES], const char *name)
{
    char old[CSN_LAYER_NAMES];

    if (strlen(names) + CSN_OVERLAY_NAME + 1 >= CSN_LAYER_NAMES)
        return -ENOSPC;
    csn_layer_names_copy(old, names);
    int n = snprintf(names, CSN_OVERLAY_NAME + 1, "%s", name);
    if (*old && n > 0)
        snprintf(names + n, CSN_LAYER_NAMES - (size_t)n, " %.*s", (int)(CSN_LAYER_NAMES - 6),
                 old);
    return 0;
}

static bool has_layer(const char *names, const char *name)
{
    for (const char *p = names; *p; p += CSN_OVERLAY_NAME + (p[CSN_OVERLAY_NAME] == ' '))
        if (strncmp(p, name, CSN_OVERLAY_NAME) == 0)
            return true;
    return false;
}

/* ---- records ---- */

void csn_layer_record_release(csn_layer_record *r)
{
    free(r->snapshots);
    *r = (csn_layer_record){0};
}

csn_layer_snapshot *csn_layer_find(const csn_layer_record *r, const char *name)
{
    for (size_t i = 0; i < r->snapshot_count; i++)
        if (strcmp(r->snapshots[i].name, name) == 0)
            return &r->snapshots[i];
    return NULL;
}

static bool read_snapshot(csn_layer_record *r, const char *line)
{
    csn_layer_snapshot s = {0}, *grown;
    long long created;
    int copied, automatic, at = 0;

    if (sscanf(line, "%64s %lld %d %d %n", s.name, &created, &copied, &automatic, &at) != 4 ||
        at == 0 || strlen(line + at) >= sizeof(s.names) ||
        (line[at] && !names_are_valid(line + at)) || /* none: as the base */
        !csn_snapshot_name_is_valid(s.name) || r->snapshot_count == CSN_SNAPSHOTS_MAX)
        return false;
    memcpy(s.names, line + at, strlen(line + at) + 1);
    s.created_ms = created;
    s.copied = copied != 0;
    s.automatic = automatic != 0;
    grown = realloc(r->snapshots, (r->snapshot_count + 1) * sizeof(*grown));
    if (!grown)
        return false;
    r->snapshots = grown;
    r->snapshots[r->snapshot_count++] = s;
    return true;
}

static bool read_line(csn_layer_record *r, const char *line)
{
    static const char stack[] = "stack ", snapshot[] = "snapshot ";
    long long s, ns;
    int flag;

    if (sscanf(line, "since %lld %lld", &s, &ns) == 2) {
        r->since = (struct timespec){.tv_sec = s, .tv_nsec = (long)ns};
        return true;
    }
    if (sscanf(line, "copy %d", &flag) == 1) {
        r->copy = flag != 0;
        return true;
    }
    if (sscanf(line, "switching %d", &flag) == 1) {
        r->switching = flag != 0;
        return true;
    }
    if (strncmp(line, snapshot, strlen(snapshot)) == 0)
        return read_snapshot(r, line + strlen(snapshot));
    line += strlen(stack);
    if (strncmp(line - strlen(stack), stack, strlen(stack)) != 0 || !names_are_valid(line))
        return false;
    memcpy(r->names, line, strlen(line) + 1);
    return true;
}

int csn_layer_record_read(int tree, const char *id, csn_layer_record *ret)
{
    char line[LINE_MAX_BYTES];
    csn_layer_record r = {0};
    bool sane = true;

    csn_autofd int dir = openat(tree, "stacks", SEARCH);
    int fd = dir < 0 ? -1 : openat(dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    FILE *f = fdopen(fd, "r");
    if (!f) {
        close(fd);
        return -ENOMEM;
    }
    for (size_t n = 0; sane && fgets(line, sizeof(line), f); n++) {
        size_t len = strlen(line);
        sane = len > 0 && line[len - 1] == '\n';
        line[len - sane] = '\0';
        sane = sane && (n == 0 ? strcmp(line, MAGIC) == 0 : read_line(&r, line));
    }
    sane = sane && !ferror(f) && r.names[0];
    (void)fclose(f);
    if (!sane) {
        csn_layer_record_release(&r);
        return -EPROTO;
    }
    *ret = r;
    return 0;
}

static void print_record(FILE *f, const csn_layer_record *r)
{
    (void)fprintf(f, SWITCHING "%d\nsince %lld %ld\ncopy %d\nstack %s\n", r->switching,
                  (long long)r->since.tv_sec, r->since.tv_nsec, r->copy, r->names);
    for (size_t i = 0; i < r->snapshot_count; i++) {
        const csn_layer_snapshot *s = &r->snapshots[i];
        (void)fprintf(f, "snapshot %s %lld %d %d %s\n", s->name, (long long)s->created_ms,
                      s->copied, s->automatic, s->names);
    }
}

/* The old record is exchanged and then removed: ext4 and btrfs begin to write a file to the
 * disk when it replaces another one by rename, which takes longer than all the rest. A record
 * need not survive the machine, which ends its sandbox. */
int csn_layer_record_write(int tree, const char *id, const csn_layer_record *r)
{
    csn_autofree char *text = NULL;
    size_t len = 0;
    csn_temp t = CSN_TEMP_NONE;
    bool ignored;
    csn_autofd int dir = openat(tree, "stacks", SEARCH);
    FILE *f = dir < 0 ? NULL : open_memstream(&text, &len);

    if (!f)
        return -errno;
    print_record(f, r);
    if (fclose(f) != 0)
        return -ENOMEM;
    int rc = csn_temp_create(&t, dir, 0600);
    if (rc == 0)
        rc = csn_write_full(t.fd, text, len, NULL);
    if (rc == 0)
        rc = csn_temp_swap(&t, dir, id, false, &ignored);
    csn_temp_drop(&t, dir);
    return rc;
}

int csn_layer_record_settle(int tree, const char *id)
{
    csn_autofd int dir = openat(tree, "stacks", SEARCH);
    csn_autofd int fd = dir < 0 ? -1 : openat(dir, id, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return pwrite(fd, "0", 1, sizeof(SWITCHING) - 1) == 1 ? 0 : -errno;
}

/* ---- layers ---- */

int csn_layer_tree_init(int tree)
{
    if (fchmod(tree, 0755) < 0 || mkdirat(tree, CSN_OVERLAY_BASE, 0755) < 0 ||
        mkdirat(tree, "stacks", 0700) < 0)
        return -errno;
    return 0;
}

static int random_name(char ret[CSN_OVERLAY_NAME + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345"; /* 32 */
    uint8_t r[CSN_OVERLAY_NAME];

    if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
        return -errno;
    for (size_t i = 0; i < CSN_OVERLAY_NAME; i++)
        ret[i] = letters[r[i] % 32];
    ret[CSN_OVERLAY_NAME] = '\0';
    return 0;
}

/* The root of an overlay has the attributes of its upper directory. */
static int make_like(int dir, const char *name, const struct stat *like)
{
    const struct timespec times[] = {like->st_atim, like->st_mtim};

    if (mkdirat(dir, name, 0700) < 0)
        return -errno;
    csn_autofd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (geteuid() == 0 && fchown(fd, like->st_uid, like->st_gid) < 0) ||
        fchmod(fd, like->st_mode & 01777) < 0 || futimens(fd, times) < 0)
        return -errno;
    return 0;
}

static int fill_layer(int tree, const char *name, const char *id, const struct stat *like)
{
    char by[CSN_NAME_BYTES_MAX + 8];
    csn_autofd int dir = openat(tree, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    snprintf(by, sizeof(by), "by-%s", id);
    if (dir < 0 || fchmod(dir, 0711) < 0)
        return -errno;
    csn_autofd int mark = openat(dir, by, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (mark < 0)
        return -errno;
    int rc = make_like(dir, "fs", like);
    return rc < 0 ? rc : make_like(dir, "work", like);
}

/* It has its final name when it can be told whose it is. */
int csn_layer_create(int tree, const char *id, const struct stat *like,
                     char ret_name[CSN_OVERLAY_NAME + 1])
{
    char unfinished[CSN_NAME_BYTES_MAX + 16];

    snprintf(unfinished, sizeof(unfinished), CSN_LAYER_UNFINISHED "%s", id);
    (void)csn_tree_remove_force(tree, unfinished); /* of a process that was killed */
    int rc = mkdirat(tree, unfinished, 0700) < 0 ? -errno : 0;
    if (rc == 0)
        rc = fill_layer(tree, unfinished, id, like);
    if (rc < 0)
        return rc;
    do {
        rc = random_name(ret_name);
        if (rc == 0 && renameat2(tree, unfinished, tree, ret_name, RENAME_NOREPLACE) < 0)
            rc = -errno;
    } while (rc == -EEXIST);
    return rc;
}

int csn_layer_open_fs(int tree, const char *names, size_t index)
{
    char path[CSN_OVERLAY_NAME + 4];

    if (index >= csn_layer_count(names))
        return -ENOENT;
    snprintf(path, sizeof(path), "%.*s/fs", (int)CSN_OVERLAY_NAME,
             names + index * (CSN_OVERLAY_NAME + 1));
    int fd = openat(tree, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

bool csn_layer_is_empty(int tree, const char *names, size_t index)
{
    int fd = csn_layer_open_fs(tree, names, index);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    size_t found = 0;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *e; found == 0 && (e = readdir(d));)
        found += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return found == 0;
}

int csn_layer_share(int tree, const char *names)
{
    char path[CSN_OVERLAY_NAME + 8];
    size_t count = csn_layer_count(names);

    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%.*s/shared", (int)CSN_OVERLAY_NAME,
                 names + i * (CSN_OVERLAY_NAME + 1));
        csn_autofd int fd =
            openat(tree, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return -errno;
    }
    return 0;
}

static bool is_named(const csn_layer_record *r, const char *name)
{
    bool found = has_layer(r->names, name);

    for (size_t i = 0; !found && i < r->snapshot_count; i++)
        found = has_layer(r->snapshots[i].names, name);
    return found;
}

void csn_layer_drop(int tree, const char *old, const csn_layer_record *r)
{
    size_t count = csn_layer_count(old);

    for (size_t i = 0; i < count; i++) {
        char name[CSN_OVERLAY_NAME + 1], shared[CSN_OVERLAY_NAME + 8];
        snprintf(name, sizeof(name), "%s", old + i * (CSN_OVERLAY_NAME + 1));
        snprintf(shared, sizeof(shared), "%s/shared", name);
        if (!is_named(r, name) && faccessat(tree, shared, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            (void)csn_tree_remove_force(tree, name);
    }
}

/* ---- sandboxes of a tree ---- */

int csn_layer_originals(int tree, const char *id)
{
    char name[CSN_NAME_BYTES_MAX + 16];

    snprintf(name, sizeof(name), "originals-%s", id);
    if (mkdirat(tree, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(tree, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int csn_layer_owner(int tree, const char *names, char ret_id[CSN_NAME_BYTES_MAX + 1])
{
    static const char by[] = "by-";
    char layer[CSN_OVERLAY_NAME + 1];
    int rc = -ENOENT;

    snprintf(layer, sizeof(layer), "%s", names);
    int fd = openat(tree, layer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && rc < 0 && (e = readdir(d));)
        if (strncmp(e->d_name, by, strlen(by)) == 0 &&
            strlen(e->d_name) <= CSN_NAME_BYTES_MAX + strlen(by)) {
            memcpy(ret_id, e->d_name + strlen(by), strlen(e->d_name) - strlen(by) + 1);
            rc = 0;
        }
    if (d)
        closedir(d);
    return rc;
}

int csn_layer_lock(int tree, const char *id)
{
    char name[CSN_NAME_BYTES_MAX + 16];

    snprintf(name, sizeof(name), "lock-%s", id);
    csn_autofd int fd = openat(tree, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    return csn_steal_fd(&fd);
}
