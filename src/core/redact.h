/* redact.h: command lines without their secrets, for the audit log.
 *
 * Best effort by shape: values of NAME=value assignments with capital names, values of anything
 * whose name contains password, token, secret or key (--token x, --token=x, token: x),
 * Authorization headers, user:password@ in URLs, and words that look like known tokens. Too
 * much is taken rather than too little. Both return malloc'd text, NULL when out of memory. */
#pragma once

char *csn_redact_line(const char *line);
/* Argument i of argv; hidden as a whole if the option before it takes a secret. */
char *csn_redact_arg(const char *const *argv, int i);
