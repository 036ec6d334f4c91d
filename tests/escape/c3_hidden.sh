#!/bin/bash
# C3: a repository that starts a program is found wherever a command hides it, however it is moved
# later, and by however many sandboxes. After each attempt git is run on the host in every directory
# of the workspace: no program of the attacker may start. The control does the same without a sandbox
# and shows that one does.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"
command -v git >/dev/null || { skip "all of it" "needs git" && exit 0; }
export GIT_CONFIG_NOSYSTEM=1 MARK=$T/ran
git config --global init.defaultBranch main
git config --global safe.directory '*'
ENV="export GIT_CONFIG_NOSYSTEM=1 MARK=$MARK"
# What a step may use: evil DIR makes a repository there whose config starts a program.
ENV+='; evil() { mkdir -p "$1" && git -C "$1" init -q . && git -C "$1" config core.fsmonitor "touch $MARK; false"; }'
ENV+='; hook() { mkdir -p "$1" && printf "#!/bin/sh\ntouch $MARK\n" >"$1/post-index-change" && chmod +x "$1/post-index-change"; }'

fresh()
{
    chmod -R u+rwx "$WS" 2>/dev/null
    find "$WS" -mindepth 1 -not -name probe -delete
    rm -f "$MARK"
    (cd "$WS" && git init -q . && git config user.name a && git config user.email a@b && echo 1 >file &&
        git add file && git commit -qm one && mkdir -p node_modules/x) || fail "a workspace to begin with"
    git -C "$WS" init -q nested && echo 1 >"$WS/nested/file" && git -C "$WS/nested" add file
    sleep 0.02 # the clock of file systems ticks: what follows is later
}
# git as the host runs it, in every directory there is, also by way of links.
host_runs()
{
    find -L "$WS" -type d -print0 2>/dev/null |
        while IFS= read -r -d '' d; do
            (cd "$d" 2>/dev/null && touch file 2>/dev/null; git status -s; git add -A . ; git diff) >/dev/null 2>&1
        done
    [ -e "$MARK" ] && echo ran || echo nothing
}

# NAME|STEP|STEP...: each step is a sandbox of its own
cases=(
    'objects, a link to it|evil .git/objects/zz/proj; ln -s .git/objects/zz/proj proj'
    'objects, moved out later|evil .git/objects/zz/proj|mv .git/objects/zz/proj proj'
    'objects, in a directory of two digits|evil .git/objects/ab/proj|mv .git/objects/ab proj'
    'objects, twice moved|evil .git/objects/zz/proj|mv .git/objects/zz .git/zz|mv .git/zz proj'
    'objects/pack|evil .git/objects/pack/x|ln -s ../.git/objects/pack/x nested/p'
    'objects/info|evil .git/objects/info/x|mv .git/objects/info/x .'
    'objects of a repository below|evil nested/.git/objects/zz/proj|mv nested/.git/objects/zz/proj nested/p'
    'objects of a submodule|mkdir -p .git/modules/m/refs .git/modules/m/objects; cp .git/HEAD .git/modules/m; evil .git/modules/m/objects/zz/p|mv .git/modules/m/objects/zz/p p'
    'objects of a bare repository|git init -q --bare b.git; evil b.git/objects/zz/p|mv b.git/objects/zz/p p'
    'the objects themselves become a repository|mkdir -p .git/objects/zz/p; cd .git/objects/zz/p; git init -q --bare .; git config core.bare false; git config core.worktree ../../../..; git config core.fsmonitor "touch $MARK; false"|mkdir q; mv .git/objects/zz/p q/.git'
    'a gitfile into objects|evil .git/objects/zz/p; mkdir q; echo "gitdir: ../.git/objects/zz/p/.git" >q/.git'
    'a gitfile that points to nothing yet|mkdir q; echo "gitdir: ../later" >q/.git|evil p; mv p/.git later'
    'a gitfile in another place among the objects|mkdir -p .git/objects/ab; echo "gitdir: ../../modules/x" >.git/objects/ab/.git; mkdir -p .git/modules|evil p; mv p/.git .git/modules/x'
    'a gitfile among the objects, changed in place|mkdir -p .git/objects/ab .git/modules; git init -q p; mv p/.git .git/modules/x; echo "gitdir: ../../modules/x" >.git/objects/ab/.git|y=$(mktemp -d); evil "$y"; cp -r "$y/.git" .git/modules/y; rm -rf "$y"; echo "gitdir: ../../modules/y" >.git/objects/ab/.git'
    'a link to nothing yet|mkdir q; ln -s ../later q/.git|evil p; mv p/.git later'
    'a hidden directory of packages|evil node_modules/x/.hidden; ln -s node_modules/x/.hidden proj'
    'among the references|evil .git/refs/p|mv .git/refs/p p'
    'among the logs|evil .git/logs/p|mv .git/logs .git/l; ln -s .git/l/p p'
    'a dull directory that becomes hooks|git init -q p; echo 1 >p/file; git -C p add file; rm -rf p/.git/hooks; hook p/dull|mv p/dull p/.git/hooks'
    'a dull directory, moved by a parent|git init -q p; echo 1 >p/file; git -C p add file; mv p/.git p/dull; rm -rf p/dull/hooks; mv p/dull/HEAD p/dull/H; hook p/dull/hooks|mv p/dull/H p/dull/HEAD; mv p q; mv q/dull q/.git'
    'a submodule that becomes a repository|mkdir q; git init -q p; echo 1 >p/file; git -C p add file; mkdir -p .git/modules; mv p/.git .git/modules/p; mv .git/modules/p/HEAD .git/modules/p/H; hook .git/modules/p/hooks; echo "gitdir: ../.git/modules/p" >p/.git|mv .git/modules/p/H .git/modules/p/HEAD'
    'a hard link to an old file|git init -q p; echo 1 >p/file; git -C p add file; rm -rf p/.git/hooks; hook p/dull|mkdir p/.git/hooks; ln p/dull/post-index-change p/.git/hooks/post-index-change'
    'with its old times|evil .git/objects/zz/p; find .git/objects/zz -exec touch -h -d 2001-01-01 {} +|mv .git/objects/zz/p p; touch -d 2001-01-01 p .'
    'a directory deep below|d=$(printf "d/%.0s" {1..100}); evil $d/p|d=$(printf "d/%.0s" {1..100}); mv $d/p p'
    'closed behind it|evil .git/objects/zz/p; chmod 0 .git/objects/zz/p .git/objects/zz|chmod 755 .git/objects/zz; chmod 755 .git/objects/zz/p; mv .git/objects/zz/p p'
)
for one in "${cases[@]}"; do
    name=${one%%|*}
    IFS='|' read -r -a steps <<<"${one#*|}"
    fresh
    for step in "${steps[@]}"; do
        "${IN[@]}" -c "$ENV; $step" >"$T/.out" 2>&1 || fail "$name: inside" "$(tail -n 3 "$T/.out")"
        sleep 0.02
    done
    is "hidden: $name" "$(host_runs)" nothing
    fresh
    for step in "${steps[@]}"; do (cd "$WS" && bash -c "$ENV; $step") >/dev/null 2>&1; done
    is "control: $name" "$(host_runs)" ran
done

# ---- killed before the scan ----
said() { python3 -c '
import json, sys
r = json.load(sys.stdin)
print(r["unchecked"], *sorted(d["target"][len(sys.argv[1]) + 1:] for d in r["denials"] if d["source"] == "protected by default"))' "$WS"; }
# killed STEP: the process that opened the sandbox is killed while the step waits for its end.
killed()
{
    "$CAISSON" run --workspace "$WS" -c "$ENV; $1; touch ready; sleep 1000" >/dev/null 2>&1 &
    local pid=$!
    eventually test -e "$WS/ready"
    kill -9 $pid
    wait $pid 2>/dev/null
    rm -f "$WS/ready"
}
# Until the processes of a killed sandbox have ended, its changes are its own: these try again.
tells() { [ "$(cs run --json --workspace "$WS" -- true | said)" = "False $1" ]; }
opening_removes()
{
    id=$(new)
    [ ! -e "$1" ] && return
    cs destroy "$id" >/dev/null
    return 1
}
fresh
killed 'evil p; echo evil >.zshenv'
holds "what a killed sandbox made is there at first" test -e p/.git/config -a -e .zshenv
git config alias.mine '!mine' # of the user, after the end of the sandbox, in a file that was read-only in it
holds "the next sandbox finds it" eventually tells '.zshenv p/.git/config'
is "and nothing runs" "$(host_runs)" nothing
is "what the user changed in a file that was read-only stays" "$(git config alias.mine)" '!mine'
is "it is told once" "$(cs run --json --workspace "$WS" -- true | said)" "False"
fresh
killed 'evil p'
holds "opening one is enough" eventually opening_removes p/.git/config
killed 'evil q'
said_by_open() { [ "$(cs exec --json "$id" -- true | said)" = "False $1" ]; }
holds "one that was open before finds it too" eventually said_by_open q/.git/config
is "and nothing runs that" "$(host_runs)" nothing
cs destroy "$id" >/dev/null

# A detached sandbox whose keeper ends takes no part in a scan any more.
fresh
id=$(new)
cs exec "$id" -c "$ENV"'; (while [ ! -e go ]; do sleep 0.02; done; evil p; touch ready; sleep 1000) >/dev/null 2>&1 &' >/dev/null
touch go
eventually test -e ready
holds "what a process in the background made is there at first" test -e p/.git/config
is "a sandbox beside it leaves it alone while it lives" "$(cs run --json --workspace "$WS" -- true | said)" "False"
if [ "$ROOT" = yes ]; then
    keepers=$(grep -lsF " $WS " /proc/[0-9]*/mountinfo | cut -d/ -f3)
elif [ "${CSN_TEST_UID_IS_OURS:-}" = 1 ]; then
    keepers=$(pgrep -u "$(id -u)" caisson)
fi
keeper=$(for p in $keepers; do grep -qsa '^caisson-keeper' "/proc/$p/cmdline" && echo "$p"; done | head -n 1)
if [ -n "$keeper" ]; then
    kill -9 "$keeper"
    holds "after its end the next one finds it" eventually tells p/.git/config
    is "and nothing of it runs" "$(host_runs)" nothing
else
    skip "after its end the next one finds it" "its keeper cannot be told from others"
fi
cs destroy "$id" >/dev/null 2>&1

# ---- a scan that cannot be finished ----
fresh
deep=$(printf 'd/%.0s' {1..60})
"$CAISSON" run --json --workspace "$WS" -c "$ENV; mkdir -p $deep; evil ${deep}p; touch ready; while [ -e ready ]; do sleep 0.02; done; exit 7" >"$T/.json" 2>"$T/.err" &
pid=$!
eventually test -e ready
prlimit --pid $pid --nofile=20 # fewer than a deep scan needs
rm ready
wait $pid
is "the status of the command is kept" "$?" 7
out=$(cat "$T/.json")
like "what was not checked is said" "$(said <<<"$out")" "True*"
like "also to people" "$(cat "$T/.err")" "*could be checked for files that programs outside run*"
holds "it is there" test -e "${deep}p/.git/config"
is "the next command finishes it" "$(cs run --json --workspace "$WS" -- true | said)" "False ${deep}p/.git/config"
is "and nothing runs" "$(host_runs)" nothing
