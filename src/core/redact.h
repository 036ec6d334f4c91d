/* redact.h: command lines without their secrets, for the audit log.
 *
 * Best effort by shape: values of NAME=value assignments with capital names, values of anything
 * whose name speaks of a password, token, secret or key (--token x, --token=x, token: x),
 * Authorization headers, user:password@ in URLs, and words that look like known tokens. Too
 * much is taken rather than too little. Both return malloc'd text, NULL when out of memory. */
#pragma once

char *csn_redact_line(const char *line);
/* Argument i of argv: an option that asks for a secret hides the argument after it. */
char *csn_redact_arg(const char *const *argv, int i);
