# shellcheck shell=bash
# lib.sh: tests on a host in an internet of their own (world.py). Sourced by the scripts of this
# directory; they get what tests/escape/lib.sh gives, and WORLD. With the argument `user` a root caller
# becomes a user without account before the world is made.

if [ -z "${WORLD-}" ]; then
    world=${0%/*}/world.py
    for tool in ip openssl curl python3; do
        command -v $tool >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || {
            echo "1..0 # SKIP needs $tool"
            exit 0
        }
    done
    if [ "${1-}" = user ]; then
        [ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP the caller is an ordinary user already"; exit 0; }
        uid=$((50000 + $$ % 10000)) # its own, also beside others of these
        setpriv --reuid $uid --regid $uid --clear-groups -- \
            env CSN_TEST_UID_IS_OURS=1 TMPDIR=/tmp "$world" -- bash "$0"
    else
        "$world" -- bash "$0"
    fi
    code=$?
    [ $code -eq 77 ] && echo "1..0 # SKIP no network namespaces for us here" && exit 0
    exit $code
fi

here=$(realpath "${0%/*}")
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/../escape/lib.sh"
cp "$WORLD/ca.pem" "$WS/ca.pem"

# get URL [curl words...]: inside, through whatever rules NET has; what it printed
NET=(--allow ok.test)
get() { "${IN[@]}" "${NET[@]}" -- curl -sS --max-time 60 --cacert "$WS/ca.pem" "$@" 2>"$T/.get.err"; }
# try WORD...: client.py inside; beside WORD...: the same on the host, for a control
cp "$here/client.py" "$WS/client.py"
try() { "${IN[@]}" "${NET[@]}" -- /usr/bin/python3 "$WS/client.py" "$@" 2>"$T/.get.err"; }
beside() { (cd "$WORLD" && exec /usr/bin/python3 "$WS/client.py" "$@"); }
served() { grep -c "$1" "$WORLD/served"; } # how often a server of the world saw it
comes() { [ "$(served "$1")" -gt "$2" ]; } # comes PATTERN BEFORE: more often than before
# has TOOL NAME: or NAME is skipped
has()
{
    PATH=/usr/bin:/bin:/usr/sbin command -v "$1" >/dev/null && return
    skip "$2" "there is no $1 here"
    return 1
}
asked() { grep -c " $1\$" "$WORLD/queries"; } # how often the world was asked for a name
# gateway_of ID: its process
no_gateway_of() { [ -z "$(gateway_of "$1")" ]; }
gateway_of() { grep -lsa "^caisson-gateway.$1" /proc/[0-9]*/cmdline 2>/dev/null | tr -dc '0-9\n' | sort -u; }
