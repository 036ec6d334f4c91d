/* access.h: who may speak to a server over HTTP: tokens, and against browsers Host and Origin.
 *
 * Pure: it is asked with texts and answers with a status. Shared by every server of ours. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

typedef struct csn_httpd_access csn_httpd_access;

/* Tokens are the lines of the file, which nobody else may read; if there is no such file one is
 * made with a new token. `hosts` (NULL-terminated, or NULL) are names that requests may be
 * addressed to besides those of the loopback; `bound` is our own address. */
csn_status csn_httpd_access_new(const char *token_file, const char *const *hosts,
                                const char *bound, csn_httpd_access **ret, csn_error **err);
void csn_httpd_access_free(csn_httpd_access *g); /* NULL is fine */

/* 0, or the status to refuse with. Each text is NULL when the header is not there. */
int csn_httpd_access_host(const csn_httpd_access *g, const char *host, const char *origin);
/* The number of the token that the header holds, from 0; -1: none. In a time that does not
 * depend on how much of it is right. */
int csn_httpd_access_token(const csn_httpd_access *g, const char *authorization);
unsigned csn_httpd_access_tokens(const csn_httpd_access *g);
