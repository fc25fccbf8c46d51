/*
 * The little that the loader reads from PTX text for its messages: the words after .version, .target and .entry.
 * Private to fc_cuda.c.
 */

#ifndef FC_PTX_TEXT_H
#define FC_PTX_TEXT_H

#include <stdio.h>
#include <string.h>

/* A piece of the PTX text; print it with %.*s. */
typedef struct span {
    const char *start;
    int length;
} span;

/* The word that follows the next `directive` at or after `ptx`: "7.4" for ".version"; length 0 when there is none. */
static span word_after(const char *ptx, const char *directive)
{
    const span none = {"", 0};
    const size_t length = strlen(directive);
    for (const char *at = strstr(ptx, directive); at != NULL; at = strstr(at + length, directive)) {
        const char *start = at + length + strspn(at + length, " \t\r\n");
        const size_t word = strcspn(start, " \t\r\n,;(){");
        if (start != at + length && word > 0 && word < 1024)
            return (span){start, (int)word};
    }
    return none;
}

static int span_is(span s, const char *text)
{
    return strlen(text) == (size_t)s.length && memcmp(s.start, text, (size_t)s.length) == 0;
}

/* Whether `entry` is the C++ name of `name`: _Z<length><name>..., or the same inside a namespace. */
static int is_mangled(span entry, const char *name)
{
    char part[256];
    const int length = snprintf(part, sizeof part, "%d%s", (int)strlen(name), name);
    if (length >= (int)sizeof part || strncmp(entry.start, "_Z", 2) != 0)
        return 0;
    for (int i = 2; i + length <= entry.length; i++) {
        const char before = entry.start[i - 1]; /* a digit: the tail of a longer name's length, 17name and not 7name */
        if (memcmp(entry.start + i, part, (size_t)length) == 0 && (before < '0' || before > '9'))
            return 1;
    }
    return 0;
}

#endif
