#!/bin/bash
# `caisson` and caisson-full are one program linked twice: a command line means the same in both,
# whichever of the two runs it in the end.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

full=${CAISSON}-full
if [ ! -x "$full" ]; then
    skip "both programs" "this build links one"
    exit 0
fi

# same NAME ARGUMENTS...: status, output and errors of both
same()
{
    local name=$1 a b
    shift
    a=$("$CAISSON" "$@" 2>&1 <"$T/in"; echo "status $?")
    b=$("$full" "$@" 2>&1 <"$T/in"; echo "status $?")
    is "$name" "$a" "$b"
}

: >"$T/in"
same "no command"
same "help" help
same "a command that does not exist" frobnicate
same "an empty command" ""
same "a command with a slip" craete
same "the help of a command" run --help
same "wrong usage" run --tiemout 3 -- true
same "wrong usage, as JSON" exec --json
same "a sandbox that is not there" exec nobody -- true
same "the same, for a file" read nobody x
same "an errno in words" run --workspace /proc/nothing -- true
same "a status" run -- sh -c 'exit 7'
same "a signal" run -- sh -c 'kill -TERM $$'
same "output and errors" run -c 'echo out; echo err >&2'
same "a policy that is not there" run --policy "$T/none.json" -- true

echo '{"commands":["true"]}' >"$T/in"
same "a policy from standard input" run --policy - -- ls
status "which is read once" 126 sh -c '"$1" run --policy - -- ls <"$2"' _ "$CAISSON" "$T/in"
tar -cf "$T/in" -C / etc/hostname
id=$(new)
same "an archive" write --tar "$id" d
echo words >"$T/in"
same "a file" write "$id" f
same "the file" read "$id" f
same "the list" list -q
same "standard input" run --stdin -- cat

# Backends in a module, by each of the ways to name one: refused alike, since none is set up.
unset E2B_API_KEY
same "a backend in a module" run --backend e2b -- true
CAISSON_BACKEND=e2b same "named by the environment" create
mkdir -p "$XDG_CONFIG_HOME/caisson"
echo '{"backend":"e2b"}' >"$XDG_CONFIG_HOME/caisson/config.json"
CAISSON_BACKEND='' same "named by a configuration" run -- true
echo '{"backend":' >"$XDG_CONFIG_HOME/caisson/config.json"
same "a configuration that is wrong" run -- true
rm "$XDG_CONFIG_HOME/caisson/config.json"

# Without HOME the user is looked up, as the C library of the system does it.
home() { env -u HOME "$@" run --workspace "$T/ws" -- sh -c 'pwd'; }
is "without HOME" "$(home "$CAISSON" 2>&1)" "$(home "$full" 2>&1)"

# The names of both are fixed, whoever calls and from wherever.
ln -s "$CAISSON" "$T/link"
is "by a link" "$("$T/link" version)" "$("$full" version)"
is "by another name" "$(exec -a other "$CAISSON" version)" "$("$full" version)"
is "with a closed standard input" "$("$CAISSON" version <&-)" "$("$full" version)"
mkdir "$T/alone"
cp "$CAISSON" "$T/alone/caisson"
if "$T/alone/caisson" version >/dev/null 2>&1; then
    skip "without the other program" "one is installed"
else
    status "without the other program" 1 "$T/alone/caisson" version
    like "it says what is missing" "$err" "caisson: cannot run caisson-full: No such file*"
fi
