/* trust.h: which project files the user has trusted, by path and content. */
#pragma once
#include "base/hash.h"
#include "caisson/caisson.h"

typedef enum csn_trust {
    CSN_TRUST_NONE,
    CSN_TRUST_CHANGED, /* another content of this file was trusted */
    CSN_TRUST_GIVEN,
} csn_trust;

/* `path` is absolute and has no links; `hash` is the SHA-256 of the content. */
csn_status csn_trust_check(const char *path, const char *hash, csn_trust *ret, csn_error **err);
/* Replaces the content that was trusted before. */
csn_status csn_trust_add(const char *path, const char *hash, csn_error **err);
/* CSN_NOT_FOUND if no content of the file is trusted. */
csn_status csn_trust_remove(const char *path, csn_error **err);
/* Calls fn for each trusted file, in no order. */
csn_status csn_trust_each(void (*fn)(void *ctx, const char *path, const char *hash), void *ctx,
                          csn_error **err);
