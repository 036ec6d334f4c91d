#!/bin/bash
# C4: standard input is a pipe of the sandbox. What a command writes into its own standard input never
# reaches the caller, and the caller's input arrives complete, in order and with its end.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

id=$(new)
mkfifo "$T/fifo"
# Takes one line, opens its standard input again in each way that writes, and says what it took.
cat >"$WS/inject" <<'SH'
#!/bin/bash
read -r line
{ echo INJECTED >/proc/self/fd/0; } 2>/dev/null
{ echo INJECTED 1<>/proc/self/fd/0; } 2>/dev/null
{ echo INJECTED >/dev/stdin; } 2>/dev/null
{ echo INJECTED >&0; } 2>/dev/null
echo "took $line"
SH
chmod +x "$WS/inject"

# What the caller's next program reads. Its end of the pipe has no other writer by then.
next() { cat <&8 | tr '\n' ' '; }
# by_pipe COMMAND...: a pipe that the caller reads on afterwards
by_pipe()
{
    echo word | { exec 8<&0; "$@" >"$T/took" 2>&1 <&8; next; }
}
by_fifo()
{
    local left
    exec 8<>"$T/fifo" # holds it open
    echo word >&8
    "$@" >"$T/took" 2>&1 <"$T/fifo"
    exec 9<"$T/fifo" 8<&-
    left=$(cat <&9 | tr '\n' ' ')
    exec 9<&-
    echo "$left"
}
# by_socket COMMAND...: what the peer of a stream socket receives
by_socket()
{
    python3 - "$T/took" "$@" <<'PY'
import socket, subprocess, sys
ours, theirs = socket.socketpair()
ours.sendall(b"word\n")
ours.shutdown(socket.SHUT_WR)
with open(sys.argv[1], "wb") as took:
    subprocess.run(sys.argv[2:], stdin=theirs, stdout=took, stderr=took)
theirs.close()
got = b""
while part := ours.recv(4096):
    got += part
print(got.decode().replace("\n", " "), end="")
PY
}
exec_in() { cs exec "$id" "$@"; }
later()
{
    local pid
    pid=$(cs exec "$id" -d --stdin -- "$@") && cs logs "$id" "$pid" --follow
}
export -f cs exec_in later
export CAISSON id WS
for way in pipe fifo socket; do
    like "control: a $way of the caller" "$(by_$way "$WS/inject")" "*INJECTED*"
    is "a $way, run" "$(by_$way "$CAISSON" run --stdin --workspace "$WS" -- "$WS/inject")" ""
    is "its input arrives" "$(tail -n 1 "$T/took")" "took word"
    is "a $way, the program with every backend" \
        "$(by_$way "$CAISSON" run --backend jail --stdin --workspace "$WS" -- "$WS/inject")" ""
    is "its input arrives" "$(tail -n 1 "$T/took")" "took word"
    is "a $way, exec" "$(by_$way bash -c 'exec_in --stdin -- "$WS/inject"')" ""
    is "its input arrives" "$(tail -n 1 "$T/took")" "took word"
    [ $way = fifo ] && continue # never ends while the test holds it open
    is "a $way, in the background" "$(by_$way bash -c 'later "$WS/inject"')" ""
    is "its input arrives" "$(tail -n 1 "$T/took")" "took word"
done

# ---- what it is inside ----
kind() { "${IN[@]}" --stdin -- readlink /proc/self/fd/0; }
exec 8< <(sleep 1000) # a pipe without an end
sleeper=$!
mine=$(readlink /proc/self/fd/8)
like "a pipe" "$(kind <&8)" "pipe:*"
holds "of its own" [ "$(kind <&8)" != "$mine" ]
like "a file" "$(kind <"$PROBE")" "pipe:*"
like "a device" "$(kind </dev/zero)" "pipe:*"
is "programs can open it" "$(echo word | "${IN[@]}" --stdin -- cat /dev/stdin)" word

# ---- ends ----
"${IN[@]}" --stdin -- true <&8 && pass "a command ends before its input" || fail "a command ends before its input"
"${IN[@]}" --stdin -- sh -c 'exec <&-; exit 7' <&8
is "and when it closes its input" $? 7
cs run --stdin --workspace "$WS" --timeout 100ms -- cat <&8 2>/dev/null
is "a time limit holds while the input stands still" $? 124
cs run --stdin --workspace "$WS" --timeout 100ms -- sleep 1000 </dev/zero 2>/dev/null
is "and while the command does not read" $? 124
kill $sleeper
exec 8<&-
is "empty input" "$("${IN[@]}" --stdin -- wc -c </dev/null)" 0
is "a closed pipe" "$(: | "${IN[@]}" --stdin -- wc -c)" 0
is "more than a pipe holds" "$(head -c 5000000 /dev/zero | "${IN[@]}" --stdin -- wc -c)" 5000000
is "in order" "$(seq 200000 | "${IN[@]}" --stdin -- cksum)" "$(seq 200000 | cksum)"
is "from a file" "$("${IN[@]}" --stdin -- cksum <"$PROBE")" "$(cksum <"$PROBE")"
is "by a shell" "$(seq 3 | "${IN[@]}" --stdin -c 'cat; echo end' | tr '\n' ' ')" "1 2 3 end "
is "in the background, a file" "$(later cksum <"$PROBE")" "$(cksum <"$PROBE")"
yes | "${IN[@]}" --stdin -- head -n 1 >/dev/null
is "the writer is told, and the command succeeds" "${PIPESTATUS[*]}" "141 0"
# What a command does not read is not taken from the caller without bound.
is "input that is not read stays with the caller" "$(python3 - "${IN[@]:1}" <<'PY'
import os, subprocess, sys, time
r, w = os.pipe()
args = [os.environ["CAISSON"], *sys.argv[1:], "--stdin", "--", "sh", "-c", "echo up; sleep 2"]
p = subprocess.Popen(args, stdin=r, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
os.close(r)
p.stdout.readline()
os.set_blocking(w, False)
total = 0
while p.poll() is None:
    try:
        total += os.write(w, bytes(65536))
    except BlockingIOError:
        if total > 4 << 20:
            break
        time.sleep(0.01)
    except BrokenPipeError:
        break
p.kill()
print("bounded" if total <= 4 << 20 else total)
PY
)" bounded

# ---- what cannot be read is refused ----
status "a directory" 125 bash -c '"$CAISSON" run --stdin --workspace "$WS" -- cat <"$WS"'
like "with the reason" "$err" "*standard input: Is a directory*"
status "a descriptor that is only written" 125 bash -c '"$CAISSON" run --stdin --workspace "$WS" -- cat 0>"$WS/f"'
like "with the reason" "$err" "*standard input: Bad file descriptor*"
like "too much for the background" "$(cs exec "$id" -d --stdin -- cat 2>&1 </dev/zero)" "*over 67108864 bytes*hint: *"
