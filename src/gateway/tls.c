/* tls.c: parses a TLS ClientHello incrementally, in whatever records and segments it arrives.
 *
 * An attacker controls every byte. Invariants: memory is constant and time linear. Every length
 * is checked against the enclosing one, so the parser finds a name only where a server finds
 * it. Input that some server might accept as a ClientHello is BAD, never NOT_TLS, because
 * NOT_TLS may pass uninspected. */
#include "gateway/tls.h"

#define RECORD_HANDSHAKE 0x16u
#define RECORD_LOWEST    0x14u
#define RECORD_HIGHEST   0x18u
#define CLIENT_HELLO     1u
#define SESSION_MAX      32u

#define EXT_SNI  0u
#define EXT_ALPN 16u
#define EXT_ECH  0xfe0du
#define EXT_ESNI 0xffceu /* draft predecessor of ECH */

enum field {
    F_TYPE,
    F_LENGTH,
    F_VERSION,
    F_RANDOM,
    F_SESSION_LEN,
    F_SESSION,
    F_SUITES_LEN,
    F_SUITES,
    F_COMPRESSION_LEN,
    F_COMPRESSION,
    F_EXTENSIONS_LEN,
    F_EXT_TYPE,
    F_EXT_LEN,
    F_EXT_SKIP,
    F_SNI_LIST_LEN,
    F_SNI_TYPE,
    F_SNI_LEN,
    F_SNI_NAME,
    F_ALPN_LIST_LEN,
    F_ALPN_LEN,
    F_ALPN_PROTO,
};

static void bad(gw_tls *t, const char *why)
{
    t->result = GW_TLS_BAD;
    t->why = why;
}

/* Expects a field of n bytes next and subtracts n from the length of its container. */
static void expect(gw_tls *t, enum field field, size_t n, size_t *enclosing)
{
    if (n > *enclosing) {
        bad(t, "a ClientHello field exceeds its container");
        return;
    }
    *enclosing -= n;
    t->field = field;
    t->field_left = n;
    t->number = 0;
}

static void next_extension(gw_tls *t)
{
    if (t->extension_left != 0)
        bad(t, "trailing bytes in a ClientHello extension");
    else if (t->extensions_left > 0)
        expect(t, F_EXT_TYPE, 2, &t->extensions_left);
    else
        t->result = GW_TLS_HELLO;
}

static void skip_extension(gw_tls *t)
{
    expect(t, F_EXT_SKIP, t->extension_left, &t->extension_left);
}

static void begin_extension(gw_tls *t)
{
    gw_tls_hello *h = &t->hello;
    size_t len = t->number;

    if (len > t->extensions_left) {
        bad(t, "a ClientHello extension exceeds its list");
        return;
    }
    t->extensions_left -= len;
    t->extension_left = len;
    if (t->extension == EXT_SNI && !h->has_sni) {
        h->has_sni = true;
        expect(t, F_SNI_LIST_LEN, 2, &t->extension_left);
    } else if (t->extension == EXT_ALPN && !t->alpn_seen) {
        t->alpn_seen = true;
        expect(t, F_ALPN_LIST_LEN, 2, &t->extension_left);
    } else if (t->extension == EXT_SNI || t->extension == EXT_ALPN) {
        bad(t, "repeated ClientHello extension");
    } else {
        if (t->extension == EXT_ECH || t->extension == EXT_ESNI)
            h->ech = true;
        skip_extension(t);
    }
}

/* Accepts exactly one name of type 0: servers treat longer lists differently. */
static void after_sni_field(gw_tls *t)
{
    switch (t->field) {
    case F_SNI_LIST_LEN:
        if (t->number != t->extension_left)
            bad(t, "wrong length of the server name list");
        else
            expect(t, F_SNI_TYPE, 1, &t->extension_left);
        break;
    case F_SNI_TYPE:
        if (t->number != 0)
            bad(t, "the server name is not a host name");
        else
            expect(t, F_SNI_LEN, 2, &t->extension_left);
        break;
    case F_SNI_LEN:
        if (t->number == 0 || t->number > GW_TLS_NAME_MAX)
            bad(t, "the server name is empty or too long");
        else if (t->number < t->extension_left)
            bad(t, "the ClientHello has several server names");
        else
            expect(t, F_SNI_NAME, t->number, &t->extension_left);
        break;
    default:
        next_extension(t);
        break;
    }
}

static void after_alpn_field(gw_tls *t)
{
    if (t->field == F_ALPN_LIST_LEN && (t->number < 2 || t->number != t->extension_left))
        bad(t, "wrong length of the ALPN list");
    else if (t->field == F_ALPN_LEN && t->number == 0)
        bad(t, "empty ALPN protocol");
    else if (t->field == F_ALPN_LEN)
        expect(t, F_ALPN_PROTO, t->number, &t->extension_left);
    else if (t->extension_left > 0)
        expect(t, F_ALPN_LEN, 1, &t->extension_left);
    else
        next_extension(t);
}

static void begin_message(gw_tls *t)
{
    if (t->number > CSN_TLS_HELLO_MAX) {
        bad(t, "the ClientHello is too long");
        return;
    }
    t->message_left = t->number;
    expect(t, F_VERSION, 2, &t->message_left);
}

/* A ClientHello without extensions is valid. */
static void after_compression(gw_tls *t)
{
    if (t->message_left == 0)
        t->result = GW_TLS_HELLO;
    else
        expect(t, F_EXTENSIONS_LEN, 2, &t->message_left);
}

static void after_extensions_len(gw_tls *t)
{
    if (t->number != t->message_left) {
        bad(t, "the extensions do not end with the ClientHello");
        return;
    }
    t->extensions_left = t->message_left;
    next_extension(t);
}

/* Handles the length fields that precede the extensions. */
static void after_length(gw_tls *t)
{
    if (t->field == F_SESSION_LEN && t->number > SESSION_MAX)
        bad(t, "the session id is too long");
    else if (t->field == F_SUITES_LEN && (t->number < 2 || t->number % 2 != 0))
        bad(t, "wrong length of the cipher suites");
    else if (t->field == F_COMPRESSION_LEN && t->number == 0)
        bad(t, "no compression methods");
    else
        expect(t, (enum field)(t->field + 1), t->number, &t->message_left);
}

/* Checks a complete field and selects the next one. */
static void after_field(gw_tls *t)
{
    switch ((enum field)t->field) {
    case F_TYPE:
        if (t->number != CLIENT_HELLO)
            bad(t, "the first TLS message is not a ClientHello");
        t->field = F_LENGTH;
        t->field_left = 3;
        t->number = 0;
        break;
    case F_LENGTH:
        begin_message(t);
        break;
    case F_VERSION:
        if (t->number >> 8 != 3)
            bad(t, "unknown ClientHello version");
        else
            expect(t, F_RANDOM, 32, &t->message_left);
        break;
    case F_RANDOM:
        expect(t, F_SESSION_LEN, 1, &t->message_left);
        break;
    case F_SESSION:
        expect(t, F_SUITES_LEN, 2, &t->message_left);
        break;
    case F_SUITES:
        expect(t, F_COMPRESSION_LEN, 1, &t->message_left);
        break;
    case F_SESSION_LEN:
    case F_SUITES_LEN:
    case F_COMPRESSION_LEN:
        after_length(t);
        break;
    case F_COMPRESSION:
        after_compression(t);
        break;
    case F_EXTENSIONS_LEN:
        after_extensions_len(t);
        break;
    case F_EXT_TYPE:
        t->extension = (uint16_t)t->number;
        expect(t, F_EXT_LEN, 2, &t->extensions_left);
        break;
    case F_EXT_LEN:
        begin_extension(t);
        break;
    case F_EXT_SKIP:
        next_extension(t);
        break;
    case F_SNI_LIST_LEN:
    case F_SNI_TYPE:
    case F_SNI_LEN:
    case F_SNI_NAME:
        after_sni_field(t);
        break;
    case F_ALPN_LIST_LEN:
    case F_ALPN_LEN:
    case F_ALPN_PROTO:
        after_alpn_field(t);
        break;
    }
}

static bool is_name_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_' || c == '.';
}

static void take_byte(gw_tls *t, uint8_t c)
{
    if (t->field == F_SNI_NAME) {
        if (!is_name_byte(c))
            bad(t, "invalid character in the server name");
        t->hello.sni[t->hello.sni_len++] = (char)c;
    } else {
        t->number = t->number << 8 | c;
    }
}

/* Fields whose content is not read. */
static bool is_skipped(int field)
{
    return field == F_RANDOM || field == F_SESSION || field == F_SUITES ||
           field == F_COMPRESSION || field == F_EXT_SKIP || field == F_ALPN_PROTO;
}

/* Consumes bytes of the handshake message, without record headers. The message must end with
 * its record: another one behind it would not be inspected. */
static void feed_message(gw_tls *t, const uint8_t *data, size_t len)
{
    t->record_left -= len;
    while (len > 0 && t->result == GW_TLS_NEED_MORE) {
        size_t n = 1;
        if (is_skipped(t->field))
            n = t->field_left < len ? t->field_left : len;
        else
            take_byte(t, *data);
        data += n;
        len -= n;
        t->field_left -= n;
        while (t->field_left == 0 && t->result == GW_TLS_NEED_MORE)
            after_field(t);
    }
    if (t->result == GW_TLS_HELLO && (len > 0 || t->record_left > 0))
        bad(t, "bytes after the ClientHello in its record");
}

/* Classifies the first record header as early as its bytes allow. */
static void classify_first(gw_tls *t)
{
    const uint8_t *b = t->record;
    size_t n = t->record_have;
    bool other_record = b[0] >= RECORD_LOWEST && b[0] <= RECORD_HIGHEST;

    if (b[0] == RECORD_HANDSHAKE) {
        /* servers ignore the minor version of a record */
        if (n == 2 && b[1] != 3)
            bad(t, "unknown TLS record version");
    } else if (other_record && (n < 2 || b[1] == 3)) {
        if (n == 3 && b[2] <= 4)
            bad(t, "the first TLS record is not a handshake");
        else if (n == 3)
            t->result = GW_TLS_NOT_TLS;
    } else if ((b[0] & 0x80u) != 0 && (n < 3 || b[2] == CLIENT_HELLO)) {
        if (n == 5 && (b[3] == 3 || (b[3] == 0 && b[4] == 2)))
            bad(t, "SSL 2 ClientHello, which names no server");
        else if (n == 5)
            t->result = GW_TLS_NOT_TLS;
    } else {
        t->result = GW_TLS_NOT_TLS;
    }
}

static void feed_record_header(gw_tls *t, uint8_t c)
{
    t->record[t->record_have++] = c;
    if (!t->started)
        classify_first(t);
    if (t->record_have < sizeof(t->record) || t->result != GW_TLS_NEED_MORE)
        return;
    t->record_left = (size_t)t->record[3] << 8 | t->record[4];
    if (t->record[0] != RECORD_HANDSHAKE || t->record[1] != 3)
        bad(t, "other TLS record within the ClientHello");
    else if (t->record_left == 0 || t->record_left > CSN_TLS_RECORD_MAX)
        bad(t, "TLS record empty or too long");
    if (!t->started)
        t->field_left = 1; /* F_TYPE */
    t->started = true;
    t->record_have = 0;
}

enum gw_tls_result gw_tls_parse(gw_tls *t, const void *data, size_t len)
{
    const uint8_t *bytes = data;

    while (t->seen < len && t->result == GW_TLS_NEED_MORE) {
        if (t->seen == CSN_TLS_PEEK_MAX) {
            bad(t, "the ClientHello spans too many records");
        } else if (t->record_left == 0) {
            feed_record_header(t, bytes[t->seen++]);
        } else {
            size_t n = len - t->seen < t->record_left ? len - t->seen : t->record_left;
            if (n > CSN_TLS_PEEK_MAX - t->seen)
                n = CSN_TLS_PEEK_MAX - t->seen;
            feed_message(t, bytes + t->seen, n);
            t->seen += n;
        }
    }
    return t->result;
}
