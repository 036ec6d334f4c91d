/* fuzz_gateway_proto.c: what either side of the gateway's wire can be sent.
 *
 * The first byte picks the decoder. What is accepted is encoded again and must give the same
 * bytes: a decoder that takes something the encoder cannot say is a second meaning. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

static void same(csn_wire_out *o, const uint8_t *data, size_t size)
{
    must(o->error == 0 && o->len == size && (size == 0 || memcmp(o->data, data, size) == 0));
    csn_wire_out_release(o);
}

static void lists(const csn_gate_rules *r, size_t size)
{
    for (size_t i = 0; r->allow[i]; i++)
        must(strlen(r->allow[i]) < size);
    for (size_t i = 0; r->deny[i]; i++)
        must(strlen(r->deny[i]) < size);
}

static void rules(const uint8_t *data, size_t size)
{
    csn_gate_rules r;
    csn_wire_out o;

    if (csn_get_gate_rules(data, size, &r) < 0)
        return;
    lists(&r, size);
    csn_wire_out_init(&o, NULL, 0);
    csn_put_gate_rules(&o, &r);
    same(&o, data, size);
    csn_gate_rules_release(&r);
}

static void setup(const uint8_t *data, size_t size)
{
    csn_gate_setup s;
    csn_wire_out o;

    if (csn_get_gate_setup(data, size, &s) < 0)
        return;
    lists(&s.rules, size);
    must(csn_gate_setup_fds(&s) < CSN_KEEPER_FDS_MAX - 1);
    csn_wire_out_init(&o, NULL, 0);
    csn_put_gate_setup(&o, &s);
    same(&o, data, size);
    csn_gate_setup_release(&s);
}

static void events(const uint8_t *data, size_t size)
{
    csn_gate_batch b;
    csn_gate_event e;
    csn_wire_in in;
    csn_wire_out o;

    csn_wire_in_init(&in, data, size);
    if (csn_get_gate_batch(&in, &b) < 0)
        return;
    csn_wire_out_init(&o, NULL, 0);
    csn_put_gate_batch(&o, &b);
    for (uint32_t i = 0; i < b.count; i++) {
        if (csn_get_gate_event(&in, &e) < 0) {
            csn_wire_out_release(&o);
            return;
        }
        csn_put_gate_event(&o, &e);
    }
    if (csn_wire_in_end(&in) == 0)
        same(&o, data, size);
    else
        csn_wire_out_release(&o);
}

static void small(uint8_t which, const uint8_t *data, size_t size)
{
    csn_gate_ready r;
    csn_wire_out o;
    uint64_t since;
    const char *text;

    csn_wire_out_init(&o, NULL, 0);
    if (which == 3 && csn_get_gate_ready(data, size, &r) == 0)
        csn_put_gate_ready(&o, &r);
    else if (which == 4 && csn_get_gate_since(data, size, &since) == 0)
        csn_put_gate_since(&o, since);
    else if (which == 5 && csn_get_gate_text(data, size, &text) == 0)
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
