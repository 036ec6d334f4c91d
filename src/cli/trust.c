/* trust.c: records which project files the user has trusted.
 *
 * A record is a file in trust/ of the state directory. Its name is the SHA-256 of the path of
 * the project file; it contains the SHA-256 of the trusted content and the path, one a line.
 * The state directory is hidden from every jail, so no command can add a record. Invariant: a
 * record that cannot be read trusts nothing. */
#include "cli/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/atomic.h"
#include "os/statedir.h"

#define DIRECTORY  "trust"
#define RECORD_MAX (CSN_HASH_HEX + CSN_PATH_MAX + 2u)

/* Reads the record `name` and splits it into hash and path. Returns 0 or -errno; -EINVAL: it is
 * not a record of ours. */
static int read_record(int dir, const char *name, char text[RECORD_MAX], const char **ret_path)
{
    csn_autofd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char of_path[CSN_HASH_HEX];

    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, text, RECORD_MAX - 1);
    if (n < 0)
        return -errno;
    if (n < CSN_HASH_HEX + 2 || text[n - 1] != '\n' || text[CSN_HASH_HEX - 1] != '\n')
        return -EINVAL;
    text[n - 1] = text[CSN_HASH_HEX - 1] = '\0';
    *ret_path = text + CSN_HASH_HEX;
    csn_hash_bytes(*ret_path, strlen(*ret_path), of_path);
    return strlen(text) == CSN_HASH_HEX - 1 && strcmp(of_path, name) == 0 ? 0 : -EINVAL;
}

csn_status csn_trust_check(const char *path, const char *hash, csn_trust *ret, csn_error **err)
{
    char name[CSN_HASH_HEX], text[RECORD_MAX];
    const char *of = NULL;

    csn_autofd int dir = csn_statedir_find(CSN_DIR_STATE, DIRECTORY, NULL);
    if (dir < 0 && dir != -ENOENT)
        return csn_statedir_fail(err, -dir, CSN_DIR_STATE, DIRECTORY);
    *ret = CSN_TRUST_NONE;
    if (dir < 0)
        return CSN_OK;
    csn_hash_bytes(path, strlen(path), name);
    if (read_record(dir, name, text, &of) == 0 && strcmp(of, path) == 0)
        *ret = strcmp(text, hash) == 0 ? CSN_TRUST_GIVEN : CSN_TRUST_CHANGED;
    return CSN_OK;
}

csn_status csn_trust_add(const char *path, const char *hash, csn_error **err)
{
    char name[CSN_HASH_HEX], text[RECORD_MAX];
    csn_temp temp = CSN_TEMP_NONE;

    csn_autofd int dir = csn_statedir_open(CSN_DIR_STATE, DIRECTORY, NULL);
    if (dir < 0)
        return csn_statedir_fail(err, -dir, CSN_DIR_STATE, DIRECTORY);
    int len = snprintf(text, sizeof(text), "%s\n%s\n", hash, path);
    if (len < 0 || (size_t)len >= sizeof(text))
        return csn_fail_errno(err, ENAMETOOLONG, "'%s'", path);
    csn_hash_bytes(path, strlen(path), name);
    int e = csn_temp_create(&temp, dir, 0600);
    if (e == 0)
        e = csn_write_full(temp.fd, text, (size_t)len, NULL);
    if (e == 0)
        e = csn_temp_publish(&temp, dir, name, 0);
    csn_temp_drop(&temp, dir);
    return e == 0 ? CSN_OK
                  : csn_fail_errno(err, -e, "cannot record that '%s' is trusted", path);
}

csn_status csn_trust_remove(const char *path, csn_error **err)
{
    char name[CSN_HASH_HEX];

    csn_autofd int dir = csn_statedir_find(CSN_DIR_STATE, DIRECTORY, NULL);
    if (dir < 0 && dir != -ENOENT)
        return csn_statedir_fail(err, -dir, CSN_DIR_STATE, DIRECTORY);
    csn_hash_bytes(path, strlen(path), name);
    if (dir >= 0 && unlinkat(dir, name, 0) == 0)
        return CSN_OK;
    if (dir >= 0 && errno != ENOENT)
        return csn_fail_errno(err, errno, "cannot remove the record of '%s'", path);
    return csn_fail(err, CSN_NOT_FOUND, "'%s' is not trusted", path);
}

csn_status csn_trust_each(void (*fn)(void *ctx, const char *path, const char *hash), void *ctx,
                          csn_error **err)
{
    char text[RECORD_MAX];
    const char *path = NULL;
    const struct dirent *e;

    int fd = csn_statedir_find(CSN_DIR_STATE, DIRECTORY, NULL);
    if (fd == -ENOENT)
        return CSN_OK;
    if (fd < 0)
        return csn_statedir_fail(err, -fd, CSN_DIR_STATE, DIRECTORY);
    csn_autofd int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    DIR *dir = readable >= 0 ? fdopendir(readable) : NULL;
    if (!dir)
        return csn_fail_errno(err, errno, "cannot list the trusted files");
    (void)csn_steal_fd(&readable);
    while ((e = readdir(dir)))
        if (read_record(dirfd(dir), e->d_name, text, &path) == 0)
            fn(ctx, path, text);
    closedir(dir);
    return CSN_OK;
}
