#!/bin/bash
# A jail without a network: names do not exist, and every refusal is reported, while the command runs
# and after it, whether the program complains or not.
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
export CAISSON_BACKEND=jail PATH=/usr/bin:/bin # not those of version managers
cd "$T/ws" || exit 1

if ! cs run -- true 2>"$T/why"; then
    if [ "${CSN_MUST_WORK:-0}" = 1 ]; then
        fail "a jail" "$(cat "$T/why")"
    else
        skip "denials of the network" "no jail on this host: $(head -n 1 "$T/why")"
    fi
    exit 0
fi

# told ARGS...: the denials of a run, "target rule hint" separated by |
told()
{
    cs run --json "$@" 2>/dev/null | python3 -c 'import json,sys
print(" ".join("|".join(str(d[k]) for k in ("op","target","hint")) for d in json.load(sys.stdin)["denials"]))'
}
live="': the sandbox's network does not allow it"
lookup='import socket,sys
for name in sys.argv[1:]:
    try: socket.getaddrinfo(name, 443)
    except socket.gaierror as e: print(e.errno == socket.EAI_NONAME)'

# names
is "a name does not exist" "$(cs run -- python3 -c "$lookup" a.test 2>/dev/null)" True
status "a program that says nothing" 2 cs run -- getent hosts quiet.test
is "is reported at once, and at the end with the option" "$err" "caisson: run: denied net 'quiet.test$live
caisson: run: denied net 'quiet.test'; to allow it: --allow quiet.test"
is "as data" "$(told -- getent hosts quiet.test)" "net|quiet.test|--allow quiet.test"
is "also of a program that succeeds" "$(told -- python3 -c "$lookup" b.test)" "net|b.test|--allow b.test"
status "then only while it runs" 0 cs run -- python3 -c "$lookup" b.test B.test b.test.
is "once for each name" "$err" "caisson: run: denied net 'b.test$live"
status "with --json" 0 cs run --json -- python3 -c "$lookup" b.test
is "no line is added" "$err" ""
is "a host of a package manager has its preset" "$(told -- getent hosts registry.npmjs.org)" \
    "net|registry.npmjs.org|--packages npm"
is "one of several too" "$(told -c 'getent hosts pypi.org; getent hosts x.crates.io')" \
    "net|pypi.org|--packages pip net|x.crates.io|--packages cargo"
is "names that are hosts inside resolve" \
    "$(cs run -- python3 -c 'import socket
print(socket.gethostbyname("localhost"), socket.gethostbyname(socket.gethostname()))' 2>&1)" "127.0.0.1 127.0.0.1"
is "a reverse lookup is not reported" "$(told -- getent hosts 192.0.2.1)" ""
# many, and hostile
many='import socket
for i in range(300):
    try: socket.getaddrinfo("n%d.test" % i, 80)
    except OSError: pass'
is "their number is bounded" "$(told -- python3 -c "$many" | wc -w)" 32
ask='import os, socket, sys
junk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[1])): junk.sendto(os.urandom(i % 1400), ("127.0.0.1", 53))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
while True:
    s.sendto(bytes.fromhex("abcd01000001000000000000") + b"\x03A\x1b\xff\x04test\0\0\1\0\1", ("127.0.0.1", 53))
    try: r = s.recv(2000)
    except OSError: continue
    break
print(r[:2].hex(), r[3] & 15)'
is "a flood of bytes is survived, and NXDOMAIN answered" "$(cs run -- python3 -c "$ask" 3000 2>/dev/null)" "abcd 3"
is "bytes that no name has reach no terminal" "$(told -- python3 -c "$ask" 0)" "net|a??.test|None"

# addresses
connect='import socket,sys
for to in sys.argv[1:]:
    try: socket.create_connection((to, 80))
    except OSError: pass'
is "a connection to an address" "$(told -- python3 -c "$connect" 192.0.2.1)" "net|None|--allow HOST:PORT"
[ ! -e /proc/net/if_inet6 ] ||
    is "by IPv6" "$(told -- python3 -c "$connect" 2001:db8::1)" "net|None|--allow HOST:PORT"
status "in words" 3 cs run -- python3 -c "$connect; sys.exit(3)" 192.0.2.1
is "that no address is known" "$err" \
    "caisson: run: denied net: a connection to an address outside the sandbox; to allow it: --allow HOST:PORT"
is "a connection inside is none" "$(told -- python3 -c "$connect" 127.0.0.1)" ""
is "of two commands, the one that did it" "$(
    id=$(cs create) && cs exec --json "$id" -- python3 -c "$connect" 192.0.2.1 >"$T/a" &&
        cs exec --json "$id" -- python3 -c pass >"$T/b"
    cs destroy "$id"
    grep -c '"op":"net"' "$T/a" "$T/b" | sed 's/.*://' | tr '\n' ' ')" "1 0 "

# while it runs
rm -f "$T/err"
cs run -c 'getent hosts now.test; while [ ! -e go ]; do sleep 0.02; done; echo end' >"$T/out" 2>"$T/err" &
run=$!
while kill -0 "$run" 2>/dev/null && ! grep -qs "denied net 'now.test$live" "$T/err"; do sleep 0.02; done
holds "a refusal is printed before the command ends" grep -qx "caisson: run: denied net 'now.test$live" "$T/err"
touch go
wait "$run"
is "its output is not touched" "$? $(cat "$T/out")" "0 end"
rm -f go

# on a terminal: while it runs, and with the option at its end
shown=$(timeout -s KILL 300 python3 "$here/pty_drive.py" '' "$CAISSON" run -t -c 'getent hosts tty.test')
is "on a terminal, too" "$(grep -c "denied net 'tty.test'" <<<"$shown")" 2
like "with the option" "$shown" "*denied net 'tty.test'; to allow it: --allow tty.test*"

# sessions
id=$(cs create)
status "in a session" 0 cs exec "$id" --session s -c 'getent hosts s1.test; true'
is "too" "$err" "caisson: exec: denied net 's1.test$live"
status "and in its next command" 1 cs exec "$id" --session s -c 'getent hosts s1.test; false'
is "again" "$err" "caisson: exec: denied net 's1.test$live
caisson: exec: denied net 's1.test'; to allow it: --allow s1.test"
cs destroy "$id"

# ended early
status "after a timeout" 124 cs run --timeout 1s -c 'getent hosts late.test; sleep 60'
is "it is reported with the option" "$err" "caisson: run: denied net 'late.test$live
caisson: run: the command was ended: its timeout passed (--timeout)
caisson: run: denied net 'late.test'; to allow it: --allow late.test"
is "as data" "$(told --timeout 1s -c 'getent hosts late.test; sleep 60')" "net|late.test|--allow late.test"
rm -f "$T/err"
"$CAISSON" run -c 'getent hosts int.test; sleep 60' >"$T/out" 2>"$T/err" &
run=$!
while kill -0 "$run" 2>/dev/null && ! grep -qs "denied net" "$T/err"; do sleep 0.02; done
kill -TERM "$run"
wait "$run"
is "after a signal too" "$? $(tail -n 1 "$T/err")" \
    "143 caisson: run: denied net 'int.test'; to allow it: --allow int.test"

# with rules: the gateway reports
if [ "$(told --allow ok.test -- getent hosts evil.test)" != "net|evil.test|--allow evil.test" ]; then
    skip "refusals of a gateway" "this host has no transparent network"
    exit 0
fi
status "a host that no rule allows" 2 cs run --allow ok.test -- getent hosts evil.test
is "is reported at once too" "$err" "caisson: run: denied net 'evil.test$live
caisson: run: denied net 'evil.test'; to allow it: --allow evil.test"
is "an address of a quiet program" "$(told --allow ok.test -- python3 -c "$connect" 192.0.2.1)" \
    "net|192.0.2.1:80|--allow 192.0.2.1:80"
is "a host of a package manager" "$(told --allow ok.test -- getent hosts index.crates.io)" \
    "net|index.crates.io|--packages cargo"
rm -f "$T/err" go
cs run --allow ok.test -c 'getent hosts now.test; while [ ! -e go ]; do sleep 0.02; done; echo end' \
    >"$T/out" 2>"$T/err" &
run=$!
while kill -0 "$run" 2>/dev/null && ! grep -qs "denied net 'now.test$live" "$T/err"; do sleep 0.02; done
holds "before the command ends" grep -qx "caisson: run: denied net 'now.test$live" "$T/err"
touch go
wait "$run"
is "whose output is not touched" "$? $(cat "$T/out")" "0 end"
id=$(cs create --allow ok.test)
status "in a session of a detached sandbox" 1 cs exec "$id" --session s -c 'getent hosts s2.test; false'
is "as well" "$err" "caisson: exec: denied net 's2.test$live
caisson: exec: denied net 's2.test'; to allow it: --allow s2.test"
status "and for its next command" 1 cs exec "$id" -c 'getent hosts s2.test; false'
is "again" "$err" "caisson: exec: denied net 's2.test$live
caisson: exec: denied net 's2.test'; to allow it: --allow s2.test"
cs destroy "$id"
status "after a timeout" 124 cs run --allow ok.test --timeout 1s -c 'getent hosts late.test; sleep 60'
like "with the option" "$err" "*its timeout passed*denied net 'late.test'; to allow it: --allow late.test"
