#!/bin/bash
# C3, targets: a protected file may be a link, a hard link or a value of the user's git config that
# leads to another file of the workspace. A command that changes that file must not change what the
# host runs. After each attempt the host's own git is used; a control with the backend local shows
# that it starts the planted program where nothing protects.
HERE=$(cd "${0%/*}" && pwd)
# shellcheck source=tests/escape/lib.sh
. "$HERE/lib.sh"
command -v git >/dev/null || { skip "all of it" "needs git" && exit 0; }
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git config --global init.defaultBranch main
cp "$HOME/.gitconfig" "$T/gitconfig"
RAN=$OUT/ran
# Shell functions for both sides: a program that leaves a trace on the host, and one that does not.
TOOLS="export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
evil() { mkdir -p \"\$(dirname \"\$1\")\"; printf '#!/bin/sh\ntouch $RAN\n' >\"\$1\"; chmod +x \"\$1\"; }
good() { mkdir -p \"\$(dirname \"\$1\")\"; printf '#!/bin/sh\nexit 0\n' >\"\$1\"; chmod +x \"\$1\"; }"
eval "$TOOLS"

denials() { python3 -c '
import json, sys
for d in json.load(sys.stdin).get("denials", []):
    if d.get("source") == "protected by default":
        print(d["target"][len(sys.argv[1]) + 1:], "|", d["rule"], "|", d.get("resolved") or "-", "|", d.get("hint") or "-")' "$WS"; }
do_inside() { out=$(cs run --json --workspace "$WS" --timeout 60s "${MORE[@]}" -c "$TOOLS
$1" 2>"$T/.err"); code=$?; told=$(printf '%s' "$out" | denials); }
told_of() { grep -q "^$1 | " <<<"$told"; }
MORE=()

fresh()
{
    cd "$WS" || return
    chmod -R u+rwX "$WS"
    find "$WS" -mindepth 1 -not -name probe -delete
    cp "$T/gitconfig" "$HOME/.gitconfig"
    git init -q . && echo 1 >file && git add file && git commit -qm one || return
    eval "$1" || fail "setup: $1"
    sleep 0.02 # the clock of file systems ticks: what follows is later
}
# What a user does afterwards, in the workspace and in a repository below it.
host_works()
{
    local d
    rm -f "$RAN"
    for d in "$WS" "$WS"/nested; do
        [ -d "$d" ] || continue
        (cd "$d" && date +%N >file && git status && git diff && git add file && git commit -qm more) >/dev/null 2>&1 </dev/null
    done
}
# attempt_git NAME SETUP ATTACK
attempt_git()
{
    fresh "$2"
    host_works
    holds "$1: the host starts nothing before" test ! -e "$RAN"
    do_inside "$3"
    host_works
    holds "$1: the host starts nothing after" test ! -e "$RAN"
    fresh "$2"
    id=$(cs create --backend local --workspace "$WS")
    cs exec "$id" -c "$TOOLS
$3" >/dev/null 2>&1
    cs destroy "$id" >/dev/null
    host_works
    [ -e "$RAN" ] || fail "control of $1"
}
HOOK='good scripts/pre-commit; ln -s ../../scripts/pre-commit .git/hooks/pre-commit'
attempt_git "a hook that is a link" "$HOOK" 'evil scripts/pre-commit'
attempt_git "its target replaced" "$HOOK" 'evil new; mv -f new scripts/pre-commit'
attempt_git "its target removed first" "$HOOK" 'rm -f scripts/pre-commit; evil scripts/pre-commit'
attempt_git "the directory of its target exchanged" "$HOOK" 'evil e/pre-commit; ./probe exchange $PWD/e $PWD/scripts || { rm -rf scripts; mv e scripts; }'
attempt_git "the directory of its target moved" "$HOOK" 'mv scripts old; evil scripts/pre-commit'
attempt_git "an absolute link" 'good scripts/x; ln -s "$WS/scripts/x" .git/hooks/pre-commit' 'evil scripts/x'
attempt_git "an absolute link by another name of the workspace" 'good scripts/x; ln -sfn "$WS" "$T/alias"; ln -s "$T/alias/scripts/x" .git/hooks/pre-commit' 'evil scripts/x'
attempt_git "a link that leaves the workspace and returns" 'good scripts/x; ln -s "../../../${WS##*/}/scripts/x" .git/hooks/pre-commit' 'evil scripts/x'
attempt_git "a chain of links, its end" 'good scripts/x; ln -s scripts/x a; ln -s ../../a .git/hooks/pre-commit' 'evil scripts/x'
attempt_git "a chain of links, one in between" 'good scripts/x; ln -s scripts/x a; ln -s ../../a .git/hooks/pre-commit' 'evil e; ln -sfn e a'
attempt_git "a chain of links, a file in between" 'good scripts/x; ln -s scripts/x a; ln -s ../../a .git/hooks/pre-commit' 'rm a; evil a'
attempt_git "a chain of links, a moved one" 'good scripts/x; mkdir d; ln -s ../scripts/x d/a; ln -s ../../d/a .git/hooks/pre-commit' 'mv d old; evil d/a'
attempt_git "a link in the middle of a path" 'good real/x; ln -s real way; ln -s ../../way/x .git/hooks/pre-commit' 'evil e/x; ln -sfn e way'
attempt_git "a directory in place of that link" 'good real/x; ln -s real way; ln -s ../../way/x .git/hooks/pre-commit' 'rm way; evil way/x'
attempt_git "hooks that is a link" 'good team/pre-commit; rm -rf .git/hooks; ln -s ../team .git/hooks' 'evil team/pre-commit'
attempt_git "a new hook there" 'good team/pre-push; rm -rf .git/hooks; ln -s ../team .git/hooks' 'evil team/pre-commit'
attempt_git "a link in the directory it leads to" 'good s/x; mkdir team; ln -s ../s/x team/pre-commit; rm -rf .git/hooks; ln -s ../team .git/hooks' 'evil s/x'
attempt_git "a link to nothing" 'mkdir tools; ln -s ../../tools/x .git/hooks/pre-commit' 'evil tools/x'
attempt_git "a link to nothing in nothing" 'ln -s ../../tools/deep/x .git/hooks/pre-commit' 'evil tools/deep/x'
attempt_git "a link to nothing, filled by a link" 'ln -s ../../tools/x .git/hooks/pre-commit' 'evil e/x; ln -s e tools'
attempt_git "a link to nothing, filled by a renamed directory" 'ln -s ../../tools/x .git/hooks/pre-commit' 'evil e/x; mv e tools'
attempt_git "hooks that is a link to nothing" 'rm -rf .git/hooks; ln -s ../team .git/hooks' 'evil team/pre-commit'
attempt_git "a hard link" 'good .git/hooks/pre-commit; ln .git/hooks/pre-commit other' 'evil other'
attempt_git "a hard link, removed after" 'good .git/hooks/pre-commit; ln .git/hooks/pre-commit other' 'evil other; rm other'
attempt_git "a hard link of a target" 'good s/x; ln -s ../../s/x .git/hooks/pre-commit; ln s/x other' 'evil other'
attempt_git "hard links, many" 'good .git/hooks/pre-commit; for i in 1 2 3 4 5 6 7 8 9; do good .git/hooks/h$i; ln .git/hooks/h$i o$i; done; ln .git/hooks/pre-commit other' 'evil other; rm o?'
attempt_git "a hard link of the config" 'ln .git/config other' 'evil e; git config -f other core.fsmonitor $PWD/e; cat other >keep; rm other; ln .git/config other 2>/dev/null; cat keep >other'
attempt_git "core.hooksPath" 'good .githooks/pre-commit; git config core.hooksPath .githooks' 'evil .githooks/pre-commit'
attempt_git "core.hooksPath, a new hook" 'good .githooks/pre-push; git config core.hooksPath .githooks' 'evil .githooks/pre-commit'
attempt_git "core.hooksPath, absolute" 'good h/pre-push; git config core.hooksPath "$WS/h"' 'evil h/pre-commit'
attempt_git "core.hooksPath that does not exist" 'git config core.hooksPath hooks.d' 'evil hooks.d/pre-commit'
attempt_git "core.hooksPath through a link" 'good h/pre-push; ln -s h way; git config core.hooksPath way' 'evil e/pre-commit; ln -sfn e way'
attempt_git "core.hooksPath of an included file" 'good h/pre-push; git config -f inc core.hooksPath h; git config include.path ../inc' 'evil h/pre-commit'
attempt_git "core.hooksPath of the worktree's config" 'good h/pre-push; git config extensions.worktreeConfig true; git config --worktree core.hooksPath h' 'evil h/pre-commit'
attempt_git "core.hooksPath of the user's config" 'good h/pre-push; git config --global core.hooksPath h' 'evil h/pre-commit'
attempt_git "core.hooksPath as husky sets it" 'mkdir -p .husky/_; good .husky/pre-push; printf "#!/bin/sh\nexec \"\$(dirname \"\$0\")/../pre-commit\"\n" >.husky/_/pre-commit; chmod +x .husky/_/pre-commit; good .husky/pre-commit; git config core.hooksPath .husky/_' 'evil .husky/pre-commit'
attempt_git "a program of the config" 'good tools/mon; git config core.fsmonitor tools/mon' 'evil tools/mon'
attempt_git "a script of the config" 'good tools/c; echo "file diff=x" >.gitattributes; git config diff.x.textconv "sh tools/c"' 'evil tools/c'
attempt_git "an included file" 'git config -f inc user.name b; git config include.path ../inc' 'evil e; git config -f inc core.fsmonitor $PWD/e'
attempt_git "an included file that is a link" 'git config -f real user.name b; ln -s real inc; git config include.path ../inc' 'evil e; git config -f e2 core.fsmonitor $PWD/e; ln -sfn e2 inc'
attempt_git "a .git file, hooks of its repository" 'mv .git .bare; echo "gitdir: .bare" >.git' 'evil .bare/hooks/pre-commit'
attempt_git "a .git file, config of its repository" 'mv .git .bare; echo "gitdir: .bare" >.git' 'evil e; git config -f .bare/config core.fsmonitor $PWD/e'
attempt_git "a .git link" 'mv .git store; ln -s store .git' 'evil store/hooks/pre-commit'

# ---- repositories below the root: nothing is read-only there, the scan finds what changed ----
NEST='git init -q nested && (cd nested && date >file && git add file && git commit -qm one)'
attempt_git "nested: a hook that is a link" "$NEST; good scripts/x; ln -s ../../../scripts/x nested/.git/hooks/pre-commit" 'evil scripts/x'
attempt_git "nested: a link to nothing" "$NEST; ln -s ../../../scripts/x nested/.git/hooks/pre-commit" 'evil scripts/x'
attempt_git "nested: a link in between" "$NEST; good s/x; ln -s s way; ln -s ../../../way/x nested/.git/hooks/pre-commit" 'evil e/x; ln -sfn e way'
attempt_git "nested: hooks that is a link" "$NEST; good team/pre-push; rm -rf nested/.git/hooks; ln -s ../../team nested/.git/hooks" 'evil team/pre-commit'
attempt_git "nested: a hard link" "$NEST; good nested/.git/hooks/pre-commit; ln nested/.git/hooks/pre-commit other" 'evil other; rm other'
attempt_git "nested: a hard link made inside" "$NEST; good nested/.git/hooks/pre-commit" 'ln nested/.git/hooks/pre-commit other; evil other'
attempt_git "nested: core.hooksPath" "$NEST; good nested/h/pre-push; git -C nested config core.hooksPath h" 'evil nested/h/pre-commit'
attempt_git "nested: an included file" "$NEST; git config -f inc user.name b; git -C nested config include.path ../../inc" 'evil e; git config -f inc core.fsmonitor $PWD/e'
attempt_git "nested: a program of the config" "$NEST; good nested/mon; git -C nested config core.fsmonitor ./mon" 'evil nested/mon'
# in two steps: prepared under another name, renamed later, so that the file itself is old
for way in 'mv scripts old; mv e scripts' './probe exchange $PWD/e $PWD/scripts'; do
    fresh "$NEST; good scripts/x; ln -s ../../../scripts/x nested/.git/hooks/pre-commit"
    do_inside 'evil e/x'
    sleep 0.02
    do_inside "$way"
    host_works
    holds "nested, renamed later: $way" test ! -e "$RAN"
done
# what the user does between two commands stays
fresh "$NEST; good scripts/x; ln -s ../../../scripts/x nested/.git/hooks/pre-commit"
do_inside true
good scripts/y && mv scripts/y scripts/x && sleep 0.02
do_inside 'echo 1 >scripts/z'
is "nested: a target that the user replaced stays" "$(ls scripts | tr '\n' ' ')${told:-nothing told}" "x z nothing told"
mv scripts other && mkdir scripts && mv other/x scripts && sleep 0.02
do_inside 'echo 1 >file2'
is "nested: so does one that the user moved" "$(ls scripts)${told:-nothing told}" "xnothing told"
# a .git that is a link, with links in it: commits and harmless settings are ordinary work
fresh "$NEST; mv nested/.git store; ln -s ../store nested/.git; mv store/config store/cfg; ln -s cfg store/config; mkdir x conf; echo 1 >conf/notes.md; ln -s ../conf x/.claude"
do_inside true
do_inside 'set -e; echo 2 >conf/notes.md; cd nested; echo 2 >b; git add b; git commit -qm b; git branch c; git config user.name b'
is "nested: a linked .git keeps working" "$code ${told:-nothing told} $(git -C nested config user.name) $(cat conf/notes.md)" "0 nothing told b 2"
do_inside 'echo evil >conf/settings.json; echo evil >store/hooks/pre-commit; git config -f store/cfg core.pager evil'
is "nested: but not what it protects" "$(ls conf store/hooks/pre-commit store/cfg 2>/dev/null | tr '\n' ' ')" "conf: notes.md "

# ---- other protected names that are links ----
# attempt_file NAME SETUP ATTACK: .vscode/tasks.json must stay as it is, or be gone
attempt_file()
{
    fresh "$2"
    do_inside "$3"
    like "$1" "$(cat "$WS/.vscode/tasks.json" "$WS/.claude/settings.json" 2>/dev/null)" "@(|original)"
    fresh "$2"
    id=$(cs create --backend local --workspace "$WS")
    cs exec "$id" -c "$TOOLS
$3" >/dev/null 2>&1
    cs destroy "$id" >/dev/null
    is "control of $1" "$(cat "$WS/.vscode/tasks.json" "$WS/.claude/settings.json" 2>/dev/null)" evil
}
shopt -s extglob
attempt_file ".vscode that is a link" 'mkdir cfg; echo original >cfg/tasks.json; ln -s cfg .vscode' 'echo evil >cfg/tasks.json'
attempt_file ".vscode that is an absolute link" 'mkdir cfg; echo original >cfg/tasks.json; ln -s "$WS/cfg" .vscode' 'echo evil >cfg/tasks.json'
attempt_file ".vscode that is a link to nothing" 'ln -s cfg .vscode' 'mkdir cfg; echo evil >cfg/tasks.json'
attempt_file "a file of .vscode that is a link" 'mkdir .vscode; echo original >t.json; ln -s ../t.json .vscode/tasks.json' 'echo evil >t.json'
attempt_file ".claude that is a link, settings of it" 'mkdir cfg; echo original >cfg/settings.json; ln -s cfg .claude' 'echo evil >cfg/settings.json'
attempt_file ".claude that is a link, no settings yet" 'mkdir cfg; ln -s cfg .claude' 'echo evil >cfg/settings.json'
attempt_file ".claude that is a link to nothing" 'ln -s cfg .claude' 'mkdir cfg; echo evil >cfg/settings.json'

# ---- the message, and what opens it ----
fresh "$HOOK"
do_inside 'echo evil >scripts/pre-commit'
like "the denial names the target and what would open it" "$told" "scripts/pre-commit | *.git/hooks/pre-commit is a link to it* | --write $WS/scripts/pre-commit"
MORE=(--write "$WS/scripts/pre-commit")
do_inside 'echo mine >scripts/pre-commit'
is "--write of the target opens it" "$code ${told:-nothing told} $(cat scripts/pre-commit)" "0 nothing told mine"
MORE=(--write "$WS/scripts")
do_inside 'echo evil >scripts/pre-commit'
is "a wide --write does not" "$(cat scripts/pre-commit)" mine
MORE=(--write .git/hooks)
do_inside 'echo too >scripts/pre-commit'
is "--write of what leads to it opens it" "$(cat scripts/pre-commit)" too
MORE=()
fresh 'good .githooks/pre-commit; git config core.hooksPath .githooks'
MORE=(--write .githooks)
do_inside 'echo mine >.githooks/pre-commit'
is "--write opens core.hooksPath" "$code ${told:-nothing told} $(cat .githooks/pre-commit)" "0 nothing told mine"
MORE=()
fresh "$HOOK"
id=$(cs create --workspace "$WS")
err=$(cs write "$id" scripts/pre-commit <file 2>&1)
like "a file call to the target is refused" "$? $err" "[1-9]*protected by default*--write $WS/scripts/pre-commit*"
cs destroy "$id"
fresh 'ln -s ../../tools/x .git/hooks/pre-commit'
id=$(cs create --workspace "$WS")
err=$(cs write "$id" tools/x <file 2>&1)
like "a file call that makes the target is refused" "$? $err" "[1-9]*protected by default*"
cs write "$id" tools/y <file
out=$(cs exec --json "$id" -c "$TOOLS; evil tools/x")
told=$(printf '%s' "$out" | denials)
holds "a detached sandbox looks at it too" told_of tools/x
is "what is beside it is written and stays" "$(cat tools/y)" 1
cs destroy "$id"

# ---- file calls: a repository is one by its layout ----
# The pieces of a bare repository, in every order, with a config that names a program. The host then
# uses git in it: it must start nothing.
bare_works() { rm -f "$RAN"; for d in "$WS"/bare*; do (cd "$d" && git status; cd "$WS" && git push "$d" HEAD:refs/heads/x) >/dev/null 2>&1 </dev/null; done; }
EVIL="$(printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = %s/e' "$WS")"
piece() # ID WHAT [DIR]: one file call
{
    local d=${3-bare}
    case $2 in
    config) printf '%s\n' "$EVIL" | cs write "$1" "$d/config" ;;
    plain) git config -f "$T/plain" core.bare true && cs write "$1" "$d/config" <"$T/plain" ;;
    HEAD) echo 'ref: refs/heads/main' | cs write "$1" "$d/HEAD" ;;
    objects) cs mkdir "$1" "$d/objects/info" ;;
    refs) cs mkdir "$1" "$d/refs/heads" ;;
    hook) cs import "$1" "$T/hooks" "$d/hooks" ;;
    esac
} >/dev/null 2>"$T/.err"
evil "$T/hooks/pre-receive"
orders() { python3 -c 'import itertools, sys
for p in itertools.permutations(sys.argv[1:]): print(*p, sep=",")' "$@"; }
for what in config hook; do
    fresh 'evil e'
    id=$(cs create --workspace "$WS")
    n=0
    for order in $(orders $what HEAD objects refs); do
        refused=0 n=$((n + 1))
        for p in ${order//,/ }; do piece "$id" "$p" "bare$n" || refused=$((refused + 1)); done
        is "file calls $order: exactly one is refused" "$refused" 1
    done
    bare_works
    holds "file calls with an evil $what: the host starts nothing" test ! -e "$RAN"
    out=$(cs destroy --json "$id")
    is "and nothing is left to quarantine" "$(printf '%s' "$out" | denials)" ""
    fresh 'evil e'
    id=$(cs create --backend local --workspace "$WS")
    for p in $what HEAD objects refs; do piece "$id" "$p"; done
    cs destroy "$id" >/dev/null
    bare_works
    holds "control: the host starts it ($what)" test -e "$RAN"
done
fresh 'evil e'
id=$(cs create --workspace "$WS")
for p in plain HEAD objects refs plain; do piece "$id" "$p" || fail "harmless piece $p" "$(cat "$T/.err")"; done
printf '[core]\n\tpager = evil\n' >"$T/pager"
appended() { cs write --append "$id" bare/config <"$T/pager"; }
status "a harmless bare repository made by file calls works" 0 git -C "$WS" push -q ./bare HEAD:refs/heads/x
refused() # NAME COMMAND...: a file call that is refused
{
    local name=$1
    shift
    err=$("$@" 2>&1 <"$WS/file")
    like "file call: $name" "$? $err" "[1-9]*protected by default*"
}
echo x | cs write "$id" h/pre-receive
printf '%s\n' "$EVIL" | cs write "$id" evil.cfg
refused "a directory renamed to hooks" cs mv "$id" h bare/hooks
refused "a file renamed to config" cs mv "$id" evil.cfg bare/config
refused "a file renamed into hooks" cs mv "$id" evil.cfg bare/hooks/pre-receive
refused "a file written into hooks" cs write "$id" bare/hooks/update
refused "an edit of the config" cs edit "$id" bare/config 'bare = true' 'fsmonitor = evil'
refused "more of the config" appended
refused "a commondir" cs write "$id" bare/commondir
refused "a repository below" cs write "$id" bare/modules/m/config
status "samples may be written" 0 cs write "$id" bare/hooks/update.sample
status "so may objects" 0 cs write "$id" bare/objects/xx
mkdir -p "$T/in/hooks" && ln -s ../h "$T/in/hooks/update"
refused "a link in hooks, by import" cs import "$id" "$T/in" bare
rm -rf "$T/in" && git init -q --bare "$T/in" && cp -r "$T/in" "$T/in2" && git -C "$T/in2" config core.fsmonitor evil
status "import of what git init --bare writes" 0 cs import "$id" "$T/in" imported
refused "import of a bare repository with a program" cs import "$id" "$T/in2" imported2
tar -C "$T" -cf "$T/in.tar" in && tar -C "$T" -cf "$T/in2.tar" in2
in_tar() { cs "$@" <"$T/in2.tar"; }
refused "the same as tar" in_tar import "$id" - imported3
# All files of a tar at once, in any order: the pieces do not exist yet when the first is judged.
mkdir -p "$T/p/q/objects" "$T/p/q/refs" && cp "$T/in2/config" "$T/in/HEAD" "$T/p/q" && touch "$T/p/q/objects/x" "$T/p/q/refs/x"
n=0
for order in $(orders q/config q/HEAD q/objects/x q/refs/x); do
    n=$((n + 1))
    tar -C "$T/p" -cf "$T/in2.tar" ${order//,/ }
    refused "all at once, $order" in_tar write "$id" "many$n" --tar
    is "and nothing of it is there" "$(ls -A "$WS/many$n" 2>/dev/null)" ""
done
cs destroy "$id" >/dev/null
for last in HEAD objects refs; do
    fresh 'evil e'
    id=$(cs create --workspace "$WS")
    for p in config HEAD objects refs; do [ $p = $last ] || piece "$id" $p; done
    case $last in HEAD) echo 'ref: refs/heads/main' | cs write "$id" spare ;; *) cs mkdir "$id" spare ;; esac
    refused "$last renamed into place" cs mv "$id" spare bare/$last
    cs destroy "$id" >/dev/null
done

# ---- every row of the table: absent, a link to nothing, a directory, by rename, by a renamed parent ----
mapfile -t rows < <(sed -nE 's/^ *(ROW|KIND|SHELL|MCP|AGENT|EDITOR|START)\("([^"]+)".*/\2/p' "$HERE/../../src/policy/protected_names.c" | sed 's/^\*/any/')
holds "the table is read" test ${#rows[@]} -gt 100
LOOP='each() { while read -r f; do mkdir -p "$2$(dirname "$f")" 2>/dev/null; '
DONE='done <rows; }; n=0; each "$1" "$2"'
ways=(
    "absent||$LOOP echo evil >\"\$f\"; $DONE"
    "below||$LOOP echo evil >\"\$2\$f\"; ${DONE/'"$2"'/deep/er/}"
    "a link to nothing|n=0; while read -r f; do n=\$((n + 1)); mkdir -p \"\$(dirname \"\$f\")\"; ln -s \"\$WS/to\$n\" \"\$f\"; done <rows|n=0; while read -r f; do n=\$((n + 1)); echo evil >to\$n; done <rows"
    "by rename||$LOOP echo evil >new; mv new \"\$f\"; $DONE"
    "by a renamed parent||while read -r f; do d=\$(dirname \"x/\$f\"); mkdir -p src; echo evil >src/\"\${f##*/}\"; if [ -d \$d ]; then mv src/* src/.[!.]* \$d/ 2>/dev/null; rmdir src; else mkdir -p \"\$(dirname \$d)\"; mv src \$d; fi; done <rows"
    "a directory in its place||$LOOP case \$f in .git | .jj/repo) ;; *) mkdir -p \"\$f\"; echo evil >\"\$f/x\" ;; esac; $DONE"
)
MORE=(--no-project) # one of the rows is caisson.json, which is refused when it is a link
for way in "${ways[@]}"; do
    name=${way%%|*} setup=${way#*|} attack=${way#*|*|}
    setup=${setup%%|"$attack"}
    for part in file dir; do
        for ((from = 0; from < ${#rows[@]}; from += 110)); do
            fresh 'rm -rf .git'
            # .git as a file cannot be there together with .git/config
            printf '%s\n' "${rows[@]:from:110}" | if [ $part = file ]; then grep -xE '\.git|\.jj/repo'; else grep -vxE '\.git|\.jj/repo'; fi >rows
            [ -s rows ] || continue
            eval "$setup"
            sleep 0.02
            do_inside "set --; $attack"
            left=
            while read -r f; do
                for at in "$f" "deep/er/$f" "x/$f" "$f/x" "deep/er/$f/x"; do
                    [ "$(cat "$WS/$at" 2>/dev/null)" != evil ] || left+=" $at"
                done
            done <rows
            is "every row, $name, $part $from" "$left" ""
            [ -n "$told" ] || [ "$name$part" = "a directory in its placefile" ] || fail "every row, $name: it is told"
        done
    done
done

# ---- ordinary work passes ----
fresh "$HOOK; good .githooks/x; ln scripts/pre-commit other; ln -s file shown; mkdir .vscode; ln -s ../file .vscode/readme"
do_inside 'set -e; echo 2 >b; git add b; git commit -qm b; echo 3 >scripts/other; mkdir tools; echo 4 >tools/x; git status; rm -rf tools'
is "ordinary work" "$code ${told:-nothing told}" "0 nothing told"
