/* ripgrep.c: provides ripgrep inside a remote sandbox.
 *
 * Runs once, after the sandbox was created or connected. Uses the image's ripgrep if it has
 * one. Otherwise uploads a program for the sandbox's architecture (CAISSON_RG, or rg-ARCH
 * beside the modules) and keeps it only if it runs there. Failure is not an error: without
 * ripgrep a search reads the files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/internal.h"

#define RG_PATH "/tmp/.caisson-rg"
#define RG_MS   60000u

/* e_machine of a 64-bit little-endian ELF file. */
static bool is_elf_for(int fd, const char *arch)
{
    unsigned char head[20];

    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        memcmp(head, "\177ELF\2\1", 6) != 0)
        return false;
    unsigned machine = head[18] | (unsigned)head[19] << 8;
    return (machine == 62 && strcmp(arch, "x86_64") == 0) ||
           (machine == 183 && strcmp(arch, "aarch64") == 0);
}

static int open_program(const char *arch)
{
    csn_autofree char *installed = NULL;
    const char *named = getenv("CAISSON_RG");
    csn_autofd int fd = -1;

    if (asprintf(&installed, CSN_MODULE_DIR "/rg-%s", arch) < 0)
        installed = NULL;
    const char *path = named ? named : installed;
    fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return fd >= 0 && is_elf_for(fd, arch) ? csn_steal_fd(&fd) : -1;
}

static int64_t read_file(void *ctx, void *buf, size_t len)
{
    return read(*(int *)ctx, buf, len);
}

void csn_remote_install_ripgrep(csn_remote *r)
{
    const csn_remote_script check = {.text = "chmod 755 " RG_PATH " && " RG_PATH
                                             " --version >&2 || { rm -f " RG_PATH "; exit 1; }",
                                     .deadline_ns = csn_deadline_in(RG_MS)};
    csn_autofd int fd = r->rg_path ? -1 : open_program(r->arch);
    const csn_source source = {.read = read_file, .ctx = &fd};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    if (fd < 0 || r->provider->upload(r, RG_PATH, &source, NULL) < 0)
        return;
    if (csn_remote_run_script(r, &check, &out, &code, NULL) == CSN_OK && code == 0)
        r->rg_path = strdup(RG_PATH);
}
