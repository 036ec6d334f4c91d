/* access.h: checks the token, Host and Origin of HTTP requests. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

typedef struct csn_httpd_access csn_httpd_access;

/* The lines of token_file are the tokens; other users must not be able to read it. A missing
 * file is created with a new token. `hosts` (NULL-terminated, or NULL): accepted host names
 * besides the loopback names and the bound address. */
csn_status csn_httpd_access_new(const char *token_file, const char *const *hosts,
                                const char *bound, csn_httpd_access **ret, csn_error **err);
void csn_httpd_access_free(csn_httpd_access *a); /* NULL is allowed */

/* Returns 0, or the HTTP status that refuses the request. NULL: the header is absent. */
int csn_httpd_access_host(const csn_httpd_access *a, const char *host, const char *origin);
/* Returns the index of the token in the header, or -1. Takes constant time. */
int csn_httpd_access_token(const csn_httpd_access *a, const char *authorization);
unsigned csn_httpd_access_tokens(const csn_httpd_access *a);
