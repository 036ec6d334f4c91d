#!/bin/bash
# walls.sh: every wall is noticed when it is missing, and none is the only one.
#
# For a build with -Dtest_walls=true. First: for each wall something that only it refuses; it must
# be refused with all walls up and must not be with that wall down (where a second wall refuses it
# too, that one is down in both). Then: with any single wall down, all attempts on the host's files
# and on running code as the caller (c1, c2 of this directory) are still held.
# shellcheck disable=SC2016 # the shell inside expands these
here=$(cd "${0%/*}" && pwd)
# shellcheck source=tests/escape/lib.sh
. "$here/lib.sh"

n=0
for w in NAMESPACES NESTED MOUNTS NET LIMITS KEYRING LANDLOCK USER CAPS SECCOMP; do
    eval "$w=$((1 << n))" # the bits of keeper/boot/confine.h
    n=$((n + 1))
done
off() { CSN_TEST_WALLS_OFF=$1 "${IN[@]}" -c "$2" 2>&1; }
case $(CSN_TEST_WALLS_OFF=$SECCOMP "${IN[@]}" -c 'grep Seccomp: /proc/self/status' 2>&1) in
*2*) skip_script "not a build with -Dtest_walls=true" ;;
esac

# noticed WALL ALSO COMMAND WANT: WANT is printed when it stands, and is not when it does not
noticed()
{
    local with without
    with=$(off "$2" "$3") without=$(off $(($2 | $1)) "$3")
    is "$5: it stands" "$with" "$4"
    if [ "$without" = "$4" ]; then fail "$5: its absence is noticed" "$without"; else pass "$5: its absence is noticed"; fi
}
noticed "$NAMESPACES" 0 'hostname' caisson "the names of the host"
noticed "$NESTED" "$SECCOMP" 'unshare -U true 2>/dev/null && echo made || echo refused' refused "no further user namespace"
noticed "$MOUNTS" 0 'test -d /sys && echo there || echo absent' absent "the root file system"
noticed "$NET" 0 "test $(readlink /proc/self/ns/net) = \$(readlink /proc/self/ns/net) && echo host || echo own" own "the network"
noticed "$USER" 0 '[ "$(id -u)" -eq 0 ] && echo owner || echo user' user "the second user namespace"
noticed "$LIMITS" 0 '[ "$(ulimit -u)" -le 5000 ] 2>/dev/null && echo bounded || echo free' bounded "limits"
noticed "$CAPS" 0 'grep CapBnd /proc/self/status | tr -d "\t "' CapBnd:0000000000000000 "capabilities"
noticed "$LANDLOCK" 0 'cat /run/.landlock 2>/dev/null || echo refused' refused "Landlock"
noticed "$SECCOMP" 0 'grep Seccomp: /proc/self/status | tr -d "\t "' Seccomp:2 "seccomp"
key=csn-walls-$$
with_key() { CSN_TEST_WALLS_OFF=$1 "$PROBE" with-key $key "$CAISSON" run --workspace "$WS" -- "$WS/probe" key $key 2>&1; }
like "the keyring: it stands" "$(with_key "$SECCOMP")" "held*"
like "the keyring: its absence is noticed" "$(with_key $((SECCOMP | KEYRING)))" "ESCAPED*"

# Not an escape: a handle of a file that nobody here can open. And the one known exception, named in
# SECURITY.md: seccomp alone keeps a command from making a set-id file in the workspace of root.
# Without the mounts Landlock holds what files contain; what they are called, and their mode, owner
# and times, it does not see. What is denied in the workspace is the mounts' to keep.
known='ESCAPED name-handle|ESCAPED suid mode'
MOUNTS_known='that it exists|(mode|owner|times|xattr)( of a|, by a)|denied|/proc/|/etc/(hostname|machine-id)'
for w in NESTED MOUNTS NET USER LIMITS KEYRING CAPS LANDLOCK SECCOMP; do
    if [ $w-$ROOT = MOUNTS-yes ]; then
        skip "without $w" "root's workspace is a mount: without it the user inside reaches nothing"
        continue
    fi
    for script in c1_read c2_write; do
        CSN_TEST_WALLS_OFF=${!w} bash "$here/$script.sh" >"$T/less" 2>&1
        tried=$(grep -c '^ok' "$T/less")
        out=$(grep -A1 '^not ok' "$T/less" | paste -s -d ' ' | sed 's/ -- /\n/g; s/ not ok/\nnot ok/g' | grep ESCAPED | grep -vE "$known")
        [ $w = MOUNTS ] && out=$(printf '%s' "$out" | grep -vE "$MOUNTS_known")
        if [ "$tried" -gt 50 ] && [ -z "$out" ]; then pass "without $w: $script is held"; else fail "without $w: $script is held" "$tried were; $out"; fi
    done
done
