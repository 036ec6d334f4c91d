#!/bin/bash
# docker.sh: situation.sh in real containers; run by doubles/engine.mjs, which starts an engine.
#
# The image is busybox. The host's /usr, the sources and the build are mounted read-only at their
# own places. Each container is one situation; its results are renumbered into one list.
# shellcheck disable=SC2086 # options are words
here=$(cd "${0%/*}" && pwd)
source=$(cd "$here/../.." && pwd) build=${CAISSON%/*}
volume=$(mktemp -d "$CSN_TEST_ENGINE/volume.XXXXXX") || exit 1
chmod 777 "$volume"
n=0 failed=0

note() { echo "# $*"; }
# renumber PREFIX: lines of one list become lines of the common one
renumber()
{
    local line
    while IFS= read -r line; do
        case $line in
        'ok '*) n=$((n + 1)) && echo "ok $n - $1: ${line#ok * - }" ;;
        'not ok '*) n=$((n + 1)) failed=1 && echo "not ok $n - $1: ${line#not ok * - }" ;;
        1..*) ;;
        *) note "$1: ${line#\# }" ;;
        esac
    done
}
# situation NAME LEVEL OPTIONS...: one container; with WS set, a workspace outside of its image
situation()
{
    local name=$1 level=$2
    shift 2
    timeout 300 docker run --rm --network none --init -v /usr:/usr:ro -v /usr/lib:/lib:ro -v /usr/lib64:/lib64:ro \
        -v "$source:$source:ro" -v "$build:$build:ro" -e PATH=/usr/bin:/usr/sbin:/bin -e CAISSON="$CAISSON" \
        ${WS:+-v "$WS:/volume" -e CSN_TEST_WS=/volume} "$@" "$CAISSON_DOCKER_IMAGE" \
        bash "$here/situation.sh" "$level" >"$volume.log" 2>&1
    local code=$?
    renumber "$name" <"$volume.log"
    [ $code -eq 0 ] || { n=$((n + 1)) failed=1 && echo "not ok $n - $name: exit status $code"; }
}

unconfined='--security-opt seccomp=unconfined --security-opt apparmor=unconfined'
paths='--security-opt systempaths=unconfined'
# As --privileged, but for capabilities that the engine itself may lack.
caps=
for cap in SYS_ADMIN SYS_PTRACE NET_ADMIN DAC_READ_SEARCH; do caps+=" --cap-add $cap"; done
for one in ${1:-default masked unconfined no-caps privileged volume user user-unconfined}; do
    case $one in
    default) situation $one LANDLOCK ;; # the engine's filter refuses user namespaces
    masked) situation $one LANDLOCK $unconfined ;;
    unconfined) situation $one OWN $unconfined $paths ;;
    no-caps) situation $one LANDLOCK $unconfined $paths --cap-drop ALL ;;
    privileged) situation $one OWN $unconfined $paths $caps ;;
    volume) WS=$volume situation $one FULL $unconfined $paths $caps ;;
    user) situation $one LANDLOCK --user 1000:1000 ;;
    user-unconfined) situation $one FULL $unconfined $paths --user 1000:1000 ;;
    esac
done
rm -rf "$volume" "$volume.log"
echo "1..$n"
exit $failed
