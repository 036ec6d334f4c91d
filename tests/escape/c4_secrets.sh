#!/bin/bash
# C4: no secret of the caller reaches the inside by environment, descriptor, command line, keyring,
# ipc or terminal.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

# ---- environment and command lines ----
export CSN_TEST_TOKEN=tell-nobody AWS_SECRET_ACCESS_KEY=tell-nobody SSH_AUTH_SOCK=$T/agent LD_PRELOAD_NOT=x
export LC_TOKEN=tell-nobody LC_NAME=tell-nobody
for name in CSN_TEST_TOKEN AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK XDG_RUNTIME_DIR LC_TOKEN LC_NAME; do
    attempt "the variable $name" env $name
done
attempt "a variable of any process" word-in-procs tell-,nobody
unset CSN_TEST_TOKEN AWS_SECRET_ACCESS_KEY LC_TOKEN LC_NAME

# ---- settings of the administrator beside programs ----
for d in /usr/local/etc /usr/etc; do
    [ -d $d ] || { skip "$d looks empty" "there is none" && continue; }
    is "$d looks empty" "$(inside_sh "ls -A $d")" ""
    is "$d can be granted" "$(cs run --workspace "$WS" --read $d -- ls -A $d)" "$(ls -A $d)"
done
(exec -a tell-nobody sleep 1000) &
host=$!
eventually grep -qsa '^tell-nobody' /proc/$host/cmdline
attempt "a command line of the host" word-in-procs tell-,nobody
kill $host
wait $host 2>/dev/null
like "the command line of pid 1 is an id" "$(inside_sh 'tr "\0" " " </proc/1/cmdline')" "caisson-keeper jail-*"

# ---- descriptors ----
exec 7<"$PROBE" 9</ 200<"$T" 1000<"$HOME"
attempt "descriptors of the caller" fds
control=$(outside fds)
id=$(new)
judge "in a sandbox that stays" "$(cs exec "$id" -- "$WS/probe" fds)" "$control"
judge "in a session" "$(cs exec "$id" --session s -c "$WS/probe fds")" "$control"
judge "with a terminal" "$(cs exec "$id" -t -- "$WS/probe" fds </dev/null 2>&1 | tr -d '\r')" "$control"
cs exec "$id" -d -c "$WS/probe fds >$WS/answer-background" >/dev/null
eventually grep -q . "$WS/answer-background"
judge "in the background" "$(cat "$WS/answer-background")" "$control"
exec 7<&- 9<&- 200<&- 1000<&-
"${IN[@]}" -- "$WS/probe" stdio "$WS/answer" <"$PROBE" >"$T/so" 2>"$T/se"
"${IN[@]}" --stdin -- "$WS/probe" stdio "$WS/answer-stdin" <"$PROBE" >"$T/so" 2>"$T/se"
"$PROBE" stdio "$OUT/answer" <"$PROBE" >"$T/so" 2>"$T/se"
judge "files of the caller as standard descriptors" "$(cat "$WS/answer")" "$(cat "$OUT/answer")"
cs exec "$id" -d --stdin -- "$WS/probe" stdio "$WS/answer-later" <"$PROBE" >/dev/null
eventually grep -q . "$WS/answer-later"
judge "and with --stdin, in the background" "$(cat "$WS/answer-later")" "$(cat "$OUT/answer")"
judge "and with --stdin" "$(cat "$WS/answer-stdin")" "$(cat "$OUT/answer")"

# ---- keys ----
key=csn-test-$$
with_key() { (cd "$OUT" && "$PROBE" with-key $key "$@" 2>&1); }
control=$(with_key "$PROBE" key $key)
judge "a key of the caller's session" "$(with_key "$CAISSON" run --workspace "$WS" -- "$WS/probe" key $key)" "$control"
attempt "the list of keys" read /proc/keys

# ---- ipc ----
number=$((0x43000000 + $$)) mq=/csn-test-$$
shm=$(outside make-ipc $number $mq)
attempt "System V shared memory by key" shm $number
attempt "by number" shm-id "$shm"
attempt "System V semaphores" sem $number
attempt "System V messages" msg $number
attempt "a POSIX message queue" mq $mq
outside drop-ipc $number $mq
file=$(mktemp /dev/shm/csn-test.XXXXXX) && echo secret >"$file"
attempt "POSIX shared memory" read "$file"
rm -f "$file"

# ---- sockets ----
port=$((20000 + $$ % 12000)) # below those that the kernel gives away
"$PROBE" hold-sockets csn-test-$$ "$T/sock" $port >"$T/listening" &
host=$!
eventually grep -q listening "$T/listening" || fail "sockets to try" "$(cat "$T/listening")"
attempt "an abstract socket" abstract csn-test-$$
attempt "a named socket" named "$T/sock"
attempt "a port of loopback" port $port
kill $host
wait $host 2>/dev/null

# ---- terminals ----
# Who has it could go on reading what is typed when the command is over, and change how it behaves.
input() { "$PROBE" with-tty "$@" 2>&1 | tr -d '\r' | grep -a -m1 -o -E '(pipe|/dev/)'; }
is "control: the caller's terminal as standard input" "$(input readlink /proc/self/fd/0)" /dev/
is "it is not handed in" "$(input "$CAISSON" run --stdin --workspace "$WS" -- readlink /proc/self/fd/0)" pipe
id=$(cs create --workspace "$WS")
like "nor to a process in the background" \
    "$("$PROBE" with-tty "$CAISSON" exec "$id" -d --stdin -- sleep 1 2>&1)" "*our terminal*hint: -t *"
cs destroy "$id" >/dev/null
if command -v script >/dev/null; then
    typed=$(printf 'one\ntwo\n\004' | script -qec "$CAISSON run --stdin --workspace $WS -- sed s/^/got-/" /dev/null | tr -d '\r')
    like "what is typed is, until the end of it" "$typed" "*got-one*got-two*"
fi
tty() { "$PROBE" with-tty "$@" 2>&1 | tr -d '\r' | grep -a -m1 -E '^x*(ESCAPED|held)' | sed 's/^x*//'; }
for what in tty tiocsti tiocsti-high tiocsetd; do
    control=$(tty "$PROBE" $what)
    judge "the caller's terminal: $what" "$(tty "$CAISSON" run -T --workspace "$WS" -- "$WS/probe" $what)" "$control"
    [ $what = tty ] && continue
    judge "a terminal of its own: $what" "$(tty "$CAISSON" run -t --workspace "$WS" -- "$WS/probe" $what)" "$control"
done

# ---- a socket of the host that lies in the workspace: covered, whatever its name was ----
"$PROBE" hold-sockets csn-given-$$ "$WS/given.sock" $((port + 1)) >"$T/listening" &
host=$!
eventually test -S "$WS/given.sock"
judge "a socket of the host in the workspace" "$(inside named "$WS/given.sock")" "$(outside named "$WS/given.sock")"
kill $host
wait $host 2>/dev/null || true

# ---- ... and wherever it is now: the kernel's list has only the name that was given to bind ----
mkdir "$WS/rel" "$WS/old" "$WS/holds"
ln -s "$WS" "$T/way"
planted=()
plant() # DIR NAME: listens at NAME, from DIR
{
    (cd "$1" && exec "$PROBE" hold-sockets "csn-lost-$$-${#planted[@]}" "$2" $((port + 2 + ${#planted[@]}))) >"$T/listening" &
    planted+=($!)
    eventually grep -q listening "$T/listening" || fail "a socket to try" "$(cat "$T/listening")"
}
plant "$WS" "$WS/bound.sock" && mv "$WS/bound.sock" "$WS/moved.sock"
plant "$WS" "$WS/temp.sock" && ln "$WS/temp.sock" "$WS/linked.sock" && rm "$WS/temp.sock"
plant "$WS" "$WS/two.sock" && ln "$WS/two.sock" "$WS/rel/names.sock"
plant "$WS/rel" relative.sock
plant "$T" "$T/way/by-link.sock"
plant "$WS" "$WS/old/in.sock" && mv "$WS/old" "$WS/new"
plant "$WS" "$WS/holds/in.sock"
for name in moved linked two rel/names rel/relative by-link new/in holds/in; do
    judge "a socket of the host in the workspace: $name" "$(inside named "$WS/$name.sock")" "$(outside named "$WS/$name.sock")"
done
inside_sh 'mv holds away' >/dev/null
holds "a directory with one cannot be moved from inside" test -S "$WS/holds/in.sock"
kill "${planted[@]}"
wait "${planted[@]}" 2>/dev/null || true
