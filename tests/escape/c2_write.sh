#!/bin/bash
# C2: code inside changes no host file that was not given to it, and leaves none with more rights
# than its maker has.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

# ---- planted files: everything that can be done to one ----
mkdir -p "$T/other/dir" && chmod 777 "$T/other" "$T/other/dir" "$HOME" && chmod 755 "$T"
plant() { echo original >"$1" && chmod 666 "$1"; }
unchanged() { is "$1 is as it was" "$(cat "$2" 2>&1) $(stat -c %a "$2" 2>&1)" "original 666"; }
ln -s "$T/other/file" "$WS/link" && ln -s "$T/other" "$WS/dir"
for how in content length mode owner times xattr name remove; do
    plant "$T/other/file"
    plant "$OUT/file"
    attempt "$how of a file outside" change $how "$T/other/file" -- change $how "$OUT/file"
    plant "$OUT/file"
    attempt "$how, by a link in the workspace" change $how "$WS/dir/file" -- change $how "$OUT/file"
done
unchanged "the file" "$T/other/file"
attempt "writing through a link" append "$WS/link"
attempt "writing by .. " append "$WS/../other/file"
attempt "a new file in the home" create "$HOME"
attempt "a new file in another workspace" create "$T/other"
mkdir -p "$OUT/a" "$OUT/b"
attempt "removing a directory outside" change rmdir "$T/other/dir" -- change rmdir "$OUT/a"
mkdir -p "$OUT/a"
attempt "exchanging the workspace with another" exchange "$WS" "$T/other" -- exchange "$OUT/a" "$OUT/b"
attempt "moving the workspace away" rename "$WS" "$T/moved" -- rename "$OUT/a" "$OUT/c"

# The names above a workspace are scratch inside: moving them must move nothing here.
plant "$T/beside"
inside_sh "mv $T /tmp/moved; mkdir -p $T/other; echo changed >$T/other/file; echo changed >$T/beside; echo >$T/new" >/dev/null
unchanged "a file beside the workspace" "$T/beside"
unchanged "a file of another" "$T/other/file"
holds "nothing new is beside it" test ! -e "$T/new"
holds "the workspace is where it was" test -x "$WS/probe"

# ---- the system ----
for d in / /usr /usr/bin /usr/lib /usr/local/bin /etc /bin /lib /opt /var /var/lib /root /run /boot /dev /home /srv; do
    attempt "a new file in $d" create $d
done
for f in /etc/passwd /etc/group /etc/hosts /etc/ld.so.cache /usr/bin/env /bin/sh /etc/resolv.conf; do
    attempt "$f" append $f
done
MAY_FAIL=yes
for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/kernel/modprobe /proc/sys/vm/drop_caches \
    /proc/sys/fs/binfmt_misc/register /proc/sys/kernel/ns_last_pid /proc/sys/user/max_user_namespaces \
    /proc/sys/net/ipv4/ip_forward /proc/sys/vm/overcommit_memory /proc/sys/kernel/randomize_va_space \
    /proc/sysrq-trigger /proc/mtrr /proc/irq/default_smp_affinity /proc/bus/pci/00/00.0 /proc/timer_list \
    /proc/scsi/scsi /proc/acpi/wakeup /proc/self/../sys/kernel/core_pattern; do
    attempt "$f" append $f
done
for d in /proc/sys/fs/binfmt_misc /sys/fs/cgroup /sys/kernel/config /sys/kernel/debug /dev/hugepages; do
    attempt "a new file in $d" create $d
done

MAY_FAIL=

# ---- the keeper, whose program is the caller's ----
sleep 1000 &
host=$!
attempt "the program of pid 1" write-exe 1 -- write-exe $$
attempt "the program of pid 1, held open" hold-exe 1 -- hold-exe $host
attempt "the memory of pid 1" vm-write 1 -- vm-write $host
kill $host
wait $host 2>/dev/null
cp "$PROBE" "$OUT/mine" # an ordinary user may write its own program, until it runs
[ "$ROOT" = yes ] || attempt "the program of pid 1, by a user" write-exe 1 -- append "$OUT/mine"

# ---- what stays in the workspace ----
ways="chmod old-chmod fchmod fchmodat2 sgid high-bits open creat openat2 mknod mknodat tmpfile i386"
if [ "$ROOT" = yes ]; then
    # On disk the files are root's, whoever makes them.
    for how in $ways; do
        cp "$PROBE" "$WS/set-id" && cp "$PROBE" "$OUT/set-id"
        attempt "a set-id file of root: by $how" suid "$how" set-id
        chmod 755 "$WS/set-id" 2>/dev/null
        rm -f "$WS/set-id" "$OUT/set-id"
    done
    inside_sh 'cp /bin/sh s; chmod u+s s; chmod g+s s; install -m 4755 /bin/sh t; mkdir -m 2777 d; cp -a /usr/bin/su u;
        perl -e "chmod 06755, \"s\""; python3 -c "import os; os.chmod(\"s\", 0o6755)"; tar -C /usr/bin -cf - su | tar -xpf -' >/dev/null
    is "tools make none either" "$(find "$WS" -perm /6000 ! -type d)" ""
    id=$(new) || fail "a sandbox for file calls"
    cp /bin/sh "$WS/plain"
    cs write --mode 4755 "$id" made </dev/null >/dev/null 2>&1
    cs write --mode 06755 "$id" plain </dev/null >/dev/null 2>&1
    tar -C /usr/bin -cf "$T/su.tar" su 2>/dev/null && cs import "$id" "$T/su.tar" in >/dev/null 2>&1
    is "nor do file calls" "$(find "$WS" -perm /6000 ! -type d)" ""
    is "files made inside are the workspace owner's" "$(inside_sh 'touch own' && stat -c %u "$WS/own")" "$(stat -c %u "$WS")"
fi
cp "$PROBE" "$WS/capable" && cp "$PROBE" "$OUT/capable"
attempt "capabilities of a file" file-capability capable
attempt "trusted attributes of a file" trusted-xattr capable
attempt "a device node" read-mknod

# ---- --read is not --write, and --deny is neither ----
plant "$T/other/file"
mkdir -p "$WS/no" && plant "$WS/no/file"
IN+=(--read "$T/other" --deny no)
is "control: what was given is read" "$(inside_sh "cat $T/other/file")" original
for how in content length mode name remove; do
    plant "$OUT/file"
    attempt "$how of a file that may be read" change $how "$T/other/file" -- change $how "$OUT/file"
    plant "$OUT/file"
    attempt "$how of a file that is denied" change $how "$WS/no/file" -- change $how "$OUT/file"
done
attempt "reading a file that is denied" read "$WS/no/file"
attempt "reading it by another name" read-hardlink "$WS/no/file"
attempt "moving what is denied" rename "$WS/no" "$WS/yes" -- rename "$OUT/b" "$OUT/d"
attempt "a new file in what may be read" create "$T/other"
unchanged "what may be read" "$T/other/file"
unchanged "what is denied" "$WS/no/file"

# ---- what every jail has can be denied too ----
IN+=(--deny /dev/zero --deny /proc/sys --deny /etc/ssl)
is "denied: /dev/zero" "$(inside_sh "head -c 1 /dev/zero" 2>&1 | grep -c 'Permission denied')" 1
for p in /proc/sys /etc/ssl; do
    is "denied: $p" "$(inside_sh "ls $p" 2>&1 | grep -c 'Permission denied')" 1
done
# Also what holds places of its own: they go with it, and home is elsewhere.
IN+=(--deny /var --deny /home)
for p in /var/tmp /home; do
    is "denied: $p" "$(inside_sh "ls $p >/dev/null 2>&1 || echo no")" no
done
is "home is elsewhere" "$(inside_sh 'echo x >~/x && cat ~/x')" x

# ---- a denied path: by every name it has inside, and it stays where it is ----
mkdir -p "$WS/conf/deep"
echo secret >"$WS/conf/deep/key"
ln -s "$WS" "$T/lane"
unread() { ! "$CAISSON" run --workspace "$WS" "${@:2}" -c "cat $1" 2>/dev/null | grep -q secret; }
holds "a denied path that was given by a link" unread conf/deep/key --deny "$T/lane/conf/deep"
holds "a denied path in a second share" unread /second/deep/key --workspace "$WS/conf:/second" --deny conf/deep/key
"$CAISSON" run --workspace "$WS" --deny conf/deep/key -c 'mv conf/deep conf/other; mv conf other' >/dev/null 2>&1
holds "what is above a denied path cannot be moved" test -e "$WS/conf/deep/key"

# ---- what later sandboxes may do is not for this one to say ----
# own NAME SETTING OPTION...: in $T/own, with the configuration where SETTING says, new and old
own()
{
    local name=$1 setting=$2 dir=$T/own/.config/caisson
    shift 2
    for old in "" '{"backend": "jail"}'; do
        rm -rf "$T/own" && mkdir -p "$T/own/sub"
        [ -z "$old" ] || { mkdir -p "$dir" && echo "$old" >"$dir/config.json"; }
        env -u XDG_CONFIG_HOME HOME="$T/own" "$setting" "$CAISSON" run "$@" \
            -c "cd $T/own; rm -rf .config; mv .config c; mkdir -p $dir; echo '{\"backend\": \"local\"}' >$dir/config.json" >/dev/null 2>&1
        is "$name: the configuration $([ -z "$old" ] && echo "cannot be made" || echo "stays as it is")" "$(cat "$dir/config.json" 2>/dev/null)" "$old"
    done
}
own "the home as workspace" A=b --workspace "$T/own"
own "the home as home" A=b --workspace "$WS" --home "$T/own"
own "a grant" A=b --workspace "$WS" --write "$T/own"
own "XDG_CONFIG_HOME" XDG_CONFIG_HOME="$T/own/.config" --workspace "$WS" --write "$T/own"
