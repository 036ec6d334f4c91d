/* strv.h: NULL-terminated lists of strings; durations, sizes and signals as text. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t csn_strv_len(const char *const *v); /* NULL: 0 */
void csn_strv_free(char **v);
void csn_strv_freep(char ***v); /* for CSN_CLEANUP */
bool csn_strv_has(const char *const *v, const char *s);
/* Appends a copy; *v may be NULL at first. 0 or ENOMEM. */
int csn_strv_push(char ***v, const char *s);

bool csn_str_starts(const char *s, const char *prefix);
/* "500ms" "30s" "10m" "1h" "2d"; a bare number is seconds. false: not a duration. */
bool csn_parse_duration_ms(const char *s, uint64_t *ret);
/* "512" "512K" "64M" "2G" (1024-based, optional "iB" or "B"). */
bool csn_parse_size(const char *s, uint64_t *ret);
/* For people: "64 MiB", "63.9 MiB". Returns buf. */
#define CSN_SIZE_TEXT 24u
const char *csn_size_text(uint64_t bytes, char buf[CSN_SIZE_TEXT]);
/* Decimal digits only, no sign, no space, in range. */
bool csn_parse_u64(const char *s, uint64_t *ret);
/* "2", "1.5", "0.25" in thousandths, rounded. */
bool csn_parse_milli(const char *s, uint64_t *ret);
/* "SIGTERM", "TERM", "15" -> 15; 0: none. And back: "SIGTERM" or NULL. */
int csn_signal_number(const char *s);
const char *csn_signal_name(int signo);
