/* log.h: debug lines for csn_set_log. A function either logs or returns an error, not both. */
#pragma once

/* One line without newline: "what key=value ...". */
void csn_log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
