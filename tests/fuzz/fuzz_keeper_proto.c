/* fuzz_keeper_proto.c: the messages between library and keeper.
 *
 * The first byte is the type of a message, the second the number of its descriptors, the rest
 * its body. Type 0 checks the rest as a whole packet. A body that is accepted must be accepted
 * by the encoder as well and give the same bytes: no message has two encodings. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

static void same(csn_packer *o, const uint8_t *data, size_t size)
{
    must(o->error == 0 && o->len == size && (size == 0 || memcmp(o->data, data, size) == 0));
    csn_packer_release(o);
}

static void check_spawn(const csn_spawn_msg *s, size_t nfds, size_t size)
{
    for (size_t i = 0; s->argv[i]; i++)
        must(strlen(s->argv[i]) < size);
    must(s->argv[0] && !s->argv[-1] && csn_spawn_fd_count(s->flags) == nfds);
}

static void list(const uint8_t *data, size_t size)
{
    csn_process_msg p;
    csn_unpacker in;
    csn_packer o;
    int rc;

    csn_unpacker_init(&in, data, size);
    csn_packer_init(&o, NULL, 0);
    while ((rc = csn_process_next(&in, &p)) == 1)
        csn_process_put(&o, &p);
    if (rc == 0)
        same(&o, data, size);
    else
        csn_packer_release(&o);
}

static void message(csn_msg_type type, size_t nfds, const uint8_t *data, size_t size)
{
    csn_msg m = {.type = type, .body = data, .len = size, .nfds = nfds};
    csn_spawn_msg any; /* the largest */
    csn_packer o;

    if (csn_proto_decode(&m, type, &any) < 0)
        return;
    if (type == CSN_MSG_SPAWN)
        check_spawn(&any, nfds, size);
    csn_packer_init(&o, NULL, 0);
    csn_proto_encode(&o, type, &any, nfds);
    same(&o, data, size);
    csn_proto_release(type, &any);
}

static void packet(size_t nfds, const uint8_t *data, size_t size)
{
    csn_msg_head head;

    if (csn_msg_check(data, size, nfds, &head) == 0)
        must(head.flags != 0 ? nfds > 0 && size == sizeof(head)
                             : head.length == size - sizeof(head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (data[0] == 0)
        packet(data[1], data + 2, size - 2);
    else if (data[0] == CSN_MSG_PROCESS_LIST)
        list(data + 2, size - 2);
    else if (data[0] != CSN_MSG_SPEC) /* fuzz_keeper_spec */
        message(data[0], data[1], data + 2, size - 2);
    return 0;
}
