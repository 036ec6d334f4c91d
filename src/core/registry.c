/* registry.c: names to backends; the only file of the core that knows which ones exist.
 *
 * Built-in tables come first, then those of csn_register_backend. A name of a backend that this
 * build does not have is told apart from one that nobody knows: the first is CSN_UNSUPPORTED,
 * the second the seeds' "unknown sandbox type". Nothing is ever replaced by a weaker one. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/jail/export.h"
#include "backend/local/export.h"
#include "base/error.h"
#include "base/strv.h"
#include "core/internal.h"
#include "remote/load.h"
#include "runtime/runtime.h"

#define REGISTERED_MAX 64u

typedef struct registered {
    csn_backend_ops ops; /* our copy: what an older table lacks is NULL */
    void *data;
} registered;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static registered table[REGISTERED_MAX];
static size_t table_len;

static const csn_backend_ops *built_in(const char *name)
{
    if (strcmp(name, "jail") == 0)
        return csn_jail_backend();
    return strcmp(name, "local") == 0 ? csn_local_backend() : NULL;
}

/* Entries are never changed or removed, so what is found stays valid without the lock. */
static const registered *find_registered(const char *name)
{
    const registered *found = NULL;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < table_len && !found; i++)
        if (strcmp(table[i].ops.name, name) == 0)
            found = &table[i];
    pthread_mutex_unlock(&lock);
    return found;
}

csn_status csn_registry_find(const char *name, const csn_backend_ops **ret, void **ret_data,
                             csn_error **err)
{
    const csn_backend_ops *own = built_in(name);
    const registered *other = own ? NULL : find_registered(name);

    if (own || other) {
        *ret = own ? own : &other->ops;
        *ret_data = own ? NULL : other->data;
        return CSN_OK;
    }
    if (csn_strv_has(csn_remote_names, name)) {
        csn_status st = csn_remote_find(name, ret, err);
        if (st == CSN_OK)
            *ret_data = NULL;
        return csn_error_advise(
            st, err,
            "name one that is: jail, local (it isolates nothing), or one you registered");
    }
    return csn_fail(err, CSN_INVALID, "unknown sandbox type: %s", name);
}

static csn_status check_table(const csn_backend_ops *ops, csn_backend_ops *ret, csn_error **err)
{
    if (!ops || ops->size < offsetof(csn_backend_ops, exec) + sizeof(ops->exec) || !ops->name ||
        !ops->exec)
        return csn_fail(err, CSN_INVALID, "register backend: name and exec are needed");
    csn_status st = csn_opts_take(ops, ret, sizeof(*ret), "register backend", err);
    if (st < 0)
        return st;
    if (built_in(ops->name) || csn_strv_has(csn_remote_names, ops->name))
        return csn_fail(err, CSN_EXISTS, "register backend: the name '%s' is built in",
                        ops->name);
    return CSN_OK;
}

csn_status csn_register_backend(const csn_backend_ops *ops, void *register_data,
                                csn_error **err)
{
    csn_backend_ops copy;
    csn_status st = check_table(ops, &copy, err);

    if (st < 0)
        return st;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < table_len && st == CSN_OK; i++)
        if (strcmp(table[i].ops.name, copy.name) == 0)
            st =
                csn_fail(err, CSN_EXISTS, "register backend: '%s' is there already", copy.name);
    if (st == CSN_OK && table_len == REGISTERED_MAX)
        st = csn_fail(err, CSN_TOO_LARGE, "register backend: at most %u", REGISTERED_MAX);
    if (st == CSN_OK)
        table[table_len++] = (registered){.ops = copy, .data = register_data};
    pthread_mutex_unlock(&lock);
    return st;
}

csn_status csn_registry_host_open(const char *dir, bool make, csn_fs *ret, csn_error **err)
{
    void *state = NULL;
    csn_status st = csn_runtime_host_open(dir, make, &state, err);

    if (st == CSN_OK)
        *ret = (csn_fs){.ops = csn_local_backend(), .state = state};
    return st;
}

void csn_registry_host_close(csn_fs *fs)
{
    if (fs->ops)
        fs->ops->close(fs->state);
    *fs = (csn_fs){0};
}

void csn_registry_sweep(void)
{
    csn_runtime_sweep();
}
