/* nearest.c: finds the most similar word of a list, by Levenshtein distance. */
#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX   (CSN_NEAREST_MAX - 1)
#define SEPARATORS "|, "

/* The number of edits, computed with one row. A swap of two neighbours counts as two. A word
 * longer than WORD_MAX counts as unrelated. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], la = strlen(a), lb = strlen(b);

    if (la > WORD_MAX || lb > WORD_MAX)
        return WORD_MAX;
    for (size_t k = 0; k <= lb; k++)
        row[k] = k;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= lb; k++) {
            size_t best = diagonal + (a[i - 1] != b[k - 1]);
            if (row[k] + 1 < best)
                best = row[k] + 1;
            if (row[k - 1] + 1 < best)
                best = row[k - 1] + 1;
            diagonal = row[k];
            row[k] = best;
        }
    }
    return row[lb];
}

/* True if `word` becomes `other` when two neighbouring letters change places: the most frequent
 * error in short words, where two edits would be too many. */
static bool is_swap(const char *word, const char *other)
{
    size_t i = 0;

    while (word[i] && word[i] == other[i])
        i++;
    return word[i] && word[i + 1] && word[i] == other[i + 1] && word[i + 1] == other[i] &&
           strcmp(word + i + 2, other + i + 2) == 0;
}

/* The distance of a likely typing error, else WORD_MAX. */
static size_t likely(const char *word, const char *other)
{
    if (is_swap(word, other) || strcasecmp(word, other) == 0)
        return 1;
    size_t d = distance(word, other);
    return d <= 1 + strlen(word) / 4 && d < strlen(other) ? d : WORD_MAX;
}

const char *csn_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    size_t best_d = WORD_MAX;

    for (; *words; words++) {
        size_t d = likely(word, *words);
        if (d < best_d) {
            best_d = d;
            best = *words;
        }
    }
    return best;
}

const char *csn_nearest_in(const char *word, const char *list, char ret[CSN_NEAREST_MAX])
{
    size_t best_d = WORD_MAX;
    char one[CSN_NEAREST_MAX];

    for (const char *p = list + strspn(list, SEPARATORS); *p; p += strspn(p, SEPARATORS)) {
        size_t n = strcspn(p, SEPARATORS);
        if (n < sizeof(one)) {
            memcpy(one, p, n);
            one[n] = '\0';
            size_t d = likely(word, one);
            if (d < best_d) {
                best_d = d;
                memcpy(ret, one, n + 1);
            }
        }
        p += n;
    }
    return best_d < WORD_MAX ? ret : NULL;
}
