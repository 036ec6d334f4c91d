#!/bin/bash
# terminal: run, exec and shell as a person uses them: time limits, standard input, terminals.
# shellcheck disable=SC2016 # the sandbox's shell expands these, not ours
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
cd "$T/ws" || exit 1

# ---- time limits: the first command runs beside all others and is waited for at the end
cs run -c 'sleep 31; exit 7' &
unlimited=$!
mkdir -p "$T/limited/caisson"
echo '{"timeout": "300ms"}' >"$T/limited/caisson/config.json"
limited() { env XDG_CONFIG_HOME="$T/limited" "$CAISSON" "$@"; }
status "a timeout of the configuration file holds for run" 124 limited run -- sleep 600
status "--timeout none overrides it" 0 limited run --timeout none -- sleep 0.5
echo '{"timeout": "300ms"}' >policy.json
status "so does one of a policy file" 124 cs run --policy policy.json -- sleep 600

# ---- standard input
is "10 MB through a pipe" "$(head -c 10000000 /dev/zero | cs run -- wc -c)" 10000000
is "a file" "$(cs run -- wc -c <"$CAISSON")" "$(wc -c <"$CAISSON")"
is "a device" "$(cs run -- head -c 3 </dev/zero | od -An -tx1)" " 00 00 00"
is "a socket" "$(python3 -c '
import socket, subprocess, sys
a, b = socket.socketpair()
a.sendall(b"said")
a.shutdown(socket.SHUT_WR)
print(subprocess.run(sys.argv[1:], stdin=b, capture_output=True).stdout.decode())' "$CAISSON" run -- cat)" said
is "a closed stdin is empty" "$(cs run -- wc -c <&-)" 0
is "so is one that cannot be read" "$(cs run -- wc -c 0>"$T/write-only")" 0
is "and a directory" "$(cs run -- wc -c <"$T")" 0
is "with -c" "$(echo data | cs run -c 'read -r a; echo "<$a>"')" "<data>"
is "with --json" "$(echo data | cs run --json -- cat | grep -o '"stdout":"[^"]*"')" '"stdout":"data\n"'
is "with -T" "$(echo data | cs run -T -- cat)" data
# A pipe whose writer says nothing and does not end: a fifo that this script holds open.
mkfifo "$T/silent" && exec 8<>"$T/silent"
status_of_silent() { "$CAISSON" "$@" <"$T/silent" >"$T/o" 2>&1; echo $?; }
is "a silent pipe does not keep a command that ends" "$(status_of_silent run -c 'exit 9')" 9
is "nor one that fails" "$(status_of_silent run -- no-such-program)" 127
is "nor one that reads until its timeout" "$(status_of_silent run --timeout 300ms -- cat)" 124
exec 8>&-
is "an endless one does not, either" "$(yes | cs run -- head -n 1)" y
is "exec has no input without --stdin" "$(id=$(new); echo data | cs exec "$id" -- wc -c; cs destroy "$id")" 0

# ---- usage
for pair in '-t -T' '--stdin --no-stdin' '-t --no-stdin' '-t --stdin' '-t --json' '-d -t'; do
    # shellcheck disable=SC2086
    status "$pair exclude each other" 2 cs run $pair -- true
done
status "-t and --session exclude each other" 2 cs run -t --session s -c true

# ---- terminals. What is tried for local holds for a jail, where this host has one.
drive() { timeout -s KILL 300 python3 "$here/pty_drive.py" "$@"; }
has() { # NAME OUTPUT TEXT...
    local name=$1 got=$2 want
    shift 2
    for want in "$@"; do
        case $got in *"$want"*) ;; *) fail "$name" "got:  $got" "want: $want" && return ;; esac
    done
    pass "$name"
}
try_terminals()
{
    local b=$1
    has "$b: run has a terminal" "$(drive '' "$CAISSON" run -c '[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size')" \
        '30 90' 'status=0' 'restored=1'
    has "$b: it has a name, and can be opened" "$(drive '' "$CAISSON" run -c 'echo by-name >"$(tty)"; echo tty >/dev/tty')" by-name 'tty'
    has "$b: -T: none" "$(drive '' "$CAISSON" run -T -c '[ -t 0 ] || [ -t 1 ] || echo none; wc -c')" none 0 'raw=0 restored=1'
    has "$b: --no-stdin: none" "$(drive '' "$CAISSON" run --no-stdin -c '[ -t 1 ] || wc -c')" 0 'raw=0'
    has "$b: --json: none" "$(drive '' "$CAISSON" run --json -c '[ -t 1 ] || echo none')" '"stdout":"none' 'raw=0'
    has "$b: stdout that is a pipe: none, and no keys are taken" "$(drive '*|=up|kept\n' bash -c '"$0" run -c "[ -t 0 ] || cat; echo up" | cat; read -r a; echo "<$a>"' "$CAISSON")" \
        up '<kept>' 'raw=0'
    has "$b: stderr that is a file stays one" "$(drive -2 "$T/e" '' "$CAISSON" run -c '[ -t 1 ] && [ ! -t 2 ] && echo yes; echo problem >&2')" yes
    is "$b: with what was written to it" "$(cat "$T/e")" problem
    has "$b: a prompt, and what is typed" "$(drive '=>>>|print(6*7)\n|=42|exit(5)\n' "$CAISSON" run -- python3 -q)" 42 '[status=5 raw=1 restored=1]'
    has "$b: a change of size" "$(drive '=up|WINCH|=41 99|' "$CAISSON" run -c 'trap "stty size; exit 4" WINCH; echo up; while :; do sleep 0.1; done')" 'status=4'
    has "$b: ^C ends the command" "$(drive '=up|\x03' "$CAISSON" run -c 'echo up; exec sleep 600')" '[status=130 raw=1 restored=1]'
    has "$b: or not" "$(drive '=up|\x03|=no|q\n' "$CAISSON" run -c 'trap "echo no" INT; echo up; until read -r a; do :; done; exit 3')" '[status=3'
    has "$b: ^D ends the input" "$(drive '=up|a\n\x04' "$CAISSON" run -c 'echo up; cat; exit 3')" '[status=3'
    has "$b: ^Z reaches the command" "$(drive '=up|\x1a|x\n|' "$CAISSON" run -c 'stty -isig; echo up; read -r a; echo "$a" | od -c')" '032   x'
    has "$b: SIGTSTP stops us in the mode of before, SIGCONT goes on" \
        "$(drive '=up|TSTP|STOPPED|COOKED|CONT|RAW|x\n' "$CAISSON" run -c 'echo up; read -r a; exit 3')" '[status=3 raw=1 restored=1]'
    for s in TERM:143 HUP:129 INT:130 QUIT:-3; do
        rm -f pid
        has "$b: SIG${s%:*} restores the mode" "$(drive "=up|${s%:*}" "$CAISSON" run -c 'echo $$ >pid; echo up; exec sleep 600')" "[status=${s#*:} raw=1 restored=1]"
        [ "$b" = jail ] || holds "$b: and ends the command" gone "$(cat pid)"
    done
    has "$b: a terminal that hangs up ends it" "$(drive '=up|CLOSE' "$CAISSON" run -c 'echo up; exec sleep 600')" 'status=129'
    has "$b: exit status" "$(drive '' "$CAISSON" run -c 'exit 42')" 'status=42'
    has "$b: of a signal" "$(drive '' "$CAISSON" run -c 'kill -KILL $$')" 'status=137'
    has "$b: of no program" "$(drive '' "$CAISSON" run -- no-such-program)" 'no-such-program: command not found' 'status=127'
    has "$b: of none that can be run" "$(drive '' "$CAISSON" run -- "$T")" 'status=126'
    has "$b: of a failure of caisson" "$(drive '' "$CAISSON" run --workspace "$T/missing" -- true)" 'status=125 raw=0'
    has "$b: of a timeout, with its message" "$(drive '=up|' "$CAISSON" run --timeout 500ms -c 'echo up; exec sleep 600')" 'its timeout passed' '[status=124 raw=1 restored=1]'
    has "$b: long output is complete" "$(drive '' bash -c '"$0" run -c "seq 200000; echo end" | tail -n 1; "$0" run -c "seq 200000" | cksum; seq 200000 | cksum' "$CAISSON")" \
        "$(seq 200000 | cksum)"
    is "$b: byte for byte, also to a slow terminal" "$(drive '' "$CAISSON" run -c 'seq 300000' | grep -c '^[0-9]*$')" 300001
    has "$b: a background job has none, and is not stopped" \
        "$(drive '*' bash -ic '"$0" run -c "[ -t 1 ] || echo none" & wait' "$CAISSON")" none
    has "$b: what is left running is no reason to wait" "$(drive '' "$CAISSON" run -c 'sleep 600 & echo up')" up 'status=0'
    has "$b: exec -t: likewise" "$(id=$(new); drive '=up|x\n' "$CAISSON" exec "$id" -t -c 'echo up; read -r a; exit 3'; cs destroy "$id")" '[status=3 raw=1 restored=1]'
}
try_terminals local
if (unset CAISSON_BACKEND; cs run -- true) >/dev/null 2>&1; then
    export CAISSON_BACKEND=jail
    try_terminals jail
    has "jail: a denial is explained after the run" "$(drive '' "$CAISSON" run -- cat "$T/config/x")" "denied read '$T/config/x'" 'status=1'
    has "jail: of a program with colours, too" "$(drive '' "$CAISSON" run -c "printf '\033[1mcat: %s: No such file or directory\033[0m\n' '$T/config/y'; exit 1")" "denied read '$T/config/y'"
    has "jail: a file that is quarantined is named" "$(drive '' "$CAISSON" run -c 'mkdir -p .git/hooks && git init -q . 2>/dev/null; echo x >.git/hooks/post-commit; chmod +x .git/hooks/post-commit')" "quarantined"
    has "jail: a memory limit" "$(drive '' "$CAISSON" run --memory 64M -- python3 -c 'a = "x" * (1 << 30)')" '--memory'
    export CAISSON_BACKEND=local
else
    skip "jail: terminals" "this host has no jail"
fi

# ---- shell without an id
got=$(drive 'echo in-$((40+2)) >made; cat made; [ -t 0 ] && exit 3\n' "$CAISSON" shell --env A=b)
has "shell without an id is one in a new sandbox" "$got" in-42 '[status=3 raw=1 restored=1]'
is "which works in the current directory" "$(cat made)" in-42
is "and leaves no sandbox" "$(cs list -q)" ""
has "its options are those of a sandbox" "$(A=mine drive 'exit $((${#A}+1))\n' "$CAISSON" shell --env A --workspace "$T")" 'status=5'
has "--timeout ends it" "$(drive 'sleep 600\n' "$CAISSON" shell --timeout 1s)" 'status=124'
status "no options for a sandbox that exists" 2 cs shell some-id --workspace "$T"
like "is explained" "$err" "*'some-id' exists*without ID*"
status "a sandbox that does not exist" 125 cs shell jail-none
status "an option that cannot be honoured" 125 cs shell --backend local --allow example.org

# ---- --workspace auto
repo=$T/repo
mkdir -p "$repo/src/deep" && git -C "$repo" init -q
cd "$repo/src/deep" || exit 1
try_auto()
{
    is "$1: auto is the repository, the current directory stays" "$(cs run --workspace auto -c 'pwd; git rev-parse --show-toplevel')" "$repo/src/deep
$repo"
    status "$1: git works in a subdirectory" 0 cs run --workspace auto -- git status
    is "$1: --workdir wins" "$(cs run --workspace auto --workdir "$repo/src" -- pwd)" "$repo/src"
}
try_auto local
mkdir -p "$T/auto/caisson" && echo '{"workspace": "auto"}' >"$T/auto/caisson/config.json"
is "from the configuration file" "$(XDG_CONFIG_HOME=$T/auto cs run -- git rev-parse --show-toplevel)" "$repo"
status "no path inside" 125 cs run --workspace auto:/x -- true
like "is explained" "$err" "*auto takes :rw or :ro*"
if (unset CAISSON_BACKEND; cs run -- true) >/dev/null 2>&1; then
    export CAISSON_BACKEND=jail
    try_auto jail
    is "jail: without auto the current directory is all there is" "$(cs run -c 'ls -a ../..' 2>/dev/null)" "$(cs run -c 'ls -a ../..' 2>/dev/null | grep -vx .git)"
    status "jail: git that fails there" 128 cs run -- git status
    like "is explained" "$err" "*'$repo'*--workspace auto*"
    status "jail: HOME is never taken" 1 env HOME="$repo" "$CAISSON" run --workspace auto -- test -e "$repo/.git"
    if [ "$(id -u)" = 0 ]; then
        chown 65534 "$repo/.git"
        status "jail: nor the repository of another user" 1 cs run --workspace auto -- test -e "$repo/.git"
    fi
    export CAISSON_BACKEND=local
else
    skip "jail: --workspace auto" "this host has no jail"
fi
cd "$T/ws" || exit 1

# ---- the caller's name for commits
if (unset CAISSON_BACKEND; cs run -- true) >/dev/null 2>&1; then
    export CAISSON_BACKEND=jail
    mkdir -p "$T/commits" && git -C "$T/commits" init -q && cd "$T/commits" || exit 1
    is "without a name there is no file" "$(cs run -c 'ls -A ~ | grep gitconfig')" ""
    mkdir -p "$XDG_CONFIG_HOME/git"
    printf '[user]\n\tname = Other\n\temail = xdg@example.test\n' >"$XDG_CONFIG_HOME/git/config"
    cat >"$HOME/.gitconfig" <<X
[include]
    path = $T/included
[User] name = "A \"quoted\" Name" ; comment
    signingkey = SECRET
[user "other"]
    email = wrong@example.test
[credential]
    helper = store
[alias]
    evil = !true
X
    printf '[user]\n\temail = included@example.test\n' >"$T/included"
    status "git commits" 0 cs run -- git commit -q --allow-empty -m one
    is "under the caller's name" "$(git log -1 --format='%an <%ae>, %cn')" 'A "quoted" Name <xdg@example.test>, A "quoted" Name'
    is "git config knows it" "$(cs run -- git config user.name)" 'A "quoted" Name'
    is "nothing else is taken" "$(cs run -c 'cat ~/.gitconfig; env' | grep -c 'SECRET\|store\|evil\|wrong\|include\|^GIT_')" 0
    git config user.name Local
    is "the repository's own name wins" "$(cs run -- git config user.name)" Local
    id=$(cs create)
    is "create: likewise" "$(cs exec "$id" -- git config user.email)" xdg@example.test
    cs destroy "$id"
    mkdir -p "$T/given"
    is "a home that is given is not touched" "$(cs run --home "$T/given" -c 'ls -A ~ | grep gitconfig')" ""
    head -c 70000 /dev/zero | tr '\0' '#' >>"$HOME/.gitconfig"
    rm "$XDG_CONFIG_HOME/git/config" && mkfifo "$XDG_CONFIG_HOME/git/config"
    is "a huge file and a fifo are not read" "$(cs run -c 'ls -A ~ | grep gitconfig')" ""
    export CAISSON_BACKEND=local
    cd "$T/ws" || exit 1
else
    skip "jail: the caller's name for commits" "this host has no jail"
fi

wait "$unlimited"
is "run has no time limit of its own" "$?" 7
