/* stack.c: the layers of one copy-on-write workspace, as open directories. */
#include "layers/changes.h"

#include <unistd.h>

void csn_layer_stack_close(csn_layer_stack *s)
{
    for (size_t i = 0; i < s->count; i++)
        close(s->layers[i]);
    if (s->base >= 0)
        close(s->base);
    *s = (csn_layer_stack){.base = -1};
}
