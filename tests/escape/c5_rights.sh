#!/bin/bash
# C5: no capability, no_new_privs, seccomp on, not root of the host, no new user namespace.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

# ---- what the kernel says of a process inside ----
none=0000000000000000
for set in CapInh CapPrm CapEff CapBnd CapAmb; do
    # outside only the bounding set, and what root has, is not empty
    case $set-$ROOT in
    CapBnd-* | CapPrm-yes | CapEff-yes) attempt "$set" status-is-not $set $none ;;
    *) attempt "$set" status-is-not $set $none -- none it is empty outside too ;;
    esac
done
attempt "no_new_privs" status-is-not NoNewPrivs 1
attempt "seccomp" status-is-not Seccomp 2

# ---- as the host sees it ----
mark=csn-seen-$$-$RANDOM
"$CAISSON" run --workspace "$WS" -c "exec -a $mark sleep 1000" &
run=$!
seen() { pid=$(grep -lsaz "^$mark\$" /proc/[0-9]*/cmdline | head -n 1 | cut -d/ -f3) && [ -n "$pid" ]; }
# not seen by the name alone: the caller's own command line has it too, in a longer word
if eventually seen && seen; then
    mapfile -t uids < <(awk '/^[UG]id:/ { print $2 "\n" $3 "\n" $4 "\n" $5 }' "/proc/$pid/status")
    if [ "$ROOT" = yes ]; then
        is "no user or group of it is root" "$(printf '%s\n' "${uids[@]}" | awk '$1 < 65536')" ""
        is "nobody has that user" "$(getent passwd "${uids[0]}")" ""
    else
        is "its user is the caller's, its group too" "$(printf '%s\n' "${uids[@]}" | sort -u)" "$(id -u)"
    fi
    is "it has no other group" "$(awk '/^Groups:/ { $1 = ""; print }' "/proc/$pid/status" | tr -d ' ')" ""
    for ns in user mnt pid net ipc uts cgroup; do
        holds "its $ns namespace is its own" test "$(readlink "/proc/$pid/ns/$ns")" != "$(readlink "/proc/self/ns/$ns")"
    done
    # Two walls: seccomp refuses to make a user namespace, and there is none left to make. Only
    # the second follows somebody who enters from outside.
    judge "no user namespace is left to make" "$(outside nest-in "$pid")" "$(outside unshare user)"
else
    fail "a process to look at"
fi
kill $run
wait $run 2>/dev/null

# ---- attempts to be more ----
attempt "be user 0" be uid
attempt "be group 0" be gid
attempt "have group 0" be groups
attempt "open files as user 0" be fsuid
attempt "have CAP_SYS_ADMIN" be capable
attempt "unlock the securebits" be without-securebits
if [ "$ROOT" = yes ]; then
    mkdir -p "$T/suid" && cp "$PROBE" "$T/suid/probe" && chmod 4755 "$T/suid/probe" && chmod 755 "$T" "$T/suid"
    judge "a setuid program that was given" "$("${IN[@]}" --read "$T/suid" -- "$T/suid/probe" user-is-root 2>&1)" \
        "$(setpriv --reuid 65534 --regid 65534 --clear-groups "$T/suid/probe" user-is-root)"
fi

# ---- namespaces ----
for ns in user mnt pid net ipc uts cgroup time; do
    attempt "unshare $ns" unshare $ns
    if [ $ns = user ]; then
        attempt "setns $ns" setns self $ns -- none nobody enters its own again
    else
        attempt "setns $ns" setns self $ns
    fi
    [ $ns = time ] && continue # for clone this bit is part of the signal
    attempt "clone $ns" clone $ns
    attempt "clone3 $ns" clone3 $ns
done
attempt "all at once" unshare-all
like "clone3 says that it is not there, so that libc falls back" "$(inside clone3 user)" "held ENOSYS"
