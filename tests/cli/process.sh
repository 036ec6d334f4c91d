#!/bin/bash
# Background processes, terminals, waiting.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
id=$(new --backend local)

json "ps is empty at first" "$(cs ps "$id" --json)" 'v == []'
pid=$(cs exec "$id" -d -c 'echo out; echo err >&2; echo ready; until [ -e go ]; do sleep 0.1; done; echo late; exit 7')
status "wait for a line" 0 cs wait "$id" --log ready --timeout 60s
cs logs "$id" "$pid" >"$T/o" 2>"$T/e"
is "logs: stdout" "$(cat "$T/o")" "out
ready"
is "logs: stderr" "$(cat "$T/e")" err
json "ps --json" "$(cs ps "$id" --json)" 'len(v) == 1 and v[0]["pid"] == '"$pid"' and
    v[0]["state"] == "running" and v[0]["exit_code"] is None and v[0]["pty"] is False and
    set(v[0]) == {"pid", "command", "state", "exit_code", "signal", "total_bytes", "started_at", "pty"}'
like "ps for people" "$(cs ps "$id")" "*PID*$pid*running*"
(sleep 0.3 && touch "$T/ws/go") &
is "logs -f goes on to the end" "$(timeout 60 "$CAISSON" logs "$id" "$pid" -f 2>/dev/null | tail -n 1)" late
# its output ends a moment before it does
has_exited() { cs ps "$id" --json | grep -q '"exited"'; }
eventually has_exited
json "the exit code is kept" "$(cs ps "$id" --json)" 'v[0]["state"] == "exited" and v[0]["exit_code"] == 7
    and v[0]["total_bytes"] == {"stdout": 15, "stderr": 4}'
is "logs --json: one object a line" "$(cs logs "$id" "$pid" --json | python3 -c '
import json, sys
print(sorted((v["stream"], v["data"]) for v in map(json.loads, sys.stdin)))')" \
    "[('stderr', 'err\\n'), ('stdout', 'out\\nready\\nlate\\n')]"
status "logs -f --json ends" 0 timeout 60 "$CAISSON" logs "$id" "$pid" -f --json
status "logs of no process" 1 cs logs "$id" 999999
status "kill of no process" 1 cs kill "$id" 999999

pid=$(cs exec "$id" -d -c 'trap "exit 9" INT; echo up; sleep 100 & wait')
cs wait "$id" --log up --timeout 60s
status "kill with a signal" 0 cs kill "$id" "$pid" INT
is "reaches it" "$(cs logs "$id" "$pid" -f; cs ps "$id" --json | python3 -c '
import json, sys
print([p["exit_code"] for p in json.load(sys.stdin) if p["pid"] == '"$pid"'][0])')" "up
9"
pid=$(cs exec "$id" -d -- sleep 100)
status "kill" 0 cs kill "$id" "$pid"
holds "ends it" gone "$pid"
is_known() { cs ps "$id" --json | grep -q SIGTERM; } # it has ended a moment before its keeper knows
eventually is_known
json "the signal is kept" "$(cs ps "$id" --json)" \
    '[p["signal"] for p in v if p["pid"] == '"$pid"'] == ["SIGTERM"]'

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
status "wait gives up" 1 cs wait "$id" --port "$port" --timeout 200ms
pid=$(cs exec "$id" -d -- python3 -m http.server --bind 127.0.0.1 "$port")
status "wait for a port" 0 cs wait "$id" --port "$port" --timeout 60s
cs kill "$id" "$pid" KILL
status "wait for a line nobody writes" 1 cs wait "$id" --log nobody --timeout 200ms
json "as JSON" "$(cs wait "$id" --log nobody --timeout 200ms --json 2>/dev/null)" 'v["error"]["code"] == "timeout"'

# a reader that goes away ends logs -f
pid=$(cs exec "$id" -d -c 'while :; do echo tick; sleep 0.1; done')
timeout 60 bash -c '"$0" logs "$1" "$2" -f | head -n 2' "$CAISSON" "$id" "$pid" >"$T/o"
is "logs -f ends with its reader" "$(tr '\n' ' ' <"$T/o")" "tick tick "
cs kill "$id" "$pid"

# terminals, driven through a real pty: drive 'STEP|STEP' COMMAND... types each step, sends a signal,
# or (=TEXT) waits until that has been printed
drive()
{
    python3 - "$@" <<'X'
import os, pty, select, sys, termios, time, signal
script, argv = sys.argv[1], sys.argv[2:]
go, gate = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.read(go, 1)
    os.execv(argv[0], argv)
before = termios.tcgetattr(fd)
os.write(gate, b"x")  # only then it may change that
out, deadline, raw_seen = b"", time.time() + 60, False
steps = [s.encode().decode("unicode_escape").encode("latin1") for s in script.split("|") if s]
def take(t):
    global out
    while select.select([fd], [], [], t)[0]:
        try:
            b = os.read(fd, 65536)
        except OSError:
            return False
        if not b:
            return False
        out += b
    return True
def is_raw():
    return not (termios.tcgetattr(fd)[3] & termios.ICANON)
alive = take(0)
while steps and alive and not is_raw() and time.time() < deadline:
    alive = take(0.05)
for s in steps:
    if s.startswith(b"="):
        while alive and s[1:] not in out and time.time() < deadline:
            alive = take(0.05)
        continue
    if s == b"WINCH":
        import fcntl, struct
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 99, 0, 0))
        os.kill(pid, signal.SIGWINCH)
    elif s == b"TERM":
        os.kill(pid, signal.SIGTERM)
    else:
        raw_seen |= is_raw()
        os.write(fd, s)
    alive = take(0.1)
while alive and time.time() < deadline:
    done, st = os.waitpid(pid, os.WNOHANG)
    if done:
        break
    alive = take(0.1)
else:
    done, st = os.waitpid(pid, 0)
take(0)
restored = termios.tcgetattr(fd)[:4] == before[:4]
sys.stdout.write(out.decode("utf-8", "replace").replace("\r\n", "\n"))
print("\n[status=%d raw=%d restored=%d]" % (os.waitstatus_to_exitcode(st), raw_seen, restored))
X
}
got=$(drive 'test -t 0 && test -t 1 && echo is-a-"tty"\n|=is-a-tty|WINCH|until stty size \x7c grep -q "41.99"; do sleep 0.1; done; stty size\n|=41 99|exit 3\n' \
    "$CAISSON" shell "$id")
like "shell: a terminal" "$got" "*is-a-tty*"
like "shell: its size follows ours" "$got" "*41 99*"
like "shell: its exit status, raw mode, and the terminal restored" "$got" "*status=3 raw=1 restored=1*"
got=$(drive '=up|\x03|' "$CAISSON" exec "$id" -t -c 'trap "echo caught; exit 5" INT; echo up; while :; do sleep 0.1; done')
like "exec -t: ^C goes inside" "$got" "*caught*status=5*"
got=$(drive '=up|TERM|' "$CAISSON" exec "$id" -t -c 'echo $$ >ttypid; echo up; sleep 100')
like "exec -t: a signal to us ends it and restores the terminal" "$got" "*status=143*restored=1*"
holds "and its command" gone "$(cat "$T/ws/ttypid")"
got=$(drive '' "$CAISSON" run --workspace "$T/ws" -t -- sh -c 'echo hi; exit 4')
like "run -t" "$got" "*hi*status=4*"
is "-t without a terminal: stdin ends like ^D" "$(echo 'echo from-$((1+1)); exit 6' | timeout 60 "$CAISSON" shell "$id" | grep -c 'from-2')" 1
status "-t with a timeout" 124 timeout -s KILL 60 "$CAISSON" exec "$id" -t --timeout 500ms -- sleep 600
rm -f "$T/ws/ttypid"
"$CAISSON" exec "$id" -t -c 'echo $$ >ttypid; sleep 100' </dev/null >/dev/null 2>&1 &
cli=$!
eventually test -s "$T/ws/ttypid"
kill -KILL $cli
wait $cli 2>/dev/null
holds "kill -9 leaves no terminal session" gone "$(cat "$T/ws/ttypid")"
