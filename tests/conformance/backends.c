/* backends.c: the backends the suite runs on: one line each. */
#include "backends/bash.h"
#include "backends/busybox.h"
#include "conformance/conformance.h"
#include "doubles/double.h"

#define LOCAL                                                                                  \
    (CONF_BENEATH | CONF_TREE | CONF_HOSTDIR | CONF_LAYERS | CONF_LIVES | CONF_OWNED |         \
     CONF_HERE)
#define REMOTE (CONF_TREE | CONF_LAYERS | CONF_LIVES | CONF_PIDNS) /* doubles run jails */
#define ENGINE (REMOTE | CONF_OWNED | CONF_HOSTDIR) /* a real one, by engine.mjs */

const csn_conf_backend csn_conf_backends[] = {
    {"local", "none", LOCAL, NULL, NULL, NULL},
    {"jail", "kernel", (LOCAL & ~CONF_BENEATH) | CONF_PIDNS, NULL, NULL, NULL},
    {"dagger", "container", REMOTE & ~CONF_LIVES, csn_double_dagger, csn_double_why, NULL},
    {"e2b", "microvm", REMOTE, csn_double_e2b, csn_double_why, NULL},
    {"docker", "container", ENGINE, csn_double_docker, csn_double_why, NULL},
    {"vercel", "microvm", REMOTE, csn_double_vercel, csn_double_why, NULL},
    {"bash", "none", CONF_HERE, csn_test_register_bash, csn_test_backend_why, NULL},
    {"busybox", "none", CONF_HERE, csn_test_register_busybox, csn_test_backend_why, "room"},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
