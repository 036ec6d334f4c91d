/* own_records.c: keeps caisson's own directories out of the reach of commands.
 *
 * State, runtime and configuration directories decide what later sandboxes may do and what is
 * deleted at their end. They are masked in every share that contains them: those of this
 * environment and the default ones, because a later caller may have another environment. A
 * directory that is missing is created first: a command could create it otherwise, and plant
 * records or a configuration. A share inside such a directory cannot be masked; it may only be
 * read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/error.h"
#include "base/path.h"
#include "os/checked_dir.h"
#include "os/statedir.h"

#define TICK_MS_MAX 50 /* longer than a tick of any kernel */

static const int kinds[] = {CSN_DIR_STATE, CSN_DIR_RUNTIME, CSN_DIR_CONFIG};

/* Receives each directory; `real`: its path without links, of which the last part may not
 * exist. */
typedef csn_status (*record_fn)(csn_jail *j, const csn_jail_share *shares, size_t count,
                                int which, const char *path, const char *real, csn_error **err);

/* Resolves the part of the path that exists. */
static bool resolve(const char *path, char real[PATH_MAX])
{
    char head[PATH_MAX];
    size_t len = strlen(path);

    if (len >= sizeof(head))
        return false;
    memcpy(head, path, len + 1);
    while (!realpath(head, real)) {
        char *slash = strrchr(head, '/');
        if (errno != ENOENT || !slash || slash == head)
            return false;
        *slash = '\0';
    }
    size_t done = strlen(real);
    return snprintf(real + done, PATH_MAX - done, "%s", path + strlen(head)) <
           (int)(PATH_MAX - done);
}

static bool is_shared(const csn_jail_share *shares, size_t count, const char *real)
{
    for (size_t i = 0; i < count; i++)
        if (csn_path_below(real, shares[i].host))
            return true;
    return false;
}

static csn_status each_below(csn_jail *j, const csn_jail_share *shares, size_t count,
                             const char *home, record_fn fn, csn_error **err)
{
    csn_status st = CSN_OK;
    char real[PATH_MAX];

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (unsigned i = 0; st == CSN_OK; i++) {
            csn_autofree char *path = csn_statedir_default(kinds[k], home, i);
            csn_autofree char *used = csn_statedir_path(kinds[k], NULL);
            if (!path)
                break;
            if (used && strcmp(used, path) == 0)
                continue;
            if (resolve(path, real) && is_shared(shares, count, real))
                st = fn(j, shares, count, kinds[k], path, real, err);
        }
    return st;
}

static csn_status each(csn_jail *j, const csn_jail_share *shares, size_t count, record_fn fn,
                       csn_error **err)
{
    const char *home = getenv("HOME");
    char real[PATH_MAX];
    csn_status st = CSN_OK;
    bool all_in_home = home && home[0] == '/' && realpath(home, real);

    for (size_t i = 0; all_in_home && i < count; i++)
        all_in_home = !shares[i].writable || csn_path_below(shares[i].host, real);
    for (size_t k = 0; st == CSN_OK && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        csn_autofree char *path = csn_statedir_path(kinds[k], NULL);
        if (path && resolve(path, real))
            st = fn(j, shares, count, kinds[k], path, real, err);
    }
    if (st == CSN_OK && home && home[0] == '/')
        st = each_below(j, shares, count, home, fn, err);
    const char *listed =
        st == CSN_OK && !all_in_home ? csn_jail_listed_home(j, geteuid()) : NULL;
    if (listed && !(home && strcmp(home, listed) == 0))
        st = each_below(j, shares, count, listed, fn, err);
    return st;
}

/* Waits until the coarse clock has passed this moment. The scan of protected files counts what
 * was made in the tick in which a command starts as made by the command. */
static void await_tick(void)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    struct timespec made, tick;

    clock_gettime(CLOCK_REALTIME, &made);
    for (int i = 0; i < TICK_MS_MAX; i++) {
        clock_gettime(CLOCK_REALTIME_COARSE, &tick);
        if (tick.tv_sec > made.tv_sec ||
            (tick.tv_sec == made.tv_sec && tick.tv_nsec > made.tv_nsec))
            return;
        nanosleep(&nap, NULL);
    }
}

/* Creates a directory that is missing. A path that is refused is never used (os/checked_dir.c),
 * except that the configuration is read through links. */
static csn_status make(int which, const char *path, csn_error **err)
{
    bool missing = access(path, F_OK) < 0;
    csn_autofd int fd = csn_checked_dir_open(path, CSN_CHECKED_MAKE, NULL);
    bool linked = fd == -ELOOP && which == CSN_DIR_CONFIG;
    bool made = fd >= 0 || (linked && mkdir(path, 0700) == 0);

    if (missing && made)
        await_tick();
    if (made || !linked)
        return CSN_OK;
    if (access(path, F_OK) == 0 || errno == EACCES || errno == EROFS)
        return CSN_OK;
    csn_status st =
        csn_fail(err, CSN_INVALID, "%s leads to a directory that a command could create", path);
    return csn_error_advise(st, err, "create it, or share another directory");
}

/* The copy of a workspace is kept in the state directory (cow.h). */
static bool is_copy(const csn_jail *j, const csn_jail_share *share)
{
    return share->cow && j->cow_copy;
}

static csn_status cover_one(csn_jail *j, const csn_jail_share *shares, size_t count, int which,
                            const char *path, const char *real, csn_error **err)
{
    char now[PATH_MAX];

    for (size_t i = 0; i < count; i++)
        if (shares[i].writable && !is_copy(j, &shares[i]) &&
            csn_path_below(shares[i].host, real))
            return csn_fail(
                err, CSN_INVALID,
                "%s %s: part of caisson's own records, which can only be shared read-only",
                shares[i].option, shares[i].host);
    if (!is_shared(shares, count, real))
        return CSN_OK;
    csn_status st = make(which, path, err);
    if (st == CSN_OK && realpath(path, now))
        csn_jail_cover(j, shares, count, now);
    return st;
}

csn_status csn_jail_cover_records(csn_jail *j, const csn_jail_share *shares, size_t count,
                                  csn_error **err)
{
    return each(j, shares, count, cover_one, err);
}

static csn_status refuse_one(csn_jail *j, const csn_jail_share *shares, size_t count, int which,
                             const char *path, const char *real, csn_error **err)
{
    (void)which;
    for (size_t i = 0; i < count; i++) {
        if (!shares[i].writable || is_copy(j, &shares[i]) ||
            (!csn_path_below(real, shares[i].host) && !csn_path_below(shares[i].host, real)))
            continue;
        csn_status st = csn_fail(err, CSN_UNSUPPORTED,
                                 "%s %s: it contains caisson's own directory %s, and this host "
                                 "refuses the namespaces that would mask it",
                                 shares[i].option, shares[i].host, path);
        return csn_error_advise(st, err, "share a directory below it, or share it read-only");
    }
    return CSN_OK;
}

csn_status csn_jail_refuse_records(csn_jail *j, const csn_jail_share *shares, size_t count,
                                   csn_error **err)
{
    return each(j, shares, count, refuse_one, err);
}

/* A log that commands can write proves nothing, and a link in its path could lead anywhere. */
csn_status csn_jail_check_audit(const csn_runtime *rt, csn_error **err)
{
    const csn_jail_shares *s = rt->jail->shares;
    const char *place = rt->config->audit;
    char real[PATH_MAX];

    if (!place || !*place || strcmp(place, "none") == 0)
        return CSN_OK;
    csn_autofree char *dir = csn_path_dir(place);
    if (!dir)
        return csn_fail(err, CSN_NOMEM, "audit log");
    if (!realpath(dir, real))
        return CSN_OK; /* opening the log reports it */
    for (size_t i = 0; i < s->count; i++) {
        csn_autofree char *shown = NULL;
        if (!s->v[i].writable ||
            (!csn_path_below(real, s->v[i].host) && !csn_path_below(place, s->v[i].host)))
            continue;
        shown = csn_path_printable(place);
        csn_status st = csn_fail(err, CSN_INVALID, "audit %s: commands can write to %s",
                                 shown ? shown : "", s->v[i].host);
        return csn_error_advise(st, err, "choose a directory that the sandbox cannot write");
    }
    return CSN_OK;
}
