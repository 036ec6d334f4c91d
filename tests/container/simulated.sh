#!/bin/bash
# simulated.sh NAME: a situation of containers, made without an engine, with what root can do.
#
#   userns     unshare -Ur as root: one uid is mapped, and setgroups is denied
#   userns-user  the same as an ordinary user
#   overlay    a workspace on overlayfs, which refuses id-mapped mounts
#   no-admin   without CAP_SYS_ADMIN, so without id-mapped mounts
#   filter     a filter that refuses user namespaces, as the default one of container engines
#   bare       both, and without CAP_SETUID and CAP_SETGID
#   masked     a /proc with covers, so that no further one can be mounted
#   owner      no CAP_SYS_ADMIN, and a workspace of an ordinary user
#   owner-filter  the same without namespaces
# shellcheck disable=SC2016 # expanded inside
PROBE=${PROBE:?set PROBE to the program that tries}
script=$(cd "${0%/*}" && pwd)/situation.sh
skip_all()
{
    echo "1..0 # SKIP $1"
    exit 0
}

# cannot WHY: this host has not what the situation is made of
cannot()
{
    [ "${CSN_MUST_WORK:-0}" = 0 ] && skip_all "$1"
    printf '1..1\nnot ok 1 - %s\n' "$1"
    exit 1
}

[ "$(id -u)" -eq 0 ] || [ "$1" = userns-user ] || skip_all "needs root"
case $1 in
userns*) unshare -Ur true 2>/dev/null || cannot "no user namespaces here" ;;
overlay) grep -q overlay /proc/filesystems || cannot "no overlayfs here" ;;
filter | bare | masked | owner-filter)
    "$CAISSON" doctor 2>/dev/null | grep -q '^landlock *\(ok\|weaker\)' || cannot "no Landlock here" ;;
esac
caps() { setpriv --bounding-set "$1" --inh-caps "$1" -- "${@:2}"; }
case $1 in
userns) exec unshare -Ur bash "$script" OWN ;;
userns-user)
    run=(unshare -Ur bash "$script" OWN)
    if [ "$(id -u)" -eq 0 ]; then
        uid=$((50000 + $$ % 10000))
        setpriv --reuid $uid --regid $uid --clear-groups -- test -x "$CAISSON" || skip_all "a user cannot reach the programs"
        run=(setpriv --reuid "$uid" --regid "$uid" --clear-groups -- "${run[@]}")
    fi
    exec "${run[@]}"
    ;;
overlay)
    exec unshare -m --propagation private bash -c '
        d=$(mktemp -d /tmp/csn-overlay.XXXXXX) && mount -t tmpfs tmpfs "$d" && mkdir "$d"/{l,u,w,m} &&
            mount -t overlay overlay -o "lowerdir=$d/l,upperdir=$d/u,workdir=$d/w" "$d/m" || exit 1
        CSN_TEST_WS=$d/m bash "$1" OWN
        code=$?
        umount "$d/m" "$d" && rmdir "$d"
        exit $code' sh "$script"
    ;;
no-admin) caps -sys_admin bash "$script" OWN ;;
filter) exec "$PROBE" without userns bash "$script" LANDLOCK ;;
bare) caps -sys_admin,-setuid,-setgid "$PROBE" without userns bash "$script" LANDLOCK ;;
masked)
    exec unshare -m --propagation private bash -c '
        mount --bind -o ro /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys || exit 1
        exec bash "$1" LANDLOCK' sh "$script"
    ;;
owner | owner-filter)
    d=$(mktemp -d /tmp/csn-owner.XXXXXX) && chmod 711 "$d" && mkdir "$d/ws" && chown 54321:54321 "$d/ws" || exit 1
    export CSN_TEST_WS=$d/ws CSN_TEST_OWNER=54321
    if [ "$1" = owner ]; then
        caps -sys_admin bash "$script" OWN
    else
        "$PROBE" without userns bash "$script" LANDLOCK
    fi
    code=$?
    rm -rf "$d"
    exit $code
    ;;
*)
    echo "no situation $1" >&2
    exit 2
    ;;
esac
