/* userns_diagnose.h: why this host refuses user namespaces, and the fix. */
#pragma once

/* Static texts; NULL: unknown. */
typedef struct csn_userns_diagnosis {
    const char *cause; /* the setting */
    const char *fix;   /* the command that changes it */
} csn_userns_diagnosis;

/* Reads settings only; call it after a namespace could not be made. */
csn_userns_diagnosis csn_userns_diagnose(void);
