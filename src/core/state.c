/* state.c: reads and writes the records of detached sandboxes in the state directory.
 *
 *   <state>/sandboxes/<id>/meta.json   configuration and working directory; backends have
 *                                      files of their own in this directory
 *   <state>/names/<name>               a symlink whose text is the id
 *
 * symlinkat reserves a name atomically: of several callers exactly one succeeds. Files are
 * replaced by rename, so a reader never sees a partial one. The directories are private to the
 * user (os/statedir.c), and their content is trusted like the user. */
#include "core/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/path.h"
#include "base/strv.h"
#include "core/config.h"
#include "os/statedir.h"

#define ABANDONED_S 10
#define META_MAX    (1024u * 1024u)
#define SUB_MAX     272u
#define TEMP_PREFIX "." CSN_STATE_META "." /* of a writer, which may have been killed */

void csn_state_meta_free(csn_state_meta *m)
{
    if (!m)
        return;
    free(m->id);
    free(m->name);
    free(m->workdir);
    free(m->forked_from);
    csn_config_free(m->config);
    free(m);
}
CSN_DEFINE_CLEANUP(csn_state_meta, csn_state_meta_free)

/* The directory of a record, below the state directory. */
static const char *sub_of(const char *id, char ret[SUB_MAX])
{
    snprintf(ret, SUB_MAX, "sandboxes/%.255s", id);
    return ret;
}

static csn_status open_dir(const char *sub, int *ret, csn_error **err)
{
    int fd = csn_statedir_open(CSN_DIR_STATE, sub, NULL);

    if (fd < 0)
        return csn_statedir_fail(err, -fd, CSN_DIR_STATE, sub);
    *ret = fd;
    return CSN_OK;
}

static int encode_meta(const csn_state_meta *m, csn_buf *out)
{
    csn_autobuf config;
    csn_json j;

    csn_buf_init(&config, META_MAX);
    int e = csn_config_encode(m->config, &config);
    if (e != 0)
        return e;
    csn_json_begin(&j, out);
    csn_json_object(&j);
    csn_json_kstr(&j, "id", m->id);
    csn_json_kstr(&j, "name", m->name);
    csn_json_kint(&j, "created_ms", m->created_ms);
    csn_json_kstr(&j, "workdir", m->workdir);
    if (m->forked_from)
        csn_json_kstr(&j, "forked_from", m->forked_from);
    csn_json_key(&j, "config");
    csn_json_raw(&j, config.data, config.len);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

static int write_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int replace_file(int dir, const char *name, const csn_buf *content)
{
    char tmp[64];
    csn_autofd int fd = -1;

    snprintf(tmp, sizeof(tmp), ".%s.%ld", name, (long)gettid());
    fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    int e = write_all(fd, content->data, content->len);
    if (e == 0 && renameat(dir, tmp, dir, name) < 0)
        e = errno;
    if (e != 0)
        unlinkat(dir, tmp, 0);
    return e;
}

static csn_status has_ended(const char *id, csn_error **err)
{
    return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", id);
}

static csn_status write_meta(const csn_state_meta *m, int dir, csn_error **err)
{
    csn_autobuf text;

    csn_buf_init(&text, 2 * META_MAX);
    int e = encode_meta(m, &text);
    if (e == 0)
        e = replace_file(dir, CSN_STATE_META, &text);
    if (e == ENOENT) /* the sweeper removed the directory: its keeper has ended */
        return has_ended(m->id, err);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "write state of '%s'", m->id);
}

/* Makes no directory: the sandbox may have ended, and with it its record. */
csn_status csn_state_update(const csn_state_meta *m, csn_error **err)
{
    char sub[SUB_MAX];
    csn_autofd int dir = csn_statedir_find(CSN_DIR_STATE, sub_of(m->id, sub), NULL);

    if (dir == -ENOENT)
        return has_ended(m->id, err);
    if (dir < 0)
        return csn_statedir_fail(err, -dir, CSN_DIR_STATE, sub);
    return write_meta(m, dir, err);
}

/* Returns the malloc'd id of a name, or NULL. */
static char *read_name(int names, const char *name)
{
    char id[256];
    ssize_t n = readlinkat(names, name, id, sizeof(id) - 1);

    if (n <= 0)
        return NULL;
    id[n] = '\0';
    return csn_name_valid(id) ? strdup(id) : NULL;
}

/* A sandbox that lost its metadata still has a keeper. 1, 0, or -errno: unknown. */
static int is_record(int dir)
{
    static const char *const files[] = {CSN_STATE_META, CSN_STATE_KEEPER};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (faccessat(dir, files[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return 1;
        if (errno != ENOENT)
            return -errno;
    }
    return 0;
}

/* 1: the sandbox exists; 0: it does not; -errno: unknown. */
static int has_record(const char *id)
{
    char sub[SUB_MAX];
    csn_autofd int dir = csn_statedir_find(CSN_DIR_STATE, sub_of(id, sub), NULL);

    if (dir < 0)
        return dir == -ENOENT ? 0 : dir;
    return is_record(dir);
}

static csn_status take_name(const csn_state_meta *m, csn_error **err)
{
    csn_autofd int names = -1;
    csn_status st = open_dir("names", &names, err);

    if (st < 0)
        return st;
    for (int attempt = 0; attempt < 3; attempt++) {
        if (symlinkat(m->id, names, m->name) == 0)
            return CSN_OK;
        if (errno != EEXIST)
            return csn_fail_errno(err, errno, "take name '%s'", m->name);
        csn_autofree char *holder = read_name(names, m->name);
        if (holder && has_record(holder) != 0)
            return csn_fail(err, CSN_EXISTS, "sandbox name '%s' is taken by %s", m->name,
                            holder);
        /* The name's sandbox does not exist (a crash left the link): remove it and try
         * again. */
        unlinkat(names, m->name, 0);
    }
    return csn_fail(err, CSN_EXISTS, "sandbox name '%s' is taken", m->name);
}

char *csn_state_name_holder(const char *name)
{
    csn_autofd int names = csn_statedir_find(CSN_DIR_STATE, "names", NULL);

    return names < 0 ? NULL : read_name(names, name);
}

void csn_state_release_name(const char *name, const char *id)
{
    csn_autofd int names = csn_statedir_find(CSN_DIR_STATE, "names", NULL);
    csn_autofree char *holder = names < 0 ? NULL : read_name(names, name);

    if (holder && strcmp(holder, id) == 0)
        unlinkat(names, name, 0);
}

/* A record is written before its name, so a name without record is one of an ended sandbox. */
void csn_state_sweep_names(void)
{
    int fd = csn_statedir_find(CSN_DIR_STATE, "names", NULL);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir && fd >= 0)
        close(fd);
    for (const struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
        csn_autofree char *id = csn_name_valid(d->d_name) ? read_name(fd, d->d_name) : NULL;
        if (id && has_record(id) == 0)
            unlinkat(fd, d->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

csn_status csn_state_create(const csn_state_meta *m, csn_error **err)
{
    char sub[SUB_MAX];
    csn_autofd int dir = -1;
    /* Write the record before the name, so that a name always has a record. */
    csn_status st = open_dir(sub_of(m->id, sub), &dir, err);

    if (st == CSN_OK)
        st = write_meta(m, dir, err);
    if (st == CSN_OK && m->name)
        st = take_name(m, err);
    if (st < 0)
        csn_state_remove(m->id, NULL);
    return st;
}

csn_status csn_state_lookup(const char *id_or_name, char **ret_id, csn_error **err)
{
    if (!id_or_name || !csn_name_valid(id_or_name))
        return csn_fail(err, CSN_INVALID, "'%s' is not the id or name of a sandbox",
                        id_or_name ? id_or_name : "");
    char *id = NULL;
    int there = has_record(id_or_name);
    if (there < 0)
        return csn_statedir_fail(err, -there, CSN_DIR_STATE, "sandboxes");
    if (there == 1) {
        id = strdup(id_or_name);
    } else {
        csn_autofd int names = csn_statedir_find(CSN_DIR_STATE, "names", NULL);
        if (names < 0 && names != -ENOENT)
            return csn_statedir_fail(err, -names, CSN_DIR_STATE, "names");
        errno = ENOENT;
        id = names >= 0 ? read_name(names, id_or_name) : NULL;
        if (!id && errno != ENOMEM && errno != ENOENT && errno != EINVAL)
            return csn_statedir_fail(err, errno, CSN_DIR_STATE, "names");
        if (!id && errno != ENOMEM)
            return csn_fail(err, CSN_NOT_FOUND, "no sandbox '%s'", id_or_name);
    }
    if (!id)
        return csn_fail(err, CSN_NOMEM, "look up '%s'", id_or_name);
    *ret_id = id;
    return CSN_OK;
}

static csn_status read_meta(const char *id, csn_buf *text, csn_error **err)
{
    char sub[SUB_MAX], chunk[4096];
    ssize_t n;

    csn_autofd int dir = csn_statedir_find(CSN_DIR_STATE, sub_of(id, sub), NULL);
    csn_autofd int fd =
        dir < 0 ? -1 : openat(dir, CSN_STATE_META, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int e = fd >= 0 ? 0 : dir < 0 ? -dir : errno;
    if (e == ENOENT || e == ENOTDIR)
        return csn_fail(err, CSN_NOT_FOUND, "no sandbox '%s'", id);
    if (dir < 0)
        return csn_statedir_fail(err, e, CSN_DIR_STATE, sub);
    if (e != 0)
        return csn_fail_errno(err, e, "state of '%s' (%s/" CSN_STATE_META ")", id, sub);
    while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
        e = csn_buf_append(text, chunk, (size_t)n);
        if (e != 0)
            return csn_fail(err, e == ENOMEM ? CSN_NOMEM : CSN_TOO_LARGE, "state of '%s'", id);
    }
    return n < 0 ? csn_fail_errno(err, errno, "read state of '%s'", id) : CSN_OK;
}

static csn_status decode_meta(const csn_jval *root, csn_state_meta *m, csn_error **err)
{
    const char *name = NULL, *workdir = NULL, *from = NULL;
    csn_status st = csn_jget_str(root, "name", &name, err);

    if (st == CSN_OK)
        st = csn_jget_str(root, "workdir", &workdir, err);
    if (st == CSN_OK)
        st = csn_jget_i64(root, "created_ms", &m->created_ms, err);
    if (st == CSN_OK)
        st = csn_jget_str(root, "forked_from", &from, err);
    if (st < 0)
        return st;
    m->name = name ? strdup(name) : NULL;
    m->workdir = workdir ? strdup(workdir) : NULL;
    m->forked_from = from ? strdup(from) : NULL;
    if ((name && !m->name) || (workdir && !m->workdir) || (from && !m->forked_from))
        return csn_fail(err, CSN_NOMEM, "state of '%s'", m->id);
    return CSN_OK;
}

csn_status csn_state_load(const char *id, csn_state_meta **ret, csn_error **err)
{
    CSN_CLEANUP(csn_state_meta_freep) csn_state_meta *m = calloc(1, sizeof(*m));
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autofree char *config = NULL;
    csn_autobuf text;

    csn_buf_init(&text, 2 * META_MAX);
    if (!m || !(m->id = strdup(id)))
        return csn_fail(err, CSN_NOMEM, "state of '%s'", id);
    csn_status st = read_meta(id, &text, err);
    if (st == CSN_OK)
        st = csn_json_parse(text.data ? text.data : "", text.len, "meta.json", &root, err);
    if (st == CSN_OK)
        st = decode_meta(root, m, err);
    if (st == CSN_OK && !csn_jval_get(root, "config"))
        st = csn_fail(err, CSN_INTERNAL, "state of '%s' has no config", id);
    if (st == CSN_OK && !(config = csn_jval_dump(csn_jval_get(root, "config"))))
        st = csn_fail(err, CSN_NOMEM, "state of '%s'", id);
    if (st == CSN_OK)
        st = csn_config_parse(config, strlen(config), "meta.json", &m->config, err);
    if (st < 0)
        return st;
    *ret = CSN_STEAL(m);
    return CSN_OK;
}

/* Removes what killed writers of meta.json have left in the directory of a record. */
static void remove_temps(int record)
{
    int fd = openat(record, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir && fd >= 0)
        close(fd);
    for (const struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        if (csn_str_starts(d->d_name, TEMP_PREFIX))
            unlinkat(fd, d->d_name, 0);
    if (dir)
        closedir(dir);
}

void csn_state_remove(const char *id, const char *name)
{
    csn_autofd int all = csn_statedir_find(CSN_DIR_STATE, "sandboxes", NULL);

    if (name)
        csn_state_release_name(name, id);
    csn_autofd int dir =
        all < 0 ? -1 : openat(all, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return;
    remove_temps(dir);
    unlinkat(dir, CSN_STATE_META, 0);
    unlinkat(dir, CSN_STATE_RUN_LINK, 0);
    unlinkat(dir, CSN_STATE_JAIL, 0);
    unlinkat(dir, CSN_STATE_NOTE, 0);
    unlinkat(all, id, AT_REMOVEDIR);
}

static int by_time(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const char *tx = strchr(x, '-'), *ty = strchr(y, '-');
    int c = tx && ty ? strcmp(tx, ty) : 0;

    return c != 0 ? c : strcmp(x, y);
}

/* Does the directory have no record? Its sandbox is being created, or its creator was killed.
 * Backends remove their own remains; an empty directory is removed here. */
static bool abandoned(int sandboxes, const char *id)
{
    struct stat st;
    csn_autofd int dir = openat(sandboxes, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 || is_record(dir) != 0)
        return false;
    if (csn_id_valid(id) && fstat(dir, &st) == 0 && time(NULL) - st.st_mtime > ABANDONED_S)
        unlinkat(sandboxes, id, AT_REMOVEDIR);
    return true;
}

csn_status csn_state_ids(char ***ret, csn_error **err)
{
    char **ids = NULL;
    struct dirent *d;
    int fd = csn_statedir_find(CSN_DIR_STATE, "sandboxes", NULL);
    if (fd < 0 && fd != -ENOENT)
        return csn_statedir_fail(err, -fd, CSN_DIR_STATE, "sandboxes");
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir && fd >= 0) {
        close(fd);
        return csn_fail_errno(err, errno, "list sandboxes");
    }
    while (dir && (d = readdir(dir)) != NULL) {
        if (!csn_name_valid(d->d_name) || abandoned(fd, d->d_name))
            continue;
        if (csn_strv_push(&ids, d->d_name) != 0) {
            closedir(dir);
            csn_strv_free(ids);
            return csn_fail(err, CSN_NOMEM, "list sandboxes");
        }
    }
    if (dir)
        closedir(dir);
    if (ids)
        qsort(ids, csn_strv_len((const char *const *)ids), sizeof(*ids), by_time);
    *ret = ids;
    return CSN_OK;
}
