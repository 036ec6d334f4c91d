/* explain_hint.c: choose the grant to offer for a missing path, and refuse dangerous ones.
 *
 * The command chose the path, and people paste hints without reading them. So a hint is narrow
 * (the directory of a file, the tree of a tool, never a home or a top-level directory), and a
 * grant that would expose keys, a service of the host or the host's own programs is not
 * offered. The path as requested and its target are both checked: a link with a harmless name
 * does not bypass the check. */
#include <string.h>

#include "base/path.h"
#include "base/strv.h"
#include "policy/etc_places.h"
#include "policy/explain_internal.h"
#include "policy/key_places.h"

#define NO_GRANT "no grant is offered: "

static const char why_secret[] = NO_GRANT "it may hold keys or passwords";
static const char why_service[] = NO_GRANT "a service of the host answers there";
static const char why_machine[] = NO_GRANT "it belongs to the host's kernel and devices";
static const char why_system[] = NO_GRANT "the host's own programs and settings live there";
static const char why_executed[] = NO_GRANT "what is written there, the host would run";
static const char why_wide[] = NO_GRANT "it holds too much; grant something below it";
static const char why_metadata[] = NO_GRANT "it gives out the credentials of this machine";

/* Whole components, anywhere in a path; those of policy/key_places.h as well. */
static const char *const secret_parts[] = {
    ".docker",
    ".yarnrc",
    NULL,
};
static const char *const service_parts[] = {
    "docker.sock",
    "podman.sock",
    "containerd.sock",
    "crio.sock",
    "buildkitd.sock",
    "S.gpg-agent",
    "S.gpg-agent.ssh",
    "S.gpg-agent.extra",
    "system_bus_socket",
    ".X11-unix",
    NULL,
};
/* Files that the host executes or takes commands from, in any directory. */
static const char *const executed_parts[] = {
    ".bashrc",         ".bash_profile", ".bash_login",  ".bash_logout",
    ".profile",        ".zshrc",        ".zshenv",      ".zprofile",
    ".zlogin",         ".xprofile",     ".xsession",    ".gitconfig",
    ".git/hooks",      ".config/git",   ".config/fish", ".config/autostart",
    ".config/systemd", ".vimrc",        ".emacs",       NULL,
};
static const char *const machine_dirs[] = {"/proc", "/sys", "/dev", "/boot", NULL};
static const char *const system_dirs[] = {
    "/etc",   "/usr",    "/bin", "/sbin", "/lib", "/lib32",
    "/lib64", "/libx32", "/opt", "/run",  "/var", NULL,
};
/* Never offered themselves; what they contain may be. */
static const char *const wide_dirs[] = {
    "/",    "/home", "/root", "/tmp", "/var",   "/var/tmp", "/var/lib",
    "/run", "/etc",  "/usr",  "/mnt", "/media", "/srv",     NULL,
};
static const char *const wide_in_home[] = {
    ".config", ".local",    ".local/share", ".local/state", ".cache",
    "Desktop", "Documents", "Downloads",    NULL,
};

static bool same_path(const char *a, const char *b)
{
    const char *rest = csn_path_below(a, b);
    return rest && !*rest;
}

/* Does the path contain the components `part` (one or more) in sequence? */
static bool has_part(const char *path, const char *part)
{
    size_t n = strlen(part);

    for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/'))
        if (strncmp(at + 1, part, n) == 0 && (!at[1 + n] || at[1 + n] == '/'))
            return true;
    return false;
}

static bool has_any_part(const char *path, const char *const *parts)
{
    for (; *parts; parts++)
        if (has_part(path, *parts))
            return true;
    return false;
}

static bool has_key_place(const char *path)
{
    for (const csn_key_place *k = csn_key_places; k->path; k++)
        if (has_part(path, k->path))
            return true;
    return false;
}

static bool is_below_any(const char *path, const char *const *dirs)
{
    for (; *dirs; dirs++)
        if (csn_path_below(path, *dirs))
            return true;
    return false;
}

/* id_rsa, id_ed25519_work: private keys keep such names when copied. */
static bool is_key_file(const char *path)
{
    static const char *const kinds[] = {"rsa", "dsa", "ecdsa", "ed25519", NULL};
    const char *name = csn_path_base(path);

    if (!csn_str_starts(name, "id_"))
        return false;
    for (const char *const *k = kinds; *k; k++)
        if (csn_str_starts(name + 3, *k))
            return true;
    return false;
}

/* ssh-agent makes directories with random names: ssh-XXXX/agent.123. */
static bool is_agent(const char *path)
{
    const char *dir = strstr(path, "/ssh-");
    return dir && strstr(dir, "/agent.");
}

static bool is_service(const char *path)
{
    static const char *const dirs[] = {"/run/user",   "/run/dbus",   "/run/systemd",
                                       "/run/docker", "/run/podman", "/run/containerd",
                                       NULL};

    if (csn_str_starts(path, "/var/run/"))
        path += strlen("/var");
    return is_agent(path) || is_below_any(path, dirs) || has_any_part(path, service_parts);
}

/* Does the host start programs from there or from below? */
static bool is_on_path(const char *dir, const char *host_path)
{
    char entry[4096];

    for (const char *at = host_path; at && *at;) {
        size_t n = strcspn(at, ":");
        if (n > 0 && n < sizeof(entry) && *at == '/') {
            memcpy(entry, at, n);
            entry[n] = '\0';
            if (csn_path_below(entry, dir) || csn_path_below(dir, entry))
                return true;
        }
        at += n + (at[n] == ':');
    }
    return false;
}

static const char *write_refusal(const csn_explain_in *in, const char *path)
{
    if (is_below_any(path, system_dirs) && !csn_path_below(path, "/var/tmp"))
        return why_system;
    if (has_any_part(path, executed_parts) || is_on_path(path, in->host_path))
        return why_executed;
    return NULL;
}

static const char *refusal(const csn_explain_in *in, const char *path, bool write)
{
    if (is_below_any(path, machine_dirs))
        return why_machine;
    if (is_service(path))
        return why_service;
    if (csn_etc_is_secret(path) || has_any_part(path, secret_parts) || has_key_place(path) ||
        is_key_file(path))
        return why_secret;
    return write ? write_refusal(in, path) : NULL;
}

/* A home directory, a parent of one, or a shared directory. */
static bool is_wide(const csn_explain_in *in, const char *dir)
{
    const char *user = csn_path_below(dir, "/home");

    for (const char *const *w = wide_dirs; *w; w++)
        if (same_path(dir, *w))
            return true;
    if (user && !strchr(user, '/'))
        return true;
    if (!in->host_home)
        return false;
    if (csn_path_below(in->host_home, dir))
        return true;
    const char *in_home = csn_path_below(dir, in->host_home);
    return in_home && csn_strv_has(wide_in_home, in_home);
}

static char *parent_of(csn_arena *a, const char *path)
{
    size_t len = (size_t)(csn_path_base(path) - path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    return csn_arena_memdup(a, path, len);
}

/* A tool needs the files installed with it: bin/node needs lib/node_modules. */
static bool is_tool_dir(const char *dir)
{
    static const char *const names[] = {"bin", "sbin", "shims", "libexec", NULL};
    return csn_strv_has(names, csn_path_base(dir));
}

/* A path of unknown type counts as a file if its name has an extension. */
static bool is_file_name(const char *path)
{
    const char *dot = strrchr(csn_path_base(path), '.');

    return dot && dot != csn_path_base(path);
}

/* The smallest useful grant; the path itself if its directory is wide. */
static const char *narrowest(csn_arena *a, const csn_explain_in *in, const csn_grant_target *p)
{
    bool whole = p->unknown ? !is_file_name(p->path) : p->dir;

    if (whole && !p->tool)
        return p->path;
    const char *dir = parent_of(a, p->path);
    if (!dir)
        return NULL;
    if (p->tool && is_tool_dir(dir)) {
        const char *tree = parent_of(a, dir);
        if (!tree || !is_wide(in, tree))
            return tree;
    }
    return is_wide(in, dir) ? p->path : dir;
}

const char *csn_explain_grant(csn_arena *a, const csn_explain_in *in, const csn_grant_target *p,
                              const char **ret_refusal)
{
    const char *why = refusal(in, p->asked, p->write);

    *ret_refusal = NULL;
    if (!why)
        why = refusal(in, p->path, p->write);
    if (!why && p->socket)
        why = why_service;
    const char *grant = why ? NULL : narrowest(a, in, p);
    if (!why && !grant)
        return NULL;
    /* The grant is wider than the path, so it is checked again. */
    if (!why)
        why = is_wide(in, grant) ? why_wide : refusal(in, grant, p->write);
    *ret_refusal = why;
    return why ? NULL : grant;
}

const char *csn_explain_host_refusal(const char *host)
{
    static const char *const metadata[] = {"169.254.",        "metadata.google.internal",
                                           "[fd00:ec2:",      "metadata.azure",
                                           "100.100.100.200", NULL};

    for (const char *const *m = metadata; *m; m++)
        if (strncasecmp(host, *m, strlen(*m)) == 0)
            return why_metadata;
    return NULL;
}
