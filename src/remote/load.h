/* load.h: the interface between the library and caisson-remote.so, its module of remote
 * backends. */
#pragma once
#include "remote/backends.h"

typedef struct csn_remote_api {
    uint32_t version;  /* CSN_REMOTE_API_VERSION */
    uint32_t ops_size; /* sizeof(csn_backend_ops): differs unless both come from one build */
    const csn_backend_ops *(*find)(const char *name); /* NULL: not in this build */
} csn_remote_api;

#define CSN_REMOTE_API_VERSION 2u

/* Loads the module once. CSN_UNSUPPORTED, with the reason, when it cannot be loaded. */
csn_status csn_remote_find(const char *name, const csn_backend_ops **ret, csn_error **err);

/* The only symbol that the module exports. */
CSN_API const csn_remote_api *csn_remote_module(void);
