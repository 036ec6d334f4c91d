/* plain.c: removes what only a terminal understands.
 *
 * Programs colour their messages on a terminal, and it ends lines with two bytes. The input is
 * untrusted; an escape sequence that is not complete is removed to the end of its line. */
#include "text/plain.h"

#define ESC '\033'
#define BEL '\007'

/* The length of the escape sequence at p: ESC [ ... letter, ESC ] ... BEL, or two bytes. */
static size_t sequence_length(const char *p, size_t left)
{
    size_t n = 2;

    if (left < 2)
        return left;
    if (p[1] == '[') {
        while (n < left && (p[n] < '@' || p[n] > '~') && p[n] != '\n')
            n++;
    } else if (p[1] == ']') {
        while (n < left && p[n] != BEL && p[n] != ESC && p[n] != '\n')
            n++;
    } else {
        return 2;
    }
    return n < left && p[n] != '\n' ? n + 1 : n;
}

size_t csn_plain_text(const char *from, size_t len, char *to, size_t *head)
{
    size_t n = 0, mark = head ? *head : len;

    for (size_t i = 0; i < len;) {
        size_t step = from[i] == ESC ? sequence_length(from + i, len - i) : 1;
        if (head && i <= mark)
            *head = n;
        if (step == 1 && ((unsigned char)from[i] >= ' ' || from[i] == '\n' || from[i] == '\t'))
            to[n++] = from[i];
        i += step;
    }
    if (head && mark >= len)
        *head = n;
    return n;
}
