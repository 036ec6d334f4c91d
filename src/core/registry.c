/* registry.c: finds backends by name, and by the options that they honour.
 *
 * Only this file of the core knows the built-in backends. They take precedence over those of
 * csn_register_backend. A remote backend whose module cannot be loaded is CSN_UNSUPPORTED; an
 * unknown name is CSN_INVALID. One backend is never substituted for another. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/jail/export.h"
#include "backend/local/export.h"
#include "base/error.h"
#include "base/nearest.h"
#include "core/internal.h"
#include "remote/load.h"
#include "runtime/runtime.h"

#define REGISTERED_MAX 64u

typedef struct registered {
    csn_backend_ops ops; /* a copy, in which entries that an older table lacks are NULL */
    csn_file_ops files;
    csn_process_ops processes;
    csn_network_ops network;
    csn_snapshot_ops snapshots;
    csn_workspace_ops workspace;
    void *data;
} registered;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static registered table[REGISTERED_MAX + 1]; /* the last slot is scratch space for checks */
static size_t table_len;

#define REMOTE_ROW(id, bits) {.name = #id, .options = (bits)},
static const struct {
    const char *name;
    const csn_backend_ops *(*get)(void); /* NULL: in the module of remote backends */
    uint64_t options; /* of remote backends, so that the module need not be loaded */
} built_in[] = {{"jail", csn_jail_backend, 0},
                {"local", csn_local_backend, 0},
                CSN_REMOTE_BACKENDS(REMOTE_ROW){NULL}};
_Static_assert(sizeof(built_in) / sizeof(built_in[0]) <= CSN_BUILT_IN_MAX + 1,
               "CSN_BUILT_IN_MAX is too small");

/* The index in built_in, or -1. */
static int find_built_in(const char *name)
{
    for (int i = 0; built_in[i].name; i++)
        if (strcmp(built_in[i].name, name) == 0)
            return i;
    return -1;
}

/* Entries are never changed or removed, so the result stays valid without the lock. */
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

static csn_status unknown(const char *name, csn_error **err)
{
    char names[256] = "", near[CSN_NEAREST_MAX];
    size_t n = 0;

    for (size_t i = 0; built_in[i].name; i++)
        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
                              built_in[i].name);
    csn_status st = csn_fail(err, CSN_INVALID, "unknown sandbox type: %s", name);
    if (csn_nearest_in(name, names, near))
        return csn_error_advise(st, err, "did you mean %s? backends: %s", near, names);
    return csn_error_advise(st, err, "backends: %s", names);
}

csn_status csn_registry_find(const char *name, const csn_backend_ops **ret, void **ret_data,
                             csn_error **err)
{
    int i = find_built_in(name);
    const registered *other = i < 0 ? find_registered(name) : NULL;

    if (i < 0 && !other)
        return unknown(name, err);
    if (i >= 0 && !built_in[i].get) {
        csn_status st = csn_remote_find(name, ret, err);
        if (st < 0)
            return csn_error_advise(
                st, err, "use jail, local (it isolates nothing), or a registered backend");
        *ret_data = NULL;
        return CSN_OK;
    }
    *ret = other ? &other->ops : built_in[i].get();
    *ret_data = other ? other->data : NULL;
    return CSN_OK;
}

uint64_t csn_registry_options(const csn_backend_ops *ops)
{
    return ops->options | (ops->connect ? CSN_OPTION_DETACHED : 0) |
           (ops->options & CSN_OPTION_COW ? CSN_OPTION_UNDO | CSN_OPTION_RECORD : 0);
}

size_t csn_registry_honouring(uint64_t option, const char *names[CSN_BUILT_IN_MAX])
{
    size_t n = 0;

    for (size_t i = 0; built_in[i].name; i++) {
        uint64_t options = built_in[i].get ? csn_registry_options(built_in[i].get())
                                           : built_in[i].options | CSN_OPTION_DETACHED;
        if ((option & ~options) == 0)
            names[n++] = built_in[i].name;
    }
    return n;
}

/* Copies the groups and points r->ops at the copies. */
static csn_status take_groups(registered *r, csn_error **err)
{
    csn_backend_ops *o = &r->ops;
    csn_status st = CSN_OK;

#define TAKE(group)                                                                            \
    if (st == CSN_OK && o->group) {                                                            \
        st = csn_opts_take(o->group, &r->group, sizeof(r->group), "register backend", err);    \
        o->group = &r->group;                                                                  \
    }
    TAKE(files)
    TAKE(processes)
    TAKE(network)
    TAKE(snapshots)
    TAKE(workspace)
#undef TAKE
    return st;
}

static const char *missing_entry(const registered *r)
{
    const csn_backend_ops *o = &r->ops;
    const csn_process_ops *p = &r->processes;
    const csn_workspace_ops *w = &r->workspace;

    if (!o->name || !o->exec)
        return "name and exec are required";
    if (r->files.watch && (!r->files.watch_next || !r->files.watch_free))
        return "files.watch requires watch_next and watch_free";
    if (o->processes && (!p->start || !p->list || !p->logs || !p->signal))
        return "processes requires start, list, logs and signal";
    if (o->network && (!r->network.set_rules || !r->network.events))
        return "network requires set_rules and events";
    if (o->workspace && (!w->snapshot || !w->snapshots || !w->rollback || !w->discard ||
                         !w->open_layers || !w->freeze))
        return "workspace requires all of its entries";
    return o->snapshots && !r->snapshots.take ? "snapshots requires take" : NULL;
}

static csn_status take_tables(const csn_backend_ops *ops, registered *ret, csn_error **err)
{
    if (!ops || ops->size < offsetof(csn_backend_ops, exec) + sizeof(ops->exec))
        return csn_fail(err, CSN_INVALID, "register backend: name and exec are required");
    csn_status st = csn_opts_take(ops, &ret->ops, sizeof(ret->ops), "register backend", err);
    if (st == CSN_OK)
        st = take_groups(ret, err);
    if (st < 0)
        return st;
    const char *missing = missing_entry(ret);
    if (missing)
        return csn_fail(err, CSN_INVALID, "register backend: %s", missing);
    if (find_built_in(ops->name) >= 0)
        return csn_fail(err, CSN_EXISTS, "register backend: the name '%s' is built in",
                        ops->name);
    return CSN_OK;
}

csn_status csn_register_backend(const csn_backend_ops *ops, void *register_data,
                                csn_error **err)
{
    pthread_mutex_lock(&lock);
    registered *r = &table[table_len];
    *r = (registered){.data = register_data};
    csn_status st = take_tables(ops, r, err);
    for (size_t i = 0; i < table_len && st == CSN_OK; i++)
        if (strcmp(table[i].ops.name, r->ops.name) == 0)
            st = csn_fail(err, CSN_EXISTS, "register backend: '%s' is registered already",
                          r->ops.name);
    if (st == CSN_OK && table_len == REGISTERED_MAX)
        st = csn_fail(err, CSN_TOO_LARGE, "register backend: at most %u", REGISTERED_MAX);
    table_len += st == CSN_OK;
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

void csn_registry_sweep(bool all)
{
    csn_runtime_sweep(all);
}
