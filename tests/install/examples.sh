#!/bin/bash
# An installed tree that was moved: its programs and libraries find each other, and each example
# compiles against it with plain cc and pkg-config and prints what its head says. With the argument
# `user` a root caller installs, and a user without account does the rest.
# shellcheck disable=SC2016,SC2046 # expanded inside; options are words
if [ -z "${TREE-}" ]; then
    place=$(mktemp -d) && chmod 755 "$place" || exit 1
    trap 'rm -rf "$place"' EXIT
    "$SOURCE/tools/stage" "$BUILD" "$place/staged" && mv "$place/staged" "$place/tree" || exit 1
    drop=()
    if [ "${1-}" = user ]; then
        [ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP the caller is an ordinary user already" && exit 0; }
        drop=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
        "${drop[@]}" test -r "$0" || { echo "1..0 # SKIP a user cannot reach the examples" && exit 0; }
    fi
    "${drop[@]}" env TREE="$place/tree" CAISSON="$place/tree/bin/caisson" bash "$0"
    exit
fi
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/../cli/lib.sh"
export CAISSON_BACKEND=jail PKG_CONFIG_PATH=$TREE/lib/pkgconfig
unset LD_LIBRARY_PATH
cd "$T/ws" || exit 1
if ! err=$(cs run -- true 2>&1); then
    [ "${CSN_MUST_WORK:-0}" != 0 ] && fail "a jail starts" "$err" && exit 1
    skip "all of it" "no jail here: ${err%%$'\n'*}"
    exit 0
fi

# ---- programs ----
like "the tree's own keeper is found" "$(cs doctor)" "keeper*ok*$TREE/lib/caisson/caisson-keeper*"
status "and its gateway" 0 cs run --allow ok.test:443 -- true
echo content >file
id=$(cs create --workspace "$T/ws")
status "and its module" 0 cs export "$id" . "$T/out"
is "which works" "$(cat "$T/out/file")" content
cs destroy "$id"
ln -s "$TREE/bin/caisson" "$T/link"
is "through a link, too" "$("$T/link" run -- echo yes)" yes

# ---- examples ----
compile() { cc -std=c11 -Wall -Werror "$SOURCE/examples/$1.c" -o "$T/$1" $(pkg-config --cflags --libs "$2"); }
run() { (cd "$T/ws" && LD_LIBRARY_PATH=$TREE/lib "$T/$1" 2>&1 | sed "s,$T/ws,WS,; s,/tmp/[^ /]*/,DIR/,"); }
example() # NAME OUTPUT
{
    status "$1 compiles" 0 compile "$1" caisson
    is "$1 prints what it should" "$(run "$1")" "$2"
}
example hello 'exit 0: hello from WS'
example files 'notes/fruit.txt:2: pears 6
fruit.txt, 25 bytes
/etc/shadow: not_found'
example stream 'line 1
line 2
line 3
ended by: cancel'
example session '$ cd /tmp && answer=42
$ echo $answer in $PWD
42 in /tmp
$ echo ${answer-nothing}
nothing'
example network 'getent: exit 2
refused: example.org; to allow it: example.org'
example backend 'read back: hello'
example policy 'read secret/key: deny DIR/secret
read docs/manual: allowed
write docs/manual: deny write,delete DIR/docs
command: exit 1, 1 denial'
is "there is no further example" "$(find "$SOURCE/examples" -name '*.c' | wc -l)" 7

# ---- the static library ----
mkdir "$T/app"
status "a program links libcaisson.a" 0 cc "$SOURCE/examples/hello.c" -o "$T/app/hello" \
    $(pkg-config --static --cflags --libs libcaisson | sed 's/-lcaisson/-l:libcaisson.a/')
is "and needs no library of caisson's" "$(ldd "$T/app/hello" | grep caisson)" ""
cp "$TREE/lib/caisson/caisson-keeper" "$T/app/"
is "with one beside it it runs" "$("$T/app/hello" 2>&1)" "exit 0: hello from $T/ws"
