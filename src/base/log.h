/* log.h: debug lines of the library, for whoever called csn_set_log; silent else. A function
 * either logs or returns an error, never both. */
#pragma once

/* One line without newline: "what key=value ...". Costs one load when nobody listens. */
void csn_log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
