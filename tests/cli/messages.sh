#!/bin/bash
# Each message on stderr is one write of whole lines, so that two programs with the same stderr
# never mix their lines.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# writes COMMAND...: runs it with a socket as stderr, where each write is a record, and prints
# the records, one a line, in the form of Python.
writes()
{
    python3 - "$@" <<'EOF'
import socket, subprocess, sys

ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for end in ours, theirs:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
with theirs:
    p = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=theirs)
while record := ours.recv(1 << 20):
    print(repr(record.decode()))
p.wait()
EOF
}
# whole NAME COUNT ARGUMENTS...: both programs print COUNT records, each of whole lines
whole()
{
    local name=$1 count=$2 program got
    shift 2
    for program in "$CAISSON" "$CAISSON-full"; do
        [ -x "$program" ] || continue # a build without musl has one program
        got=$(writes "$program" "$@")
        is "$name: writes of ${program##*/}" "$(grep -c . <<<"$got")" "$count"
        is "$name: parts of lines of ${program##*/}" "$(grep -v "\\\\n['\"]\$" <<<"$got")" ""
    done
}

id=$(new --backend local)
long=$(printf '%03000d' 0)
whole "no command" 1
whole "unknown command" 1 frobnicate
whole "wrong usage and its hint" 1 run --tiemout 3 -- true
whole "wrong usage of a command that the small program passes on" 1 list --frob
whole "an error" 1 exec local-1-none -- true
whole "an error with a long path" 1 run --workspace "/none/$long" -- true
whole "an error with control bytes" 1 run --workspace $'/none/\e[31m\n\xff' -- true
whole "an error as JSON" 1 run --json --workspace /none -- true
whole "a file that does not exist" 1 read "$id" none
whole "a timeout" 1 run --timeout 100ms -- sleep 100
whole "two errors" 2 destroy '?a' '?b'
# --merge: what the command itself writes goes to stdout
whole "a denial with its hint" 1 run --backend jail --workspace "$T/ws" --merge -- cat /root/none
