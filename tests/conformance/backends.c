/* backends.c: the backends the suite runs on: one line each. */
#include "backends/bash.h"
#include "backends/busybox.h"
#include "conformance/conformance.h"

#define LOCAL (CONF_BENEATH | CONF_TREE | CONF_HOSTDIR | CONF_LAYERS | CONF_LIVES)

const csn_conf_backend csn_conf_backends[] = {
    {"local", "none", LOCAL, NULL, NULL, NULL},
    {"jail", "kernel", (LOCAL & ~CONF_BENEATH) | CONF_PIDNS, NULL, NULL, NULL},
    {"bash", "none", 0, csn_test_register_bash, csn_test_backend_why, NULL},
    {"busybox", "none", 0, csn_test_register_busybox, csn_test_backend_why, "room"},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
