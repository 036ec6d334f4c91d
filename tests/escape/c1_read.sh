#!/bin/bash
# C1: code inside reads no host file that was not given to it.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

# ---- files that lie around, readable by everybody ----
mkdir -p "$T/other" && chmod 755 "$T" "$T/other" "$HOME"
echo secret >"$HOME/key" && echo secret >"$T/other/source" && chmod 644 "$HOME/key" "$T/other/source"
beside=$(mktemp /tmp/csn-secret.XXXXXX) && echo secret >"$beside" && chmod 644 "$beside"
shm=$(mktemp /dev/shm/csn-secret.XXXXXX) && echo secret >"$shm"
vartmp=$(mktemp /var/tmp/csn-secret.XXXXXX) && echo secret >"$vartmp"
attempt "a file in the caller's home" read "$HOME/key"
attempt "a file of another workspace" read "$T/other/source"
attempt "the directory above the workspace" read "$T/home"
attempt "a file in /tmp" read "$beside"
attempt "a file in /var/tmp" read "$vartmp"
attempt "a file in /dev/shm" read "$shm"
attempt "that it exists" stat "$HOME/key"
for f in /etc/shadow /etc/machine-id /etc/hostname /etc/fstab /etc/ssh /etc/sudoers /var/log \
    /root /boot /sys /sys/kernel /srv /mnt /etc/cron.d; do
    attempt "$f" read $f
done
is "/etc/passwd has the sandbox's users and no other" "$(inside_sh "cut -d: -f1 /etc/passwd | tr '\n' ' '")" "root sandbox nobody "
is "nothing of the host is in /run" "$(inside_sh "ls /run")" ""
is "nobody else lives here" "$(inside_sh "ls /home")" sandbox
is "/etc/hosts has only loopback" "$(inside_sh "cut -d' ' -f1 /etc/hosts | tr '\n' ' '")" "127.0.0.1 ::1 "

# ---- where nobody named a workspace: not the system ----
for d in / /etc /etc/ssl /usr /usr/local /home /var /boot /opt; do
    (cd "$d") 2>/dev/null || { skip "no workspace named, in $d" "there is none, or not for this user" && continue; }
    status "no workspace named, in $d: refused" 125 env -C "$d" "$CAISSON" run -- true
    like "it says which and what to do" "$err" "*current directory '$(realpath "$d")': *--workspace DIR*"
done
is "in a directory of one's own" "$(cd "$OUT" && cs run -- pwd)" "$OUT"
is "in the home" "$(cd "$HOME" && cs run -- cat key)" secret
is "by name everything is shared" "$(cd /usr && cs run --workspace .:/here:ro -- ls -d /here/bin)" /here/bin

# ---- ways round the name ----
for f in "$HOME/key" "$beside"; do
    attempt "${f##*/}: by O_PATH" read-opath "$f"
    attempt "${f##*/}: by O_PATH and fchdir" read-fchdir "${f%/*}" "${f##*/}"
    attempt "${f##*/}: by .. from wherever" read-climb "$f"
    attempt "${f##*/}: by a chroot and out of it" read-chroot "$f"
    attempt "${f##*/}: by the mount namespace of pid 1" read-setns 1 "$f" -- read-setns self "$f"
    attempt "${f##*/}: by the root of any process" read-procs "$f"
    attempt "${f##*/}: by a link made inside" read-symlink "$f"
    attempt "${f##*/}: by a hard link made inside" read-hardlink "$f"
done
ln -s "$HOME/key" "$WS/link" && ln -s .. "$WS/up" && ln -s "$T/other" "$WS/dir"
cp -P "$WS/link" "$WS/up" "$WS/dir" "$OUT"
attempt "a link in the workspace" read "$WS/link"
attempt "a link to the directory above" read "$WS/up/home/key"
attempt "a link to another directory" read "$WS/dir/source"
attempt "a link through /proc/self/cwd" read /proc/self/cwd/up/other/source

# ---- by number: what the file system calls its files ----
handle=$(outside make-handle "$HOME/key")
attempt "a handle of a file, in a directory that was given" read-handle "$WS" "$handle"
attempt "the making of handles" name-handle "$WS/probe"

# ---- processes ----
sleep 1000 &
host=$!
attempt "the environment of pid 1" open /proc/1/environ -- open /proc/$host/environ
attempt "the memory of pid 1" open-mem 1 -- open-mem $host
attempt "its memory, by process_vm_readv" vm-read 1 -- vm-read $host
attempt "its registers, by ptrace" ptrace 1 -- ptrace $host
attempt "its descriptors, by /proc" open-each /proc/1/fd -- open-each /proc/$host/fd
attempt "its descriptors, by pidfd_getfd" steal-fds 1 -- steal-fds $host
attempt "its mapped files" open-each /proc/1/map_files -- open-each /proc/$host/map_files
attempt "its directory" read /proc/1/cwd/ -- read /proc/$host/cwd/
attempt "its root" read /proc/1/root/ -- read /proc/$host/root/
attempt "its program" hold-exe 1 -- hold-exe $host
attempt "its stack" read /proc/1/stack -- read /proc/$host/stack
attempt "its system calls" read /proc/1/syscall -- read /proc/$host/syscall
attempt "a process of the host, by number" signal $host
attempt "its memory" vm-read $host
attempt "its environment" open /proc/$host/environ
attempt "its root directory" read /proc/$host/root/
kill $host
wait $host 2>/dev/null
is "pid 1 is not the host's" "$(inside_sh 'cat /proc/1/comm')" caisson-keeper
holds "few processes are seen" test "$(inside_sh 'ls -d /proc/[0-9]* | wc -l')" -lt 8

# ---- the kernel and its devices ----
MAY_FAIL=yes
for f in /proc/kcore /proc/kmsg /proc/kallsyms /proc/keys /proc/key-users /proc/timer_list /proc/vmallocinfo \
    /proc/kpagecount /proc/kpageflags /proc/modules /proc/sched_debug /proc/acpi /proc/scsi \
    /dev/mem /dev/port /dev/kmsg /dev/sda /dev/vda /dev/nvme0n1 /dev/kvm /dev/fuse /dev/net/tun \
    /dev/loop-control /dev/vsock /dev/vhost-vsock /dev/rtc0 /dev/console /dev/tty0 /dev/snapshot /dev/uinput /dev/hwrng; do
    attempt "$f" open $f
done
MAY_FAIL=
attempt "a device node of its own" read-mknod

# ---- the file calls see what commands see ----
id=$(new) || fail "a sandbox for file calls"
for f in "$HOME/key" "$beside" link up/home/key dir/source "$WS/../home/key" /etc/shadow /proc/1/root/etc/shadow /proc/1/environ \
    /proc/1/cwd/etc/shadow /proc/self/root/etc/shadow /sys/kernel/uevent_seqnum /proc/kallsyms /dev/mem; do
    status "cat $f" 1 cs cat "$id" "$f"
    case $out in *secret* | root:*) fail "cat $f shows it" "$out" ;; esac
done
is "control: cat works" "$(cs cat "$id" "$WS/probe" | cmp - "$PROBE" && echo same)" same
rm -f "$beside" "$shm" "$vartmp"
