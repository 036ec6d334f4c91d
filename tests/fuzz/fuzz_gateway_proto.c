/* fuzz_gateway_proto.c: what either side of the gateway's wire can be sent.
 *
 * The first byte picks the decoder. What is accepted is encoded again and must give the same
 * bytes: a decoder that takes something the encoder cannot say is a second meaning. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/protocol.h"

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

static void lists(const csn_gateway_rules *r, size_t size)
{
    for (size_t i = 0; r->allow[i]; i++)
        must(strlen(r->allow[i]) < size);
    for (size_t i = 0; r->deny[i]; i++)
        must(strlen(r->deny[i]) < size);
}

static void rules(const uint8_t *data, size_t size)
{
    csn_gateway_rules r;
    csn_packer o;

    if (csn_get_gateway_rules(data, size, &r) < 0)
        return;
    lists(&r, size);
    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_rules(&o, &r);
    same(&o, data, size);
    csn_gateway_rules_release(&r);
}

static void setup(const uint8_t *data, size_t size)
{
    csn_gateway_setup_msg s;
    csn_packer o;

    if (csn_get_gateway_setup(data, size, &s) < 0)
        return;
    lists(&s.rules, size);
    must(csn_gateway_setup_msg_fds(&s) < CSN_KEEPER_FDS_MAX - 1);
    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, &s);
    same(&o, data, size);
    csn_gateway_rules_release(&s.rules);
}

static void events(const uint8_t *data, size_t size)
{
    csn_gateway_batch b;
    csn_gateway_event e;
    csn_unpacker in;
    csn_packer o;

    csn_unpacker_init(&in, data, size);
    if (csn_get_gateway_batch(&in, &b) < 0)
        return;
    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_batch(&o, &b);
    for (uint32_t i = 0; i < b.count; i++) {
        if (csn_get_gateway_event(&in, &e) < 0) {
            csn_packer_release(&o);
            return;
        }
        csn_put_gateway_event(&o, &e);
    }
    if (csn_unpacker_end(&in) == 0)
        same(&o, data, size);
    else
        csn_packer_release(&o);
}

static void small(uint8_t which, const uint8_t *data, size_t size)
{
    csn_gateway_ready r;
    csn_packer o;
    uint64_t since;
    const char *text;

    csn_packer_init(&o, NULL, 0);
    if (which == 3 && csn_get_gateway_ready(data, size, &r) == 0)
        csn_put_gateway_ready(&o, &r);
    else if (which == 4 && csn_get_gateway_since(data, size, &since) == 0)
        csn_put_gateway_since(&o, since);
    else if (which == 5 && csn_get_gateway_text(data, size, &text) == 0)
        csn_put_str(&o, text);
    else
        return;
    same(&o, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t which = data[0] % 6;
    data++;
    size--;
    if (which == 0)
        rules(data, size);
    else if (which == 1)
        setup(data, size);
    else if (which == 2)
        events(data, size);
    else
        small(which, data, size);
    return 0;
}
