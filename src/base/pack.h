/* pack.h: encoding of the messages between our own programs.
 *
 * A body is a sequence of numbers and strings. Structs whose fields are listed in a table of
 * csn_field are encoded and decoded whole. Numbers are in host byte order: both ends run on one
 * machine. keeper/protocol.h and gateway/protocol.h define the messages. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* Starts in the caller's buffer and grows on the heap, never beyond CSN_KEEPER_BODY_MAX. After
 * an error every put does nothing. */
typedef struct csn_packer {
    uint8_t *data;
    size_t len, cap;
    int error; /* 0 or errno */
    bool owned;
} csn_packer;

void csn_packer_init(csn_packer *o, void *buf, size_t size);
void csn_packer_release(csn_packer *o);
void csn_put_bytes(csn_packer *o, const void *data, size_t len);
void csn_put_u32(csn_packer *o, uint32_t v);
void csn_put_u64(csn_packer *o, uint64_t v);
void csn_put_i64(csn_packer *o, int64_t v);
/* Length, bytes, NUL: the receiver uses it in place. NULL and "" stay different. */
void csn_put_str(csn_packer *o, const char *s);

/* Never reads past `end`. After an error every get returns zero. */
typedef struct csn_unpacker {
    const uint8_t *p, *end;
    int error;
} csn_unpacker;

void csn_unpacker_init(csn_unpacker *in, const void *data, size_t len);
uint32_t csn_get_u32(csn_unpacker *in);
uint64_t csn_get_u64(csn_unpacker *in);
int64_t csn_get_i64(csn_unpacker *in);
/* Points into the message. NULL when NULL was sent (only if may_be_null) or on error. */
const char *csn_get_str(csn_unpacker *in, size_t max, bool may_be_null);
const uint8_t *csn_get_bytes(csn_unpacker *in, size_t len);
/* 0 if all of it was read and nothing failed, otherwise -EPROTO. */
int csn_unpacker_end(const csn_unpacker *in);

/* ---- structs ---- */

typedef struct csn_bytes {
    const uint8_t *data;
    uint32_t len;
} csn_bytes;

/* Memory for the lists of one decoded struct; most commands fit into `few`. */
#define CSN_STRINGS_FEW 64u
typedef struct csn_strings {
    const char *few[CSN_STRINGS_FEW];
    void *heap;
} csn_strings;

/* The kind of a field decides its type in the struct and what min and max bound. */
typedef enum csn_field_kind {
    CSN_FIELD_END,
    CSN_FIELD_U32,           /* uint32_t: its value */
    CSN_FIELD_FLAGS,         /* uint32_t: max is the set of known bits */
    CSN_FIELD_U64,           /* uint64_t: its value */
    CSN_FIELD_I64,           /* int64_t: not bounded */
    CSN_FIELD_TEXT,          /* const char *: its length */
    CSN_FIELD_OPTIONAL_TEXT, /* the same, or NULL */
    CSN_FIELD_BYTES,         /* csn_bytes: their number */
    CSN_FIELD_LIST,          /* const char **, NULL-terminated: the number of strings */
    CSN_FIELD_STRINGS,       /* csn_strings: not sent; one per struct that has lists */
} csn_field_kind;

#define CSN_FIELD_U32_TYPE           uint32_t
#define CSN_FIELD_FLAGS_TYPE         uint32_t
#define CSN_FIELD_U64_TYPE           uint64_t
#define CSN_FIELD_I64_TYPE           int64_t
#define CSN_FIELD_TEXT_TYPE          const char *
#define CSN_FIELD_OPTIONAL_TEXT_TYPE const char *
#define CSN_FIELD_BYTES_TYPE         csn_bytes
#define CSN_FIELD_LIST_TYPE          const char **
#define CSN_FIELD_STRINGS_TYPE       csn_strings

typedef struct csn_field {
    uint16_t kind, offset;
    uint64_t min, max;
} csn_field;

/* A row of a table; the last row is {0}. */
#define CSN_FIELD(type, kind, name, min, max)                                                  \
    {                                                                                          \
        CSN_FIELD_##kind, offsetof(type, name), min, max                                       \
    }
/* For a list of fields that is written once: the member of the struct, and the row. */
#define CSN_FIELD_MEMBER(type, kind, name, min, max) CSN_FIELD_##kind##_TYPE name;
#define CSN_FIELD_ROW(type, kind, name, min, max)    CSN_FIELD(type, kind, name, min, max),

/* A value outside its bounds is an error: E2BIG for too many strings or bytes, else EINVAL. */
void csn_put_fields(csn_packer *o, const csn_field *fields, const void *from);
/* Texts and bytes borrow from the message. Each list has one free slot before its first string.
 * 0, -EPROTO or -ENOMEM. After 0, release the struct's csn_strings if it has one. */
int csn_get_fields(csn_unpacker *in, const csn_field *fields, void *ret);
void csn_strings_release(csn_strings *s);
