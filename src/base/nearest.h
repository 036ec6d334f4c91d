/* nearest.h: finds the word that was probably meant, for hints after a typing error. */
#pragma once
#include <stddef.h>

#define CSN_NEAREST_MAX 64u /* longest word that is compared, with its NUL */

/* The word of `words` (NULL-terminated) most similar to `word`, or NULL when none is similar.
 */
const char *csn_nearest(const char *word, const char *const *words);
/* The same for words in one text, separated by '|', ',' or spaces. Returns ret, or NULL. */
const char *csn_nearest_in(const char *word, const char *list, char ret[CSN_NEAREST_MAX]);
