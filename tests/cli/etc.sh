#!/bin/bash
# What a jail shows of /etc: settings of installed programs, and never a secret. The /etc of these
# checks is a copy in a mount namespace of its own.
# shellcheck source=tests/cli/lib.sh disable=SC2016
. "${0%/*}/lib.sh"
export CAISSON_BACKEND=jail
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null || ! cs run --workspace "$T/ws" -- true 2>/dev/null; then
    skip "all of it" "needs root, a mount namespace and a jail"
    exit 0
fi

E=$T/etc
cp -a /etc "$E" && chmod 755 "$T" "$E"
put() { mkdir -p "$(dirname "$E/$1")" && printf '%s\n' "$2" >"$E/$1"; } # FILE TEXT
put php/8.2/cli/php.ini cli && put php/8.2/mods-available/x.ini mods && put php/8.2/fpm/pool.conf hush-7
put chromium.d/flags flags && put ImageMagick-6/policy.xml policy && put java-99-openjdk/x.cfg java
put php.ini ini && put texmf/texmf.d/x tex
put R/closed hush-7 && put R/Renviron environ && chmod 600 "$E/R/closed"
put libreoffice/x hush-7 && chmod 750 "$E/libreoffice"
put ghostscript/x hush-7 && chown 1234 "$E/ghostscript"
put mono/x hush-7 && chmod 777 "$E/mono"
rm -rf "$E/fonts" && ln -s ssl/private "$E/fonts" && put ssl/private/key hush-7 && chmod -R a+rX "$E/ssl/private"
put letsencrypt/key hush-7 && put octave.conf hush-7 && chmod 600 "$E/octave.conf"
put unknown/x.conf hush-7 && put npmrc hush-7
mkdir "$T/nobody" && chmod 700 "$T/nobody" && chown 65534:65534 "$T/nobody"

# in_etc USER ARGUMENTS...: caisson run with that /etc
in_etc()
{
    local as=$1
    shift
    case $as in
    root) unshare -m bash -c 'mount --bind "$1" /etc && shift && exec "$@"' - "$E" "$CAISSON" run --workspace "$T/ws" "$@" ;;
    user) unshare -m bash -c 'mount --bind "$1" /etc && cd "$2" && shift 2 && exec setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"' \
        - "$E" "$T/nobody" env HOME="$T/nobody" XDG_STATE_HOME="$T/nobody/s" XDG_RUNTIME_DIR="$T/nobody/r" \
        XDG_CONFIG_HOME="$T/nobody/c" "$CAISSON" run --workspace "$T/nobody" "$@" ;;
    esac
}
for who in root user; do
    is "$who: settings of programs" "$(in_etc $who -c 'cd /etc; cat php/8.2/cli/php.ini php/8.2/mods-available/x.ini chromium.d/flags ImageMagick-6/policy.xml java-99-openjdk/x.cfg php.ini texmf/texmf.d/x R/Renviron' 2>&1 | tr '\n' ' ')" \
        "cli mods flags policy java ini tex environ "
    is "$who: no secret" "$(in_etc $who -c 'grep -rs hush-7 /etc; cat /etc/R/closed' 2>/dev/null)" ""
    is "$who: nothing of it can be written" "$(in_etc $who -c 'for f in php/8.2/cli/x php/x R/x; do touch /etc/$f || echo no; done' 2>/dev/null | tr '\n' ' ')" "no no no "
    status "$who: a file that is not in the table" 1 in_etc $who -- cat /etc/unknown/x.conf
    like "$who: the option that shows it" "$err" "*if the host has it: --read /etc/unknown"
    is "$who: it does" "$(in_etc $who --read /etc/unknown -- cat /etc/unknown/x.conf 2>&1)" hush-7
    status "$who: a pattern" 1 in_etc $who -c 'cat /etc/unknown/*.conf'
    like "$who: its directory" "$err" "*if the host has it: --read /etc/unknown"
    status "$who: what a shell reads" 1 in_etc $who -c '. /etc/unknown/x.conf'
    like "$who: is offered too" "$err" "*denied read*if the host has it: --read /etc/unknown"
    status "$who: a secret" 1 in_etc $who -c 'cat /etc/letsencrypt/key'
    like "$who: is not" "$err" "*no grant is offered: it may hold keys*"
    mkdir -p "$E/php/9.9" && put php/9.9/cli/php.ini new
    is "$who: what is installed later appears" "$(in_etc $who -c 'cat /etc/php/9.9/cli/php.ini' 2>&1)" new
    rm -rf "$E/php/9.9"
    put php.ini changed
    is "$who: and so does a change" "$(in_etc $who -- cat /etc/php.ini 2>&1)" changed
    put php.ini ini
done
