#!/bin/bash
# C13: isolation that was asked for and cannot be had is an error that names the layer. Nothing
# runs with less.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

# refused LAYER PATTERN: on a host without it
refused()
{
    rm -f "$WS/ran"
    status "without $1: refused" 125 "$PROBE" without "$1" "$CAISSON" run --workspace "$WS" -- touch "$WS/ran"
    like "without $1: the message names it" "$err" "$2"
    holds "without $1: nothing ran" test ! -e "$WS/ran"
    status "without $1: create is refused too" 1 "$PROBE" without "$1" "$CAISSON" create --workspace "$WS"
    is "without $1: nothing is listed" "$(cs list -q)" ""
}
status "control: behind a filter that lets all pass it runs" 0 "$PROBE" without nothing "$CAISSON" run --workspace "$WS" -- touch "$WS/ran"
holds "control: it did run" test -e "$WS/ran"

refused userns '*user namespaces*'
refused userns-limit '*user namespaces*'
refused second-userns '*user namespace*'
refused netns '*network namespace*'
refused landlock '*Landlock*'
refused landlock-off '*Landlock*'
refused landlock-last '*Landlock*'
refused seccomp '*seccomp*'
refused mounts '*mount*'
refused old-kernel '*mount*'
refused readonly '*mount*'
refused pivot '*mounts*'
refused umount '*mounts*'
refused limits '*limits*'
refused keyring '*keyring*'
refused nnp '*Landlock*' # which needs it first
refused capset '*capabilities*'
refused hostname '*namespaces*'
# Without birth times a mounted file cannot be identified.
mkdir -p "$WS/.vscode"
refused births '*protected files*'
rmdir "$WS/.vscode"
# There is another way to the same thing.
status "without openat2 it works" 0 "$PROBE" without openat2 "$CAISSON" run --workspace "$WS" -- touch "$WS/ran"

# ---- what this build cannot honour ----
status "--image is refused" 125 cs run --workspace "$WS" --image debian -- touch "$WS/no"
status "a second copy-on-write workspace is refused" 125 cs run --workspace "$WS" --workspace "$WS:/w/x:cow" -- touch "$WS/no"
status "a pattern that is none is refused" 2 cs run --workspace "$WS" --deny '*.pe[m' -- touch "$WS/no"
for path in / /proc /dev "$(dirname "$WS")" "$WS"; do
    status "--deny $path is refused" 125 cs run --workspace "$WS" --deny "$path" -- touch "$WS/no"
    like "and says what would go" "$err" "*--deny '$path': the sandbox needs *hint: deny single paths below it*"
done
for place in /proc /proc/sys /dev /dev/pts; do
    status "a workspace at $place is refused" 125 cs run --workspace "$WS:$place" -- touch no
    like "and says why" "$err" "*workspace $place: a jail has its own /*"
done
status "the host's /proc is refused under any name" 125 cs run --workspace "$WS" --workspace /proc:/host -- touch "$WS/no"
status "a device is refused" 125 cs run --workspace "$WS" --write /dev/full -- touch "$WS/no"
status "two directories at one place are refused" 125 cs run --workspace "$WS:/w" --workspace "$T:/w" -- touch no
like "and both are named" "$err" "*$WS and $T would both be /w*"
mkdir -p "$XDG_STATE_HOME/caisson/frames" "$XDG_RUNTIME_DIR/caisson"
for own in "$XDG_STATE_HOME/caisson" "$XDG_STATE_HOME/caisson/frames" "$XDG_RUNTIME_DIR/caisson"; do
    status "--write ${own#"$T/"}, where records are kept, is refused" 125 cs run --workspace "$WS" --write "$own" -- touch "$WS/no"
    like "and says so" "$err" "*write $own: part of caisson's own records*"
done
holds "nothing ran" test ! -e "$WS/no"

# ---- what is given both ways is read-only, for commands as for file calls ----
mkdir "$T/both"
for options in "--read $T/both --write $T/both" "--write $T/both --read $T/both --read $PROBE" \
    "--write $T/both --read $PROBE --read $T/both --read $PROBE"; do
    # shellcheck disable=SC2086
    id=$(cs create --workspace "$WS" $options)
    status "given both ways, a command cannot write" 1 cs exec "$id" -- touch "$T/both/x"
    status "given both ways, a file call cannot write" 1 cs write "$id" "$T/both/x"
    cs destroy "$id" >/dev/null
done
