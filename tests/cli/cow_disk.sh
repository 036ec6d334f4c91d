#!/bin/bash
# shellcheck disable=SC2016 # expanded inside
# What commands write to a copy-on-write workspace is limited by --disk.
if [ "${1:-caller}" = user ] && [ "$(id -u)" -eq 0 ]; then
    exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \
        env -i PATH=/usr/bin:/bin CAISSON="$CAISSON" "$0"
fi
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
unset CAISSON_BACKEND
chmod 711 "$T"
p=$T/p
mkdir -p "$p"
chmod a+rwx "$p"
cd "$p" || exit 1
head -c 4000000 /dev/zero >present
if ! reason=$(cs run -- true 2>&1); then
    skip "all of it" "no jail: ${reason%%$'\n'*}"
    exit 0
fi
limits() { python3 -c 'import json,sys; print([l["detail"] for l in json.load(sys.stdin)["layers"] if l["name"] == "limits"][0])'; }
# until it is killed
fill='i=0; while :; do head -c 1000000 /dev/zero >f$i; i=$((i + 1)); done'
files='i=0; while :; do : >f$i; i=$((i + 1)); done'

# ---- what is said ----
said=$(cs run --cow --json -- true 2>/dev/null | limits)
holds "there is no default" test "${said%changes of the workspace*}" = "$said"
like "--disk sets it" "$(cs run --cow --disk 8M --json -- true 2>/dev/null | limits)" \
    "*; changes of the workspace 8 MiB and 1536 files by sampling;*"
said=$(cs run --cow --disk none --json -- true 2>/dev/null | limits)
like "none lifts it" "$said" "*no limit on disk;*"
holds "and says so" test "${said%changes of the workspace*}" = "$said"
said=$(cs run --disk 8M --json -- true 2>/dev/null | limits)
holds "the host's own directory has none" test "${said%changes of the workspace*}" = "$said"

# ---- layers in memory ----
status "DIR:cow,tmpfs is refused" 125 cs run --create-workspace --workspace "$p:cow,tmpfs" -- true
like "with a reason and a way" "$err" "*$p:cow,tmpfs: 'tmpfs' is not supported*hint: $p:cow *XDG_STATE_HOME*tmpfs*"
holds "no directory of that name is made" test ! -e "$p:cow,tmpfs"
if [ -w /dev/shm ]; then
    shm=$(mktemp -d /dev/shm/csn-cli.XXXXXX)
    json "a state directory in memory has the layers" "$(XDG_STATE_HOME=$shm cs run --cow --json -c 'echo x >new' 2>/dev/null)" \
        'v["exit_code"] == 0 and "workspace" in [l["name"] for l in v["layers"]]'
    is "they are gone after it" "$(ls -A "$shm/caisson/layers")" ""
    rm -rf "$shm"
fi

# ---- what ends ----
full() # NAME SCRIPT [OPTIONS]
{
    local name=$1 script=$2
    shift 2
    status "$name" 137 cs run --cow --disk 8M --json "$@" -c "$script"
    json "is the limit's" "$out" 'v["killed_by"] == "disk" and v["denials"][0]["source"] == "config.disk_max" and v["denials"][0]["hint"] == "--disk SIZE"'
}
full "too much" "$fill"
like "its message has the limit" "$out" '*"rule":"disk limit 8 MiB reached"*'
full "too many files" "$files"
like "its message says what" "$out" '*"rule":"disk (number of files) limit 8 MiB reached"*'
full "in a directory without permissions" 'mkdir d; i=0; while :; do chmod 700 d; head -c 1000000 /dev/zero >d/$i; chmod 0 d; i=$((i + 1)); sleep 0.01; done'
full "by a process that its command has left" "($fill) >/dev/null 2>&1 & wait"
status "without a limit" 0 cs run --cow --disk none -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 1000000 /dev/zero >f$i; done; sleep 0.5'
status "what was there does not count" 0 cs run --cow --disk 8M -c 'for i in 1 2 3 4 5 6; do head -c 1000000 /dev/zero >f$i; done; rm present; sleep 0.5'
status "nor what was removed" 0 cs run --cow --disk 8M -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 1000000 /dev/zero >f; sleep 0.02; rm f; done; sleep 0.5'

# ---- after that ----
id=$(cs create --cow --disk 8M)
cs exec "$id" -d -- sh -c 'while :; do sleep 0.1; done' >/dev/null
status "a sandbox is filled" 137 cs exec "$id" -c "$fill"
is "another command of it goes on" "$(cs ps "$id" | grep -c running)" 1
status "one that reads may run" 0 cs exec "$id" -c 'cat f0 >/dev/null; sleep 0.5'
status "one that writes not" 137 cs exec "$id" -c "$fill"
like "and it is told" "$err" "*ended by a limit or rule: disk*--disk SIZE*"
status "one that removes files may" 0 cs exec "$id" -c 'rm f*; sleep 0.5'
status "then there is room" 0 cs exec "$id" -c 'head -c 4000000 /dev/zero >f; sleep 0.5'
cs snapshot "$id" one >/dev/null
status "snapshots count" 137 cs exec "$id" -c 'rm f; sleep 0.2; head -c 6000000 /dev/zero >g; sleep 600'
cs destroy "$id"

# ---- a copy instead of an overlay ----
# Layers cannot be on an overlay, so the workspace is copied.
in_copy()
{
    unshare -Um --map-current-user --keep-caps sh -c '
        mkdir "$1/l" "$1/u" "$1/w" "$1/s" && mount -t overlay -o "userxattr,lowerdir=$1/l,upperdir=$1/u,workdir=$1/w" none "$1/s" || exit 99
        export XDG_STATE_HOME=$1/s; shift; exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"' sh "$@"
}
mkdir "$T/o"
if [ "$(id -u)" -ne 0 ] && ! in_copy "$T/o" true 2>/dev/null; then
    skip "a copy" "an overlay cannot be mounted in a user namespace"
elif [ "$(id -u)" -ne 0 ]; then
    rm -rf "$T/o"/?
    status "a copy is filled" 137 in_copy "$T/o" "$CAISSON" run --cow --disk 8M --json -c "$fill"
    json "and limited" "$out" 'v["killed_by"] == "disk" and "by a copy" in str(v["layers"])'
    rm -rf "$T/o"/?
    status "what was copied does not count" 0 in_copy "$T/o" "$CAISSON" run --cow --disk 8M \
        -c 'for i in 1 2 3 4 5 6; do head -c 1000000 /dev/zero >f$i; done; sleep 0.5'
fi
