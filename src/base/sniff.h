/* sniff.h: recognise images and PDF by content. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define CSN_SNIFF_BYTES 512 /* enough of the start of a file to decide */

/* "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/svg+xml",
 * "application/pdf", or NULL. */
const char *csn_sniff_image(const void *head, size_t len);
/* A NUL byte in the head. */
bool csn_sniff_binary(const void *head, size_t len);
