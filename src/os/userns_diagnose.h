/* userns_diagnose.h: why a host refuses user namespaces, and what its owner could do about it.
 */
#pragma once

/* All texts are static; NULL where nothing is known. */
typedef struct csn_userns_why {
    const char *cause; /* which setting */
    const char *fix;   /* the command that changes it */
} csn_userns_why;

/* Only looks at settings: whether namespaces can be had shows when one is made. */
csn_userns_why csn_userns_ask(void);
