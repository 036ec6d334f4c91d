/* redact.h: removes secrets from command lines for the audit log.
 *
 * Best effort by shape: values of NAME=value assignments with capital names, values of anything
 * whose name contains password, token, secret or key (--token x, --token=x, token: x),
 * Authorization headers, user:password@ in URLs, and words that look like known tokens. In
 * doubt the text is hidden. Both functions return malloc'd text, or NULL when out of memory. */
#pragma once

char *csn_redact_line(const char *line);
/* Redacts argument i of argv; hides all of it if the option before it takes a secret. */
char *csn_redact_arg(const char *const *argv, int i);
