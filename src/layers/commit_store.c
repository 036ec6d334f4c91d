/* commit_store.c: where the journal of commits to a directory is kept, and the recovery that
 * every later command on that directory begins with. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/path.h"
#include "layers/commit.h"
#include "layers/journal.h"
#include "os/statedir.h"

#define STORE_NAME 48 /* "commits/", 32 digits, a NUL */

static void store_name(const char *host, char ret[STORE_NAME])
{
    char hash[CSN_HASH_HEX];

    csn_hash_bytes(host, strlen(host), hash);
    snprintf(ret, STORE_NAME, "commits/%.32s", hash);
}

csn_status csn_commit_store_open(const char *host, int *ret, csn_error **err)
{
    char name[STORE_NAME];

    store_name(host, name);
    int fd = csn_statedir_open(CSN_DIR_STATE, name, NULL);
    if (fd < 0)
        return csn_statedir_fail(err, -fd, CSN_DIR_STATE, name);
    *ret = fd;
    return CSN_OK;
}

static bool has_lists(const char *name)
{
    csn_autofree char *store = csn_statedir_path(CSN_DIR_STATE, name), *path = NULL;

    return store && asprintf(&path, "%s/" CSN_JOURNAL_STAGING, store) >= 0 &&
           access(path, F_OK) == 0;
}

static csn_status say_where(csn_status st, const char *host, const char *name, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(host);
    csn_autofree char *path = csn_statedir_path(CSN_DIR_STATE, name);

    st = csn_wrap(st, err, "finish the interrupted commit to %s", shown ? shown : "it");
    return csn_error_advise(st, err, "remove the cause, or give the commit up: rm -r %s",
                            path ? path : name);
}

csn_status csn_commit_recover_host(const char *host, csn_error **err)
{
    csn_commit_recovery ignored;
    csn_error *why = NULL;
    char name[STORE_NAME];

    store_name(host, name);
    if (!has_lists(name)) /* almost always, so nothing else is asked */
        return CSN_OK;
    csn_autofd int store = csn_statedir_find(CSN_DIR_STATE, name, NULL);
    if (store < 0)
        return csn_statedir_fail(err, -store, CSN_DIR_STATE, name);
    csn_autofd int base = open(host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (base < 0)
        return CSN_OK; /* the caller is about to open it, too, and reports why it cannot */
    csn_status st = csn_commit_recover(store, base, &ignored, &why);
    if (st == CSN_OK || st == CSN_CONFLICT) { /* one that runs is not interrupted */
        csn_error_free(why);
        return CSN_OK;
    }
    st = say_where(st, host, name, &why);
    if (err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    return st;
}
