#!/bin/bash
# Why a command in a jail failed: the grant it may lack is named, whether the host has the path or not.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
export CAISSON_BACKEND=jail
w=$T/ws
cd "$w" || exit 1

if ! cs run -- true 2>"$T/why"; then
    if [ "${CSN_MUST_WORK:-0}" = 1 ]; then
        fail "a jail" "$(cat "$T/why")"
    else
        skip "denials of a jail" "no jail on this host: $(head -n 1 "$T/why")"
    fi
    exit 0
fi

# Of the host's, granted to nobody: $T itself is not, only the workspace in it.
o=$T/outside
mkdir -p "$o/data" "$o/kit/bin" "$o/.ssh"
echo content >"$o/data/file"
echo content >"$o/data/it's"
echo key >"$o/.ssh/id_rsa"
printf '#!/bin/sh\necho tool\n' >"$o/kit/bin/csn-tool"
printf '#!%s\n' "$o/kit/bin/csn-tool" >"$w/script"
chmod +x "$o/kit/bin/csn-tool" "$w/script"
ln -s "$o/data/file" "$w/link"
PATH=$PATH:$o/kit/bin

# denials ARGS...: those of a run as JSON; hints: only what would allow it
denials()
{
    cs run --json "$@" 2>&1 | python3 -c 'import json,sys
print(json.dumps(json.load(sys.stdin)["denials"]))'
}
hints() { denials "$@" | python3 -c 'import json,sys
print("; ".join(d["hint"] or "-" for d in json.load(sys.stdin)))'; }

# files
status "a file outside the grants" 1 cs run -- cat "$o/data/file"
is "the command's own output, then one line" "$err" "cat: $o/data/file: No such file or directory
caisson: run: denied read '$o/data/file'; to allow it, if the host has it: --read $o/data/file"
is "nothing of it is on stdout" "$out" ""
json "as data" "$(denials -- cat "$o/data/file")" "v == [{'op': 'read', 'target': '$o/data/file',
    'resolved': '$o/data/file', 'rule': 'outside the sandbox', 'source': None, 'hint': '--read $o/data/file'}]"
is "with that grant it works" "$(cs run --read "$o/data/file" -- cat "$o/data/file")" content
is "a name with an extension is a file in a directory" "$(hints -- cat "$o/data/a.csv")" "--read $o/data"
is "in a shell string, at its end" "$(hints -c "cd /tmp; cat $o/data/file")" "--read $o/data/file"
is "merged" "$(hints --merge -- cat "$o/data/file")" "--read $o/data/file"
is "through a link of the workspace" "$(hints -- cat link)" "--read $o/data/file"
status "a name with a quote" 1 cs run -- cat "$o/data/it's"
json "what holds a key is not offered" "$(denials -- cat "$o/.ssh/id_rsa")" \
    'v[0]["op"] == "read" and v[0]["hint"].startswith("no grant is offered: ")'
status "nor is it offered in words" 1 cs run -- cat "$o/.ssh/id_rsa"
like "that is said without the words for an option" "$err" "*denied read *; no grant is offered: *"
holds "an option is none of it" ! grep -q "to allow it" <<<"$err"
is "several, in their order" "$(hints -c "cat $o/data/file; cat $o/.ssh/id_rsa; false" |
    sed 's/: it may.*//')" "--read $o/data/file; no grant is offered"

# writes
mkdir "$o/ro" && echo x >"$o/ro/f"
is "a directory that is read-only" "$(hints --read "$o/ro" -c "echo y >$o/ro/f")" "--write $o/ro"
json "names the grant" "$(denials --read "$o/ro" -- touch "$o/ro/new")" \
    'v[0]["op"] == "write" and v[0]["rule"] == "read-only" and v[0]["source"] == "config.read[0]"'
status "and with the other it works" 0 cs run --write "$o/ro" -- touch "$o/ro/new"
is "one that is also given for reading stays read-only" \
    "$(hints --read "$o/ro" --write "$o/ro" -- touch "$o/ro/other")" "leave out --read $o/ro"
is "a directory that is not there" "$(hints -- mkdir "$o/data/new")" "--write $o/data"
is "several levels of it" "$(hints -- mkdir "$o/data/new/deeper")" "--write $o/data/new"
is "written to by a shell" "$(hints -c "echo y >$o/data/new")" "--write $o/data"
is "one that is copied into" "$(hints -- cp script "$o/data/")" "--write $o/data"
is "what the host does not have gets the same answer" "$(hints -c "cd $o/data/none")" "--read $o/data/none"
if [ "$(id -u)" = 0 ]; then # whose home is not below a directory that is private inside
    json "a home is not, and is never offered as a whole" "$(denials -- mkdir -p /root/csn/new)" 'len(v) == 1 and
        v[0]["op"] == "write" and v[0]["target"] == "/root" and v[0]["hint"].startswith("no grant is offered: ")'
fi
d=$(denials -- touch /usr/csn-denied)
if [ -w /usr ]; then
    json "the system is never offered" "$d" 'len(v) == 1 and v[0]["op"] == "write" and
        v[0]["hint"].startswith("no grant is offered: ")'
else
    json "what this user could not do outside is no denial" "$d" 'v == []'
fi

# by name
echo s >"$w/secret"
json "a denied file names its rule" "$(denials --deny secret -- cat secret)" 'len(v) == 1 and
    v[0]["rule"] == "deny secret" and v[0]["source"] == "config.deny[0]" and
    v[0]["hint"] == "leave out --deny secret"'

id=$(cs create --deny secret)
like "why says which denial to leave out" "$(cs why "$id" read secret)" "*to allow *leave out --deny 'secret'*"
status "a file call fails" 1 cs read "$id" secret
like "with the same hint" "$err" "*hint: leave out --deny 'secret'*"
holds "files of /proc are not offered" ! grep -q -- --read <<<"$(cs why "$id" read /proc/1/status; cs read "$id" /proc/1/status 2>&1)"
cs destroy "$id"
json "or that directory's" "$(mkdir d && echo s >d/f; denials --deny ./d -- cat d/f)" 'len(v) == 1 and
    v[0]["rule"] == "deny ./d"'

# tools
status "a tool that was not granted" 127 cs run -- csn-tool
like "says that its directory is needed" "$err" "*denied exec 'csn-tool'; to allow it, if the host has it: --read DIRECTORY"
is "in a shell string" "$(hints -c 'csn-tool || exit 3')" "--read DIRECTORY"
is "by its path, its tree" "$(hints -- "$o/kit/bin/csn-tool")" "--read $o/kit"
is "with that grant it works" "$(cs run --read "$o/kit" -- csn-tool)" tool
is "what a script needs" "$(hints -- ./script)" "--read $o/kit"
is "a tool that the host does not have gets the same answer" "$(hints -- csn-no-such-tool)" "--read DIRECTORY"
is "where the sandbox shows all of PATH there is no other place" "$(PATH=/usr/bin:/bin hints -- csn-no-such-tool)" ""

# network, system calls, limits
if command -v curl >/dev/null; then
    json "the network" "$(denials -- curl -sS http://example.com)" 'len(v) == 1 and
        v[0]["op"] == "net" and v[0]["target"].startswith("example.com") and
        v[0]["rule"] == "network none"'
else
    skip "the network" "no curl"
fi
json "no service of its own is not the network's" "$(denials -c 'exec 3<>/dev/tcp/127.0.0.1/9')" \
    'v == []'
if unshare -r true 2>/dev/null; then
    json "a refused system call" "$(denials -- unshare -r true)" \
        '[(d["op"], d["target"]) for d in v] == [("syscall", "unshare")]'
else
    skip "a refused system call" "unshare does not work outside either"
fi
is "private space that is full" "$(hints --disk 4M -- dd if=/dev/zero of=/tmp/x bs=1M count=8)" \
    "--disk 8M"

# nothing to say
is "an ordinary missing file" "$(hints -- cat csn-no-such-file)" ""
is "an ordinary missing file of the system" "$(hints -- cat /usr/lib/csn-no-such-file)" ""
is "an ordinary missing file of the private /tmp" "$(hints -- cat /tmp/csn-no-such-file)" ""
is "what the keeper hides of itself" "$(hints -- cat /proc/1/environ)" ""
is "a magic link is not followed" "$(hints -c "echo 'cat: /proc/self/root$o/data/file: No such \
file or directory' >&2; false")" ""
mkdir "$T/mine" && echo p >"$T/mine/private" && chmod 600 "$T/mine/private"
if [ "$(id -u)" = 0 ]; then
    chown 1000:1000 "$T/mine" # its commands are that user's, the file is root's
else
    chmod 000 "$T/mine/private"
fi
status "permissions" 1 cs run --workspace "$T/mine" -- cat private
is "are the files' own" "$err" "cat: private: Permission denied"
status "success" 0 cs run -c "cat $o/data/file; true"
is "has only what the command says" "$err" "cat: $o/data/file: No such file or directory"
json "and no denial" "$(denials -c "cat $o/data/file; true")" 'v == []'

# a sandbox that stays, and its sessions
id=$(new)
status "exec" 1 cs exec "$id" -- cat "$o/data/file"
like "says it as well" "$err" "*caisson: exec: denied read '$o/data/file'; to allow it, if the host has it: --read $o/data/file"
status "in a session" 1 cs exec "$id" --session s -c "cat $o/data/file"
like "it does too" "$err$out" "*; to allow it, if the host has it: --read $o/data/file"

# ---- what the end of a sandbox moves to quarantine ----
planted() # ID: a process that makes a protected file after its command has ended
{
    cs exec "$1" -c '(while sleep 0.05; do mkdir -p bg; echo evil >bg/.envrc; done) >/dev/null 2>&1 &' >/dev/null
    eventually test -e "$w/bg/.envrc"
}
id=$(cs create)
planted "$id"
status "destroy of a sandbox with a planted file" 0 cs destroy "$id"
like "says where it is now" "$err" "*bg/.envrc' was quarantined: it is now $XDG_STATE_HOME/*"
is "with the reason and the option, and nothing else" "$(wc -l <<<"$err") $out" "3 "
holds "it is not there any more" test ! -e "$w/bg/.envrc"
id=$(cs create)
planted "$id"
status "the same as JSON" 0 cs destroy --json "$id"
json "names the file, its place and the option" "$out" \
    'len(v["denials"]) == 1 and v["denials"][0]["target"].endswith("/bg/.envrc") and "/aside/" in v["denials"][0]["resolved"] and v["denials"][0]["hint"].startswith("--write ") and len(v["destroyed"]) == 1'
id=$(cs create)
status "destroy of a sandbox without one" 0 cs destroy --json "$id"
json "has an empty list" "$out" 'v["denials"] == []'
status "run reports it as well" 0 cs run -c '(while sleep 0.05; do mkdir -p bg; echo evil >bg/.envrc; done) >/dev/null 2>&1 & until [ -e bg/.envrc ]; do sleep 0.01; done'
like "with its place" "$err" "*bg/.envrc' was quarantined: it is now *"
