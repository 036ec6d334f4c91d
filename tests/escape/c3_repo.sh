#!/bin/bash
# C3: what runs inside does not turn the user's repository into code that the host runs, unless the
# user asks for it. Plants are made by commands and by file calls; a control with the backend local
# shows that each of them lands where nothing protects.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"
command -v git >/dev/null || { skip "all of it" "needs git" && exit 0; }
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
ENV='export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b'
git config --global init.defaultBranch main
IN=(cs run --json --workspace "$WS" --timeout 60s)

denials() { python3 -c '
import json, sys
for d in json.load(sys.stdin).get("denials", []):
    if d.get("source") == "protected by default":
        print(d["target"][len(sys.argv[1]) + 1:], "|", d["rule"], "|", d.get("resolved") or "-", "|", d.get("hint") or "-")' "$WS"; }
# do_inside COMMAND: its denials are in $told, its end in $code
do_inside() { out=$("${IN[@]}" -c "$ENV; $1" 2>"$T/.err"); code=$?; told=$(printf '%s' "$out" | denials); }
told_of() { grep -q "^$1 | " <<<"$told"; }

# ---- what is there already ----
existing=(.git/hooks/pre-commit .git/config .bashrc .mcp.json .vscode/tasks.json .envrc .git/hooks/post-merge)
fresh()
{
    find "$WS" -mindepth 1 -not -name probe -delete
    (cd "$WS" && git init -q . && echo 1 >file && git add file && git commit -qm one && mkdir .vscode) || return
    for f in "${existing[@]}"; do [ "$f" = .git/config ] || echo original >"$WS/$f"; done
    git -C "$WS" config test.value original
    cp "$T/index.pl" "$WS" 2>/dev/null
    git -C "$WS" init -q nested && echo original >"$WS/nested/.git/hooks/pre-commit" && chmod +x "$WS/nested/.git/hooks/pre-commit"
    sleep 0.02 # the clock of file systems ticks: what follows is later
}
unharmed()
{
    local f text real
    for f in "${existing[@]}"; do
        text=$(cat "$WS/$f" 2>&1) real=$(realpath "$WS/$f" 2>&1)
        [ "$f" = .git/config ] && text=$(git config -f "$WS/$f" test.value) && grep -q evil "$WS/$f" && text=evil
        case $real in "$WS/.git/"* | "$WS/.vscode/"* | "$WS/.bashrc" | "$WS/.mcp.json" | "$WS/.envrc") ;; *) text="at $real" ;; esac
        is "$1: $f is as it was" "$text" original
    done
}
# Every way to change a file that is there; $f is the file, $d what is above it in the workspace.
ways=(
    'append|echo evil >>$f'
    'write in place|echo evil >$f'
    'replace by rename|echo evil >new; mv -f new $f'
    'remove and make anew|rm -f $f; echo evil >$f'
    'exchange|echo evil >new; ./probe exchange $PWD/new $PWD/$f'
    'a hard link in its place|echo evil >new; ln -f new $f'
    'a hard link to it|ln $f other && echo evil >other'
    'a link in its place|echo evil >new; ln -sfn $PWD/new $f'
    'rename what is above|mv $d moved && mkdir -p $(dirname $f) && echo evil >$f'
    'exchange what is above|mkdir -p evil/hooks; for x in hooks/pre-commit hooks/post-merge config tasks.json; do echo evil >evil/$x; done; ./probe exchange $PWD/evil $PWD/$d'
    'a link above|mkdir -p evil/hooks; echo evil >evil/config; mv $d moved; ln -sfn evil $d; ln -sfn ../evil $(dirname $f)'
    'through another name of the directory|mkdir -p other; cd /proc/self/cwd/$(dirname $f) && echo evil >$(basename $f)'
    'by descriptor of the directory above|exec 9<.; cd /proc/self/fd/9 && echo evil >$f'
    'truncate|truncate -s 0 $f'
)
for way in "${ways[@]}"; do
    fresh || fail "a workspace to begin with"
    do_inside "for f in ${existing[*]}; do d=\${f%%/*}; (${way#*|}); done 2>/dev/null"
    unharmed "${way%%|*}"
done
fresh
id=$(cs create --backend local --workspace "$WS")
cs exec "$id" -c "echo evil >.git/hooks/pre-commit; mv .vscode moved" >/dev/null 2>&1
cs destroy "$id" >/dev/null
is "control: without a jail a hook is changed" "$(cat "$WS/.git/hooks/pre-commit")" evil
holds "control: and a directory moved" test -d "$WS/moved"

# The message of a refusal names the rule that opens it.
fresh
do_inside 'git config user.name x'
holds "git config fails where it is refused" test $code -ne 0
like "and the denial says what would open it" "$told" ".git/config | * | --write $WS/.git/config"
do_inside 'mv .vscode elsewhere'
holds "moving a protected directory is told" told_of .vscode

# ---- what is made ----
cat >"$T/index.pl" <<'EOF'
my ($to, $path) = @ARGV; # an index as git writes them, with a path that git would never let in
my $e = pack("N10H40n", (0) x 6, 0100755, 0, 0, 0, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", length $path) . $path;
my $all = "DIRC" . pack("NN", 2, 1) . $e . "\0" x (8 - length($e) % 8);
use Digest::SHA "sha1"; open(F, ">", $to); print F $all, sha1($all);
EOF
plants=(
    'n/.git/hooks/pre-commit|git init -q n; echo evil >n/.git/hooks/pre-commit'
    'n/.git/config|git init -q n; git -C n config core.fsmonitor evil'
    'nested/.git/hooks/pre-commit|echo evil >nested/.git/hooks/pre-commit'
    'nested/.git/config|git -C nested config alias.x !evil'
    'deep/er/.bashrc|mkdir -p deep/er; echo evil >deep/er/.bashrc'
    'deep/er/.mcp.json|mkdir -p deep/er; echo evil >deep/er/.mcp.json'
    'deep/er/.vscode/tasks.json|mkdir -p deep/er/.vscode; echo evil >deep/er/.vscode/tasks.json'
    'deep/er/.envrc|mkdir -p deep/er; echo evil >deep/er/.envrc'
    '.zshenv|echo evil >.zshenv'
    '.idea/runConfigurations/x.xml|mkdir -p .idea/runConfigurations; echo evil >.idea/runConfigurations/x.xml'
    'linked/.vscode|mkdir linked plain; echo evil >plain/tasks.json; ln -s ../plain linked/.vscode'
    'linked/.git|mkdir linked; git init -q plain; mv plain/.git other; ln -s ../other linked/.git'
    'hard/.envrc|mkdir hard; echo evil >plain; ln plain hard/.envrc'
    'renamed/.envrc|mkdir renamed; echo evil >plain; mv plain renamed/.envrc'
    'swap/.envrc|mkdir swap; echo evil >plain; echo 1 >swap/.envrc; ./probe exchange $PWD/plain $PWD/swap/.envrc'
    '.GIT/hooks/pre-commit|mkdir -p .GIT/hooks; echo evil >.GIT/hooks/pre-commit'
    '.git/modules/m/hooks/post-checkout|mkdir -p .git/modules/m/hooks; echo evil >.git/modules/m/hooks/post-checkout; cp .git/HEAD .git/modules/m; mkdir .git/modules/m/objects .git/modules/m/refs'
    '.git/modules/m/config|git init -q m; mkdir -p .git/modules; mv m/.git .git/modules/m; git config -f .git/modules/m/config core.sshCommand evil'
    '.git/worktrees/w/config.worktree|git worktree add -q w; git config -f .git/worktrees/w/config.worktree core.pager evil'
    '.git/worktrees/w/commondir|git worktree add -q w; echo ../../../evil >.git/worktrees/w/commondir'
    '.git/config.worktree|git config -f .git/config.worktree core.pager evil'
    'bare/config|git init -q --bare bare; git -C bare config core.fsmonitor evil'
    'layout/hooks/pre-receive|mkdir -p layout/objects layout/refs layout/hooks; cp .git/HEAD layout; echo evil >layout/hooks/pre-receive'
    'out/.git|mkdir out; echo gitdir: /tmp/evil >out/.git'
    'aslant/.git|mkdir aslant; git init -q other; git -C other config core.fsmonitor evil; mv other/.git elsewhere; echo gitdir: ../elsewhere >aslant/.git'
    'tree/.git/config|git init -q tree; git -C tree config core.worktree ../../..'
    '.git/index|perl index.pl .git/index .git/hooks/post-checkout'
    'n/.git/index|git init -q n; perl index.pl n/.git/index .git/hooks/post-checkout'
    'hidden/.git/hooks/pre-commit|git init -q hidden; echo evil >hidden/.git/hooks/pre-commit; chmod 311 hidden/.git/hooks hidden/.git hidden'
    'stuck/.git/hooks/pre-commit|git init -q stuck; echo evil >stuck/.git/hooks/pre-commit; chmod 555 stuck/.git/hooks'
    'blind/.git/config|git init -q blind; git -C blind config core.fsmonitor evil; chmod 0 blind/.git/config'
    'odd/.envrc|mkdir odd; mkfifo odd/.envrc'
    'old/.envrc|mkdir old; echo evil >old/.envrc; touch -d 2001-01-01 old/.envrc old'
    "$(printf 'x%.0s' {1..200})/.envrc|n=$(printf 'x%.0s' {1..200}); mkdir \$n; echo evil >\$n/.envrc"
)
lands() { [ -L "$WS/$1" ] || { [ -e "$WS/$1" ] && [ "$(tr -d '\0' <"$WS/$1" 2>/dev/null)" != "$2" ]; }; }
for plant in "${plants[@]}"; do
    where=${plant%%|*} how=${plant#*|} name="planted: ${plant:0:50}"
    fresh
    before=$(cat "$WS/$where" 2>/dev/null | tr -d '\0')
    do_inside "$how"
    chmod -R u+rwX "$WS" 2>/dev/null
    [ -p "$WS/$where" ] || ! lands "$where" "$before" && [ ! -p "$WS/$where" ]
    is "$name is not there" "$?" 0
    holds "$name is told" told_of "$where"
    fresh
    id=$(cs create --backend local --workspace "$WS")
    cs exec "$id" -c "$ENV; cd $WS; $how" >/dev/null 2>&1
    cs destroy "$id" >/dev/null
    chmod -R u+rwX "$WS" 2>/dev/null
    { [ -p "$WS/$where" ] || lands "$where" "$before"; } || fail "control of $name"
done

# ---- what is set aside is kept ----
fresh
do_inside 'git init -q n; echo evil >n/.git/hooks/pre-commit'
kept=$(sed -n 's/.* | \(.*\) | --write.*/\1/p' <<<"$told")
is "what was set aside is outside, with what it held" "$(cat "$kept")" evil
like "and where it was is beside it" "$(cat "${kept%/item}/from")" "*$WS/n/.git/hooks/pre-commit*git runs what is in it*"
holds "it is not in the workspace" test "${kept#"$WS"}" = "$kept"
if [ -d /dev/shm ] && far=$(mktemp -d /dev/shm/csn-c3.XXXXXX) && [ "$(stat -c %d "$far")" != "$(stat -c %d "$T")" ]; then
    out=$(XDG_STATE_HOME=$far "${IN[@]}" -c 'echo evil >.zshenv; ln -s x .zshrc' 2>/dev/null)
    told=$(printf '%s' "$out" | denials)
    holds "a state directory on another file system: not there" test ! -e "$WS/.zshenv" -a ! -L "$WS/.zshrc"
    is "and what it held is kept" "$(cat "$far"/caisson/aside/*/*/item 2>/dev/null)" evil
    is "nothing of it stays behind" "$(find "$WS" -name '.csn-*')" ""
fi
rm -rf "${far:-/nonexistent}"

# ---- in two steps: made under a dull name, renamed later ----
for way in 'mv dull n/.git/hooks' 'rm -rf n/.git; mv repo n/.git' 'mv vs .vscode2; mv .vscode2 n/.vscode' './probe exchange $PWD/dull $PWD/n/.git/hooks'; do
    fresh
    do_inside 'git init -q n; echo 1 >n/x; mkdir dull vs; echo evil >dull/pre-commit; echo evil >vs/tasks.json; cp -r n/.git repo; cp dull/pre-commit repo/hooks-; mkdir -p repo/hooks; mv repo/hooks- repo/hooks/pre-commit; mv repo/HEAD repo/H'
    sleep 0.02
    do_inside "mv repo/H repo/HEAD; rm -rf n/.git/hooks; mkdir -p n/.git/hooks; [ '${way%% *}' = ./probe ] || rmdir n/.git/hooks; $way; touch n/y n/.git/z"
    is "by rename: $way" "$(cat n/.git/hooks/pre-commit n/.vscode/tasks.json 2>/dev/null)" ""
    holds "it is told" grep -q 'moved here' <<<"$told"
done

# ---- ordinary work passes, and nothing is said of it ----
works()
{
    fresh
    do_inside true # from here on it is known what was where
    do_inside "set -e; $2"
    is "$1 works" "$code ${told:-nothing told}" "0 nothing told"
}
works "git add, commit" 'echo 2 >b; git add b; git commit -qm b'
works "git branch, merge" 'git checkout -q -b f; echo 2 >c; git add c; git commit -qm c; git checkout -q main; git merge -q --no-ff -m m f; git branch -d f'
works "git rebase" 'git checkout -q -b f; echo 2 >c; git add c; git commit -qm c; git checkout -q main; echo 3 >d; git add d; git commit -qm d; git checkout -q f; git rebase -q main'
works "git stash" 'echo 2 >>file; git stash -q; git stash pop -q; git checkout -q file'
works "git worktree" 'git worktree add -q w; cd w; echo 2 >b; git add b; git commit -qm b; cd ..; git worktree remove w'
works "a worktree that stays" 'git worktree add -q w'
holds "and is still one" git -C "$WS/w" status -s
works "git gc, fsck" 'git gc -q; git fsck'
works "git tag, reset" 'git tag v1; echo 2 >b; git add b; git commit -qm b; git reset -q --hard v1'
works "git fetch from a path" 'git clone -q . c; cd c; echo 2 >b; git add b; git commit -qm b; cd ..; git fetch -q ./c'
works "git init below" 'git init -q n; cd n; echo 2 >b; git add b; git commit -qm b; git remote add origin ../c; git config user.name b'
holds "and is still there" git -C "$WS/n" status -s
is "with its config" "$(git -C "$WS/n" config user.name)" b
works "git init --bare, push" 'git init -q --bare b.git; git push -q ./b.git main'
works "a commit in a repository below, with hooks of the user" 'cd nested; echo 2 >b; git add b; git commit -qm b --no-verify'
works "removing a repository below" 'rm -rf nested'
works "a repository of SHA-256" 'git init -q --object-format=sha256 n; cd n; echo 2 >b; git add b; git commit -qm b'
fresh
rm -rf "$WS/.git"
do_inside 'set -e; git init -q .; echo 2 >b; git add b; git commit -qm b; git remote add origin x; git -c protocol.file.allow=always submodule --quiet add ./nested s 2>/dev/null || true; git config user.name b'
is "a repository of its own, where there was none" "$code ${told:-nothing told}" "0 nothing told"
is "it is there" "$(git config user.name)" b

# ---- the user asks for it ----
fresh
IN+=(--write .git/hooks --write "$WS/.git/config" --write "$WS/n/.vscode" --write "$WS/.zshenv")
do_inside 'set -e; echo mine >.git/hooks/pre-commit; git config user.name mine; mkdir -p n/.vscode; echo mine >n/.vscode/x; echo mine >.zshenv; git remote add o x'
is "--write opens" "$code ${told:-nothing told} $(cat .git/hooks/pre-commit n/.vscode/x .zshenv | tr '\n' ' ')$(git config user.name)" \
    "0 nothing told mine mine mine mine"
do_inside 'echo evil >.envrc; mv .vscode x; echo evil >n/.bashrc'
is "and nothing else" "$(cat .envrc) $(ls -A n)" "original .vscode"
fresh
IN=(cs run --json --workspace "$WS" --timeout 60s --write "$WS")
do_inside 'echo evil >.git/hooks/pre-commit; echo evil >.zshenv'
is "a wide --write does not" "$(cat .git/hooks/pre-commit)$(ls .zshenv 2>/dev/null)" original
IN=(cs run --json --workspace "$WS" --timeout 60s)

# ---- file calls ----
fresh
mkdir -p "$WS/plain/hooks" && echo evil >"$WS/plain/hooks/pre-commit" && ln -s .git/hooks "$WS/way"
id=$(new) || fail "a sandbox for file calls"
refused()
{
    local name=$1
    shift
    err=$("$@" 2>&1 <"$WS/file")
    like "file call: $name" "$? $err" "[1-9]*protected by default*--write*"
}
for f in .git/hooks/pre-commit .git/hooks/new .git/config nested/.git/hooks/new n2/.git/config .bashrc .mcp.json .vscode/tasks.json d/.envrc \
    way/x .git/modules/m/config "$WS/.zshenv"; do
    refused "write $f" cs write "$id" "$f"
done
refused "edit .envrc" cs edit "$id" .envrc original evil
refused "rename to a hook" cs mv "$id" plain/hooks/pre-commit nested/.git/hooks/x
refused "rename a directory to .git" cs mv "$id" plain nested2/.git
refused "rename a protected directory" cs mv "$id" .vscode x
refused "rename .git" cs mv "$id" nested/.git x
refused "remove a hook" cs rm "$id" .git/hooks/pre-commit
refused "remove a protected directory" cs rm -r "$id" .vscode
refused "make a protected directory" cs mkdir "$id" d/.vscode
mkdir -p "$T/tree/d" && ln -s ../plain "$T/tree/d/.claude"
refused "a link by import" cs import "$id" "$T/tree" .
unharmed "file calls"
for f in plain/x .git/info/exclude .gitignore .github/workflows/x.yml src/.env; do
    status "file call: $f may be written" 0 cs write "$id" "$f"
done
cs destroy "$id" >/dev/null

# ---- in the background, in sessions, between commands ----
fresh
id=$(new)
cs exec "$id" -c '(while sleep 0.05; do mkdir -p bg; echo evil >bg/.envrc; done) >/dev/null 2>&1 &' >/dev/null
eventually test -e "$WS/bg/.envrc"
cs destroy "$id" >/dev/null
holds "what a process in the background made is gone at the end" test ! -e "$WS/bg/.envrc"
id=$(new)
out=$(cs exec --json --session s "$id" -c 'echo evil >.zshenv')
told=$(printf '%s' "$out" | denials)
holds "a command of a session is looked at" told_of .zshenv
cs destroy "$id" >/dev/null
id=$(new)
cs exec "$id" -c true >/dev/null
echo mine >"$WS/.zshenv" && mkdir -p "$WS/u/.vscode" && echo mine >"$WS/u/.vscode/x" && sleep 0.02
out=$(cs exec --json "$id" -c 'echo 1 >u/.vscode/../z')
is "what the user made meanwhile stays" "$(cat "$WS/.zshenv" "$WS/u/.vscode/x" | tr '\n' ' ')$(printf '%s' "$out" | denials)" "mine mine "
cs destroy "$id" >/dev/null
# The user works on while a command runs; what git replaces is open inside from then on.
while_running()
{
    fresh
    git -C "$WS" config core.hooksPath mine
    id=$(new)
    cs exec "$id" -c "touch go; while [ -e go ]; do sleep 0.02; done; $2" >/dev/null 2>&1 &
    eventually test -e "$WS/go" && eval "$1" && rm "$WS/go"
    wait $!
    cs destroy "$id" >/dev/null
}
while_running 'echo by-the-user >.vscode/tasks.json; git remote add origin x' :
is "what the user changed in a held directory stays" "$(cat .vscode/tasks.json)" by-the-user
is "so does the config that git replaced" "$(git config core.hooksPath) $(git config remote.origin.url)" "mine x"
while_running 'git remote add origin x' 'git config core.pager evil'
holds "but not when something evil came to it" test ! -e .git/config
while_running 'git remote add origin x' 'printf "[user]\n\tname = a \\\\\n\thooksPath = mine\n\tpager = evil\n" >>.git/config'
holds "nor when it is written so that lines hide" test ! -e .git/config

# ---- what the config includes ----
fresh
mkdir -p "$WS/conf/sub" && git config -f "$WS/conf/team.inc" user.name team
git -C "$WS" config include.path ../conf/team.inc && git -C "$WS" config includeIf.onbranch:x.path ../conf/sub/later.inc
sleep 0.02
do_inside 'git config -f conf/team.inc core.pager evil; echo evil >conf/team.inc; mv conf x; mkdir -p conf/sub; git config -f conf/sub/later.inc core.pager evil'
is "an included file is as it was" "$(git config -f conf/team.inc user.name)" team
holds "one that was not there is not" test ! -e conf/sub/later.inc
holds "and is told" told_of conf/sub/later.inc

# ---- without namespaces nothing is held, but all is looked at ----
fresh
IN=("$PROBE" without userns "$CAISSON" run --json --allow-weaker --workspace "$WS" --timeout 60s)
do_inside true
if [ $code -eq 0 ]; then
    do_inside 'echo evil >.git/hooks/pre-commit; git config core.pager evil; echo evil >.zshenv; git init -q n; git -C n config user.name b'
    is "weaker: what was made or changed is gone" "$(ls .git/hooks/pre-commit .git/config .zshenv 2>/dev/null)" ""
    is "weaker: what is harmless is there" "$(git -C n config user.name)" b
    for f in .git/hooks/pre-commit .git/config .zshenv; do holds "weaker: $f is told" told_of $f; done
else
    skip "weaker: what was made or changed is gone" "no such sandbox here: $(head -n 1 "$T/.err")"
fi

# ---- closed behind it, and opened again by another command, when what is in it is old ----
IN=(cs run --json --workspace "$WS" --timeout 60s)
for mode in 000 400 200 600; do
    fresh
    do_inside "mkdir -p hid/den; echo evil >hid/den/.envrc; chmod $mode hid/den hid"
    sleep 0.02
    do_inside 'chmod 755 hid hid/den'
    holds "in a directory of mode $mode" test ! -e hid/den/.envrc
done
fresh
do_inside 'echo evil >.zshenv; chmod 000 .'
chmod 755 "$WS"
holds "in the workspace itself" test ! -e "$WS/.zshenv"

# ---- changed through a mapping, which leaves no time, by a process that outlives its command ----
fresh
cat >"$WS/map.py" <<'P'
import mmap, os, sys, time
path = sys.argv[1]
text = open(path, "rb").read()
open(path, "wb").write(text.ljust(4096, b"\n"))
page = mmap.mmap(os.open(path, os.O_RDWR), 4096)
def until(name):
    while not os.path.exists(name):
        time.sleep(0.01)
if os.fork():
    until("mapped")
    os._exit(0)
os.setsid()
page[4095] = 10  # it is dirty from here on
open("mapped", "w").close()
until("go")
evil = b"[core]\n\tpager = evil\n"
page[len(text) : len(text) + len(evil)] = evil
open("written", "w").close()
time.sleep(1000)
P
id=$(cs create --workspace "$WS")
cs exec "$id" -c "$ENV; git init -q mapped.d && python3 map.py mapped.d/.git/config" >/dev/null 2>&1
holds "a harmless config stays" test -e mapped.d/.git/config
cs exec "$id" -c 'touch go; while [ ! -e written ]; do sleep 0.02; done' >/dev/null 2>&1
holds "one that was changed through a mapping does not" test ! -e mapped.d/.git/config
cs destroy "$id"

# ---- people are told where it is ----
mkdir -p "$WS/told"
told=$(cs run --workspace "$WS" -c 'echo x >told/.envrc' 2>&1 >/dev/null)
place=$(sed -n "s/.*told\/.envrc' was quarantined: it is now //p" <<<"$told")
is "the message names the place" "$(cat "$place" 2>&1)" x
told=$(cs run -t --workspace "$WS" -c 'echo x >told/.envrc' </dev/null 2>&1)
like "with a terminal too" "$told" "*told/.envrc' was quarantined: it is now *"
id=$(cs create --workspace "$WS")
told=$(cs exec "$id" -t -c 'echo x >told/.envrc; exit 3' </dev/null 2>&1)
is "the status is the command's own" "$?" 3
like "and in a sandbox that stays" "$told" "*told/.envrc' was quarantined: it is now *"
told=$(cs shell "$id" <<<'echo x >told/.envrc' 2>&1)
like "after a shell" "$told" "*told/.envrc' was quarantined: it is now *"
cs destroy "$id"
