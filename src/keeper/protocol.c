/* protocol.c: validates, encodes and decodes the messages of protocol.h.
 *
 * Tables give each message its fields and ceilings; rules between fields are functions here.
 * Linked into the library and the keeper. Decoding has no side effects and is fuzzed
 * (fuzz_keeper_proto). */
#include "keeper/protocol.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define FIELD_TABLE(name, NAME)                                                                \
    static const csn_field name##_fields[] = {                                                 \
        CSN_##NAME##_FIELDS(CSN_FIELD_ROW, csn_##name##_msg){0}};
CSN_MESSAGE_STRUCTS(FIELD_TABLE)
static const csn_field none_fields[] = {{0}};
#define raw_fields NULL /* the body is not a struct */

typedef struct row {
    uint16_t type;
    uint8_t fds_min, fds_max;
    uint32_t body_max;
    const csn_field *fields;
} row;

static const row rows[] = {
#define ROW(name, number, fields, body_max, fds_min, fds_max)                                  \
    {CSN_MSG_##name, fds_min, fds_max, body_max, fields##_fields},
    CSN_MESSAGES(ROW)};

/* NULL: there is no such message. */
static const row *find_row(csn_msg_type type)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

/* ---- rules between fields ---- */

size_t csn_spawn_fd_count(uint32_t flags)
{
    return (size_t)__builtin_popcount(flags & CSN_SPAWN_FDS);
}

/* A background process is given no output descriptors, and at most one stdin. It outlives its
 * channel and the process that creates its sockets. The terminal of a foreground command is the
 * caller's: it comes as stdin and stdout. */
static bool spawn_is_valid(const csn_spawn_msg *s, size_t nfds)
{
    uint32_t foreground_only = CSN_SPAWN_STDOUT_FD | CSN_SPAWN_STDERR_FD |
                               CSN_SPAWN_SOCKETS_FD | CSN_SPAWN_KEEP_CHANNEL;
    uint32_t background_only = CSN_SPAWN_TIED | CSN_SPAWN_STDIN_PIPE;
    uint32_t terminal = CSN_SPAWN_STDIN_FD | CSN_SPAWN_STDOUT_FD;
    uint32_t in = s->flags & (CSN_SPAWN_STDIN_FD | CSN_SPAWN_STDIN_PIPE | CSN_SPAWN_PTY);

    if (nfds != csn_spawn_fd_count(s->flags))
        return false;
    if (!(s->flags & CSN_SPAWN_BACKGROUND))
        return (s->flags & background_only) == 0 &&
               (!(s->flags & CSN_SPAWN_PTY) || (s->flags & terminal) == terminal);
    return (s->flags & foreground_only) == 0 && (in & (in - 1)) == 0 && s->ring_max != 0;
}

static bool log_is_valid(const csn_log_msg *l)
{
    return l->offset <= l->total && l->bytes.len <= l->total - l->offset;
}

static bool net_is_valid(const csn_ready_msg *r)
{
    switch (r->net_mode) {
    case CSN_GATEWAY_NET_TRANSPARENT:
        return (r->net_sockets & CSN_GATEWAY_NET_ALL4) == CSN_GATEWAY_NET_ALL4;
    case CSN_GATEWAY_NET_PROXY:
        return r->net_sockets == 1u << CSN_GATEWAY_NET_LISTENER && r->proxy_port != 0;
    default:
        return r->net_sockets == 0 && r->net_lacking == 0 && r->proxy_port == 0;
    }
}

static bool is_valid(const row *r, const void *msg, size_t nfds)
{
    if (nfds < r->fds_min || nfds > r->fds_max)
        return false;
    if (!msg) /* a message without fields */
        return true;
    switch (r->type) {
    case CSN_MSG_SPAWN:
        return spawn_is_valid(msg, nfds);
    case CSN_MSG_SESSION:
        return nfds == csn_spawn_fd_count(((const csn_session_msg *)msg)->flags);
    case CSN_MSG_LOG:
        return log_is_valid(msg);
    case CSN_MSG_READY:
    case CSN_MSG_ROOT_REPLY:
        return net_is_valid(msg);
    default:
        return true;
    }
}

/* ---- encode, decode, send ---- */

void csn_proto_encode(csn_packer *o, csn_msg_type type, const void *msg, size_t nfds)
{
    const row *r = find_row(type);

    if (r && r->fields)
        csn_put_fields(o, r->fields, msg);
    if (o->error == 0 && (!r || !r->fields || !is_valid(r, msg, nfds)))
        o->error = EINVAL;
    if (o->error == 0 && o->len > r->body_max)
        o->error = E2BIG;
}

int csn_proto_send(int sock, csn_msg_type type, const void *msg, const int *fds, size_t nfds,
                   uint64_t deadline_ns)
{
    uint8_t buf[CSN_SMALL_BODY];
    csn_packer o;

    csn_packer_init(&o, buf, sizeof(buf));
    csn_proto_encode(&o, type, msg, nfds);
    int rc = -o.error;
    if (rc == 0)
        rc = csn_msg_send(sock, type, o.data, o.len, fds, nfds, deadline_ns);
    csn_packer_release(&o);
    return rc;
}

int csn_proto_decode(const csn_msg *m, csn_msg_type type, void *ret)
{
    const row *r = find_row(type);
    csn_unpacker in;

    if (!r || m->type != type || m->len > r->body_max)
        return -EPROTO;
    if (!r->fields)
        return is_valid(r, NULL, m->nfds) ? 0 : -EPROTO;
    csn_unpacker_init(&in, m->body, m->len);
    int rc = csn_get_fields(&in, r->fields, ret);
    if (rc == 0 && (csn_unpacker_end(&in) < 0 || !is_valid(r, ret, m->nfds))) {
        csn_proto_release(type, ret);
        rc = -EPROTO;
    }
    return rc;
}

void csn_proto_release(csn_msg_type type, void *msg)
{
    if (type == CSN_MSG_SPAWN)
        csn_strings_release(&((csn_spawn_msg *)msg)->strings);
    else if (type == CSN_MSG_SESSION)
        csn_strings_release(&((csn_session_msg *)msg)->strings);
}

int csn_proto_take_channel(csn_msg *m)
{
    int fd = csn_msg_take_fd(m, 0);

    if (m->nfds > 0) {
        m->nfds--;
        memmove(m->fds, m->fds + 1, m->nfds * sizeof(m->fds[0]));
    }
    return fd;
}

void csn_process_put(csn_packer *o, const csn_process_msg *p)
{
    csn_put_fields(o, process_fields, p);
}

int csn_process_next(csn_unpacker *in, csn_process_msg *ret)
{
    if (in->p == in->end)
        return 0;
    return csn_get_fields(in, process_fields, ret) < 0 ? -EPROTO : 1;
}
