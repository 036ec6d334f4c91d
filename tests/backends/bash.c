/* bash.c: the smallest backend there is: a name and an exec on this host.
 *
 * The conformance suite and the tests of core/fallback run on it: every file operation is
 * derived with the host's own tools (bash or dash as sh, GNU coreutils and find on Debian). It
 * isolates nothing and says so. */
#include "backends/bash.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/spawn.h"
#include "backends/why.h"

static char why[256] = "nothing failed";

typedef struct host {
    char *root;
    char home[4200];
    const char *env[5];
} host;

void csn_test_backend_set_why(const char *what, const char *detail)
{
    snprintf(why, sizeof(why), "%s%s%s", what, detail ? ": " : "", detail ? detail : "");
}

const char *csn_test_backend_why(void)
{
    return why;
}

static csn_status bash_open(const csn_config *config, const char *id, void *register_data,
                            void **ret_state, csn_error **err)
{
    (void)config;
    (void)id;
    (void)err;
    *ret_state = register_data;
    return CSN_OK;
}

static void bash_close(void *state)
{
    (void)state; /* commands end with their call, so nothing is left */
}

static csn_status bash_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err)
{
    const host *h = state;
    const csn_test_place place = {.env = h->env, .cwd = h->root};

    return csn_test_spawn(&place, req, sink, ret, err);
}

static const csn_backend_ops ops = {
    .size = sizeof(csn_backend_ops),
    .caps = CSN_CAP_USAGE,
    .name = "bash",
    .isolation = "none",
    .options = CSN_OPTION_WORKSPACE, /* its root */
    .open = bash_open,
    .close = bash_close,
    .exec = bash_exec,
};

const csn_backend_ops *csn_test_bash_ops(const char *root_dir, void **ret_state)
{
    host *h = calloc(1, sizeof(*h));

    if (!h || !(h->root = strdup(root_dir))) {
        csn_test_backend_set_why("bash backend", "out of memory");
        free(h);
        return NULL;
    }
    snprintf(h->home, sizeof(h->home), "HOME=%s", root_dir);
    h->env[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
    h->env[1] = h->home;
    h->env[2] = "LANG=C.UTF-8";
    signal(SIGPIPE, SIG_IGN);
    *ret_state = h;
    return &ops;
}

void csn_test_bash_free(void *state)
{
    host *h = state;

    if (h)
        free(h->root);
    free(h);
}

int csn_test_register_bash(const char *root_dir)
{
    static void *state; /* for as long as the process lives */
    csn_error *err = NULL;

    const csn_backend_ops *o = csn_test_bash_ops(root_dir, &state);
    if (o && csn_register_backend(o, state, &err) < 0) {
        csn_test_backend_set_why("bash backend", csn_error_message(err));
        csn_error_free(err);
        csn_test_bash_free(state);
        o = NULL;
    }
    return o ? 0 : -1;
}
