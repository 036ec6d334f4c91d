/* backends.h: the remote backends and the options that each honours; the only list of them. */
#pragma once
#include "caisson/backend.h"

#define CSN_E2B_OPTIONS                                                                        \
    (CSN_OPTION_IMAGE | CSN_OPTION_NETWORK | CSN_OPTION_NET_ALLOW | CSN_OPTION_NET_DENY |      \
     CSN_OPTION_LIFETIME)
#define CSN_VERCEL_OPTIONS CSN_E2B_OPTIONS
#define CSN_DAGGER_OPTIONS CSN_OPTION_IMAGE
#define CSN_DOCKER_OPTIONS                                                                     \
    (CSN_OPTION_IMAGE | CSN_OPTION_WORKSPACE | CSN_OPTION_WORKSPACES | CSN_OPTION_NETWORK |    \
     CSN_OPTION_MEMORY | CSN_OPTION_PIDS | CSN_OPTION_CPUS | CSN_OPTION_DISK |                 \
     CSN_OPTION_LIFETIME)

/* X(name, options). The module defines csn_<name>_backend for each. */
#define CSN_REMOTE_BACKENDS(X)                                                                 \
    X(e2b, CSN_E2B_OPTIONS)                                                                    \
    X(vercel, CSN_VERCEL_OPTIONS)                                                              \
    X(dagger, CSN_DAGGER_OPTIONS)                                                              \
    X(docker, CSN_DOCKER_OPTIONS)
