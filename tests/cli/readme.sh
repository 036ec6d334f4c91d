#!/bin/bash
# readme.sh: the first screen of README.md prints what it says.
readme=$(realpath "$(dirname "$0")/../../README.md")
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export CAISSON_BACKEND=jail
bin=$(dirname "$CAISSON")

# block N: the Nth block of the README between lines that begin with ```.
block() { awk -v n="$1" '/^```/ { k++; next } k == 2 * n - 1' "$readme"; }

mkdir -p "$T/home/data" "$T/home/project" && cd "$T/home/project" || exit 1
echo 1,2 >"$T/home/data/input.csv"
ln -s "$bin" build
here() { sed "s|/home/me|$T/home|g"; }
numbers() { sed -E 's/^ *[0-9]+ /N /'; } # process numbers depend on the shell

command=$(block 1 | grep '^build/caisson ')
like "the first command is there" "$command" "build/caisson run *"
is "and prints what the README shows" "$(HOME="$T/home" bash -c "$command" 2>&1 </dev/null | numbers)" "$(block 2 | here | numbers)"

# A block of commands after `$ `, each followed by what it prints.
want='' command=''
try()
{
    [ -z "$command" ] || is "$command" "$(HOME="$T/home" PATH="$bin:$PATH" bash -c "$command" 2>&1 </dev/null)" "$(printf %s "$want" | here)"
}
while IFS= read -r line; do
    case $line in
    '$ '*) try && command=${line#'$ '} want='' ;;
    *) want+=$line$'\n' ;;
    esac
done < <(block 3)
try
is "the denial has an option that works" "$(grep -c 'read ~/data' <<<"$command")" 1
finish
