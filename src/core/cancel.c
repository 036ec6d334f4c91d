/* cancel.c: cancel handles, which let another thread stop a call.
 *
 * A handle is an eventfd that is never read: firing it is one write, which is safe in signal
 * handlers, and the descriptor stays readable. */
#include "core/cancel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

struct csn_cancel {
    int fd;
};

csn_status csn_cancel_new(csn_cancel **ret, csn_error **err)
{
    csn_cancel *c = malloc(sizeof(*c));

    if (!c)
        return csn_fail(err, CSN_NOMEM, "cancel handle");
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->fd < 0) {
        int e = errno;
        free(c);
        return csn_fail_errno(err, e, "cancel handle");
    }
    *ret = c;
    return CSN_OK;
}

void csn_cancel_fire(csn_cancel *c)
{
    int saved = errno;
    uint64_t one = 1;

    if (c)
        (void)!write(c->fd, &one, sizeof(one));
    errno = saved;
}

void csn_cancel_free(csn_cancel *c)
{
    if (!c)
        return;
    close(c->fd);
    free(c);
}

int csn_cancel_fd(const csn_cancel *c)
{
    return c ? c->fd : -1;
}

int csn_cancel_fired(const csn_cancel *c)
{
    struct pollfd p = {.fd = csn_cancel_fd(c), .events = POLLIN};

    return c && poll(&p, 1, 0) == 1;
}
