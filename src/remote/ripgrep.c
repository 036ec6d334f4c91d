/* ripgrep.c: ripgrep inside a remote sandbox.
 *
 * Called once, when the sandbox has been made or found. The image's own is taken if there is
 * one. Else, if this host has a program for the sandbox's machine (CAISSON_RG names it, or it
 * lies as rg-MACHINE beside the modules), that one is sent, and kept only if it runs there.
 * Nothing depends on it: without ripgrep a search reads the files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "remote/remote.h"

#define RG_PLACE "/tmp/.caisson-rg"
#define RG_MS    60000u

/* The first bytes of an ELF program, and its machine. */
static bool made_for(int fd, const char *machine)
{
    unsigned char head[20];

    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        memcmp(head, "\177ELF\2\1", 6) != 0)
        return false;
    unsigned number = head[18] | (unsigned)head[19] << 8;
    return (number == 62 && strcmp(machine, "x86_64") == 0) ||
           (number == 183 && strcmp(machine, "aarch64") == 0);
}

static int open_ours(const char *machine)
{
    csn_autofree char *installed = NULL;
    const char *named = getenv("CAISSON_RG");
    csn_autofd int fd = -1;

    if (asprintf(&installed, CSN_MODULE_DIR "/rg-%s", machine) < 0)
        installed = NULL;
    const char *path = named ? named : installed;
    fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return fd >= 0 && made_for(fd, machine) ? csn_steal_fd(&fd) : -1;
}

static int64_t read_file(void *ctx, void *buf, size_t len)
{
    return read(*(int *)ctx, buf, len);
}

void csn_remote_ensure_rg(csn_remote *r)
{
    const csn_remote_script check = {.text =
                                         "chmod 755 " RG_PLACE " && " RG_PLACE
                                         " --version >&2 || { rm -f " RG_PLACE "; exit 1; }",
                                     .deadline_ns = csn_deadline_in(RG_MS)};
    csn_autofd int fd = r->rg_path ? -1 : open_ours(r->machine);
    const csn_source source = {.read = read_file, .ctx = &fd};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    if (fd < 0 || r->kind->put(r, RG_PLACE, &source, NULL) < 0)
        return;
    if (csn_remote_ask(r, &check, &out, &code, NULL) == CSN_OK && code == 0)
        r->rg_path = strdup(RG_PLACE);
}
