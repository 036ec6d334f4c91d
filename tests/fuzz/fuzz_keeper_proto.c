/* fuzz_keeper_proto.c: what either side of the keeper's wire can be sent.
 *
 * The first byte picks the decoder, the rest is the body (or, for the packet check, the whole
 * packet). What is accepted is encoded again and must be accepted again, with the same bytes:
 * a decoder that takes something the encoder cannot say is a second meaning. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/proto.h"

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

static void spawn(const uint8_t *data, size_t size)
{
    csn_spawn_body b;
    csn_packer o;

    if (csn_get_spawn(data, size, &b) < 0)
        return;
    for (size_t i = 0; b.argv[i]; i++)
        must(strlen(b.argv[i]) < size);
    must(csn_spawn_fd_count(b.flags) <= 4);
    csn_packer_init(&o, NULL, 0);
    csn_put_spawn(&o, &b);
    same(&o, data, size);
    csn_spawn_body_release(&b);
}

static void list(const uint8_t *data, size_t size)
{
    csn_unpacker in;
    csn_packer o;
    csn_proc_body b;

    csn_unpacker_init(&in, data, size);
    csn_packer_init(&o, NULL, 0);
    while (in.p < in.end) {
        if (csn_get_proc(&in, &b) < 0) {
            csn_packer_release(&o);
            return;
        }
        csn_put_proc(&o, &b);
    }
    same(&o, data, size);
}

static void small(uint8_t which, const uint8_t *data, size_t size)
{
    csn_packer o;
    csn_exit_body e;
    csn_ask_body a;
    csn_log_body l;

    csn_packer_init(&o, NULL, 0);
    if (which == 2 && csn_get_exit(data, size, &e) == 0)
        csn_put_exit(&o, &e);
    else if (which == 3 && csn_get_ask(data, size, &a) == 0)
        csn_put_ask(&o, &a);
    else if (which == 4 && csn_get_log(data, size, &l) == 0)
        csn_put_log(&o, &l);
    else
        return;
    same(&o, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_msg_head head;

    if (size == 0)
        return 0;
    uint8_t which = data[0] % 6;
    uint8_t nfds = data[0] / 6 % 9;
    data++;
    size--;
    switch (which) {
    case 0:
        spawn(data, size);
        break;
    case 1:
        list(data, size);
        break;
    case 5:
        if (csn_msg_check(data, size, nfds, &head) == 0)
            must(head.flags != 0 ? nfds > 0 && size == sizeof(head)
                                 : head.length == size - sizeof(head));
        break;
    default:
        small(which, data, size);
        break;
    }
    return 0;
}
