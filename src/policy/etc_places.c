/* etc_places.c: the tables of settings and of secrets in /etc.
 *
 * A row is shown only if the host has it, it belongs to the owner of /etc, every user can read
 * it and only its owner can write it (backend/jail/etc_files.c). A file in a directory of the
 * table that not every user can read stays unreadable inside, unless commands are root on the
 * host (--allow-weaker in some containers): those see only directories without secrets. Left
 * out on purpose, although programs read them:
 *  - settings of the administrator that often hold tokens or passwords: gitconfig, npmrc,
 *    pip.conf, wgetrc, environment, profile.d, apt, maven/settings.xml;
 *  - servers (nginx, apache2, mysql, postgresql, php's fpm): their settings hold passwords;
 *  - what describes the host: hostname, machine-id, fstab, cron, systemd, network;
 *  - settings that only change a default (vim, emacs, gdb, gtk): each directory is a mount,
 *    which every start of a sandbox would pay for.
 * A program that misses one is told the option that shows it (explain_hint.c). */
#include "policy/etc_places.h"

#include <stddef.h>
#include <string.h>

#include "base/path.h"

/* PUBLIC_ROW: a directory without any secret, for commands that are root on the host as well */
#define PUBLIC_ROW(path, why)                                                                  \
    {                                                                                          \
        path, true, true, why                                                                  \
    }
#define DIR_ROW(path, why)                                                                     \
    {                                                                                          \
        path, true, false, why                                                                 \
    }
#define FILE_ROW(path, why)                                                                    \
    {                                                                                          \
        path, false, false, why                                                                \
    }

const csn_etc_place csn_etc_places[] = {
    /* certificates and cryptography */
    PUBLIC_ROW("ssl/certs", "TLS: certificates of authorities"),
    PUBLIC_ROW("pki/tls/certs", "TLS: certificates of authorities"),
    PUBLIC_ROW("pki/ca-trust/extracted", "TLS: certificates of authorities"),
    DIR_ROW("crypto-policies/back-ends", "TLS: what openssl.cnf includes"),
    DIR_ROW("gnutls", "GnuTLS"),
    FILE_ROW("ssl/openssl.cnf", "OpenSSL"),
    FILE_ROW("ssl/cert.pem", "TLS: certificates of authorities"),
    FILE_ROW("pki/tls/openssl.cnf", "OpenSSL"),
    /* the system */
    PUBLIC_ROW("alternatives", "links of /usr/bin lead to it"),
    DIR_ROW("ld.so.conf.d", "ldconfig, and tools that search libraries"),
    FILE_ROW("ld.so.cache", "the dynamic linker"),
    FILE_ROW("ld.so.conf", "ldconfig, and tools that search libraries"),
    FILE_ROW("timezone", "the time zone"),
    FILE_ROW("protocols", "getprotobyname(3)"),
    FILE_ROW("services", "getservbyname(3)"),
    FILE_ROW("locale.conf", "locales"),
    FILE_ROW("debian_version", "tools that ask for the distribution"),
    FILE_ROW("lsb-release", "tools that ask for the distribution"),
    FILE_ROW("redhat-release", "tools that ask for the distribution"),
    FILE_ROW("fedora-release", "tools that ask for the distribution"),
    FILE_ROW("centos-release", "tools that ask for the distribution"),
    FILE_ROW("system-release", "tools that ask for the distribution"),
    FILE_ROW("alpine-release", "tools that ask for the distribution"),
    FILE_ROW("arch-release", "tools that ask for the distribution"),
    FILE_ROW("mime.types", "the types of files"),
    /* shells and editors */
    FILE_ROW("bash.bashrc", "bash"),
    FILE_ROW("bashrc", "bash"),
    FILE_ROW("profile", "shells"),
    FILE_ROW("inputrc", "readline"),
    DIR_ROW("zsh", "zsh"),
    DIR_ROW("fish", "fish"),
    FILE_ROW("nanorc", "nano"),
    FILE_ROW("manpath.config", "man"),
    FILE_ROW("man_db.conf", "man"),
    PUBLIC_ROW("groff", "man and groff"),
    /* languages */
    PUBLIC_ROW("java", "Java"),
    PUBLIC_ROW("java-*", "Java: security and logging of the runtime"),
    PUBLIC_ROW("maven/logging", "Maven"),
    FILE_ROW("maven/m2.conf", "Maven"),
    DIR_ROW("php/*/cli", "PHP"),
    DIR_ROW("php/*/mods-available", "PHP: what conf.d leads to"),
    DIR_ROW("php.d", "PHP"),
    FILE_ROW("php.ini", "PHP"),
    DIR_ROW("perl", "Perl"),
    DIR_ROW("R", "R does not start without it"),
    DIR_ROW("mono", "Mono"),
    DIR_ROW("dotnet", ".NET: where it is installed"),
    PUBLIC_ROW("gnucobol", "GnuCOBOL"),
    FILE_ROW("fpc*.cfg", "Free Pascal"),
    DIR_ROW("fpc-*", "Free Pascal: what fpc.cfg leads to"),
    FILE_ROW("ocamlfind.conf", "OCaml"),
    FILE_ROW("octave.conf", "Octave"),
    FILE_ROW("sbclrc", "SBCL"),
    DIR_ROW("common-lisp", "Common Lisp"),
    DIR_ROW("clang", "clang"),
    /* documents, pictures, browsers */
    PUBLIC_ROW("fonts", "fontconfig"),
    DIR_ROW("ImageMagick-*", "ImageMagick: its policy"),
    DIR_ROW("texmf", "TeX"),
    DIR_ROW("libreoffice", "LibreOffice"),
    DIR_ROW("ghostscript", "Ghostscript"),
    FILE_ROW("papersize", "programs that print"),
    DIR_ROW("xml", "XML catalogs"),
    DIR_ROW("chromium.d", "the script that starts Chromium"),
    DIR_ROW("chromium", "Chromium: policies"),
    {NULL, false, false, NULL},
};

static const char *const secrets[] = {
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "security/opasswd",
    "sudoers",
    "sudoers.d",
    "doas.conf",
    "ssh",
    "ssl/private",
    "pki/tls/private",
    "pki/CA/private",
    "letsencrypt",
    "acme",
    "krb5.keytab",
    "krb5kdc",
    "sssd",
    "ldap.secret",
    "libnss-ldap.secret",
    "pam_ldap.secret",
    "NetworkManager/system-connections",
    "netplan",
    "wpa_supplicant",
    "iwd",
    "ppp/chap-secrets",
    "ppp/pap-secrets",
    "wireguard",
    "openvpn",
    "ipsec.secrets",
    "ipsec.d",
    "swanctl",
    "docker",
    "containers/auth.json",
    "containerd",
    "kubernetes",
    "rancher",
    "vault.d",
    "vault",
    "consul.d",
    "nomad.d",
    "puppetlabs",
    "salt/pki",
    "ansible/vault",
    "apt/auth.conf",
    "apt/auth.conf.d",
    "mysql",
    "postgresql",
    "redis",
    "mongod.conf",
    "rabbitmq",
    "grafana",
    "gitlab",
    "gitea",
    "msmtprc",
    "postfix/sasl_passwd",
    "exim4/passwd.client",
    "fetchmailrc",
    "davfs2/secrets",
    "cifs",
    "samba/private",
    "credstore",
    "credstore.encrypted",
    "luks",
    "crypttab",
    "luks-keys",
    "machine-id",
    "cloud",
    "boto.cfg",
    "s3cmd.cfg",
    "rclone",
    "restic",
    "borgmatic",
    "environment",
    "gitconfig",
    "npmrc",
    "pip.conf",
    NULL,
};

bool csn_etc_is_secret(const char *path)
{
    const char *rest = csn_path_below(path, "/etc");

    for (const char *const *s = secrets; rest && *s; s++) {
        size_t len = (*s)[0] == rest[0] ? strlen(*s) : 0; /* few begin with the same letter */
        if (len > 0 && strncmp(rest, *s, len) == 0 && (!rest[len] || rest[len] == '/'))
            return true;
    }
    return false;
}

bool csn_etc_component_matches(const char *path, const char *name, const char **ret_rest)
{
    size_t len = strcspn(path, "/"), given = strlen(name);
    const char *star = memchr(path, '*', len);
    size_t head = star ? (size_t)(star - path) : len, tail = star ? len - head - 1 : 0;

    if (given < head + tail || strncmp(path, name, head) != 0 || (!star && given != len) ||
        strncmp(path + len - tail, name + given - tail, tail) != 0)
        return false;
    *ret_rest = path + len + (path[len] == '/');
    return true;
}
