/* limits.c: decides how each limit of a jail is enforced, and whether one ended a command.
 *
 * By default processes are limited by an rlimit that counts per user namespace, private disk
 * space by the size of the tmpfs, and memory by a ceiling that the keeper samples, as it does
 * with the layers of a copy-on-write workspace. --memory,
 * --pids and --cpus use a control group if the caller may create one. Otherwise the keeper
 * samples memory, each process has an rlimit, and
 * --cpus is refused.
 *
 * Invariants: a requested limit is enforced, and the layer `limits` names the mechanism; a
 * group that was created here is removed, also after a failure. */
#include "backend/jail/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/strv.h"
#include "runtime/cow.h"
#include "runtime/link.h"

#define INODES_PER   16384u /* bytes of disk for each file */
#define INODES_LEAST 1024u
#define NOFILE       65536u
#define MEMORY_LEAST (4ull << 20) /* fits the keeper and one command in a control group */
/* The keeper reports why it kills a process; a failed allocation reports nothing. The rlimit of
 * each process is therefore above the limit of the sandbox. */
#define DATA_SLACK (64ull << 20)
#define PIDS_SLACK 64u /* likewise: only the control group counts refused forks */
#define PAGE       4096u
/* The kernel assigns process numbers below this one only once. */
#define PIDS_RESERVED 300u

#define NO_TMPFS_LIMIT (1ull << 48)

#define BIT(kind) (1u << (kind))

static csn_jail_limits *limits_of(const csn_runtime *rt)
{
    return &rt->jail->limits;
}

static bool is_set(uint64_t limit)
{
    return limit != 0 && limit != CSN_NO_LIMIT;
}

static unsigned requested(const csn_config *c)
{
    return (is_set(c->memory_max) ? BIT(CSN_CGROUP_MEMORY) : 0) |
           (is_set(c->pids_max) ? BIT(CSN_CGROUP_PIDS) : 0) |
           (is_set(c->cpu_milli) ? BIT(CSN_CGROUP_CPU) : 0);
}

/* ---- the limits in force ---- */

static uint64_t limit_of(uint64_t configured, uint64_t by_default)
{
    return configured == 0 ? by_default : configured == CSN_NO_LIMIT ? 0 : configured;
}

/* The number in the file, or UINT64_MAX. */
static uint64_t read_limit(const char *path)
{
    char text[32];
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (n <= 0 || text[0] < '0' || text[0] > '9') /* "max" */
        return UINT64_MAX;
    text[n] = '\0';
    return strtoull(text, NULL, 10);
}

/* Three quarters. A control group inside a container is the container's own: on the host the
 * root has no such file (v2), or no limit (v1). */
static uint64_t host_ceiling(void)
{
    struct sysinfo s;
    uint64_t v2 = read_limit("/sys/fs/cgroup/memory.max");
    uint64_t v1 = v2 != UINT64_MAX ? UINT64_MAX
                                   : read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    uint64_t all =
        sysinfo(&s) == 0 ? (uint64_t)s.totalram * s.mem_unit : (uint64_t)SIZE_MAX / 2;

    all = v2 < all ? v2 : all;
    all = v1 < all ? v1 : all;
    return all / 4 * 3;
}

uint64_t csn_jail_limit_memory(csn_runtime *rt)
{
    csn_jail_limits *l = limits_of(rt);

    if (rt->config->memory_max != 0 || rt->level == CSN_LEVEL_LANDLOCK_ONLY)
        return limit_of(rt->config->memory_max, 0);
    if (l->ceiling == 0)
        l->ceiling = host_ceiling();
    return l->ceiling;
}

uint64_t csn_jail_limit_pids(const csn_runtime *rt)
{
    return limit_of(rt->config->pids_max, CSN_PIDS_DEFAULT);
}

uint64_t csn_jail_limit_disk(const csn_runtime *rt)
{
    return limit_of(rt->config->disk_max, CSN_DISK_DEFAULT);
}

/* Of the layers of a copy-on-write workspace; 0: none. Only on request: an ordinary workspace
 * has no limit either, and the default is less than many builds write. */
static uint64_t limit_of_layers(const csn_runtime *rt)
{
    bool layers = rt->level == CSN_LEVEL_NAMESPACES && rt->jail->cow;

    return layers && is_set(rt->config->disk_max) ? rt->config->disk_max : 0;
}

static uint64_t files_of(uint64_t disk)
{
    return disk / INODES_PER + INODES_LEAST;
}

/* The cgroup version that enforces this limit, or 0. */
static int version_of(const csn_jail_limits *l, int kind)
{
    for (uint32_t i = 0; i < l->group.count; i++)
        if (l->group.dirs[i].kinds & BIT(kind))
            return l->group.dirs[i].version;
    return 0;
}

/* ---- planning ---- */

static csn_status refuse_cpu(csn_cgroup_why why, csn_error **err)
{
    csn_status st = csn_fail(err, CSN_UNSUPPORTED, "limits.cpus: needs a control group: %s",
                             csn_cgroup_why_text(why));

    return csn_error_advise(st, err,
                            "under systemd: sudo systemctl edit user@.service, "
                            "[Service] Delegate=cpu memory pids");
}

static csn_cgroup_limits group_limits(const csn_config *c, unsigned kinds)
{
    return (csn_cgroup_limits){
        .memory_max = kinds & BIT(CSN_CGROUP_MEMORY) ? c->memory_max : 0,
        .pids_max = kinds & BIT(CSN_CGROUP_PIDS) ? c->pids_max + 1 : 0, /* the keeper is one */
        .cpu_milli = kinds & BIT(CSN_CGROUP_CPU) ? c->cpu_milli : 0};
}

static csn_status group_failed(const csn_cgroup_fault *fault, int rc, csn_error **err)
{
    return csn_fail(err, CSN_UNAVAILABLE, "control group %s: %s", fault->path,
                    strerrordesc_np(-rc));
}

/* RLIMIT_NPROC does not count processes of the host's uid 0. */
static csn_status refuse_pids(csn_cgroup_why why, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_UNSUPPORTED,
                 "limits.pids: needs a control group, because commands run as root: %s",
                 csn_cgroup_why_text(why));

    return csn_error_advise(st, err, "run caisson as an ordinary user");
}

/* Finds the limits for which a control group is available. Fails if one of the others has no
 * fallback. */
static csn_status choose_kinds(const csn_jail *j, csn_jail_limits *l, unsigned kinds,
                               unsigned *ret_can, csn_error **err)
{
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];
    int rc = csn_cgroup_probe(NULL, offer);

    if (rc < 0)
        return csn_fail_errno(err, -rc, "control groups");
    *ret_can = 0;
    for (int i = 0; i < CSN_CGROUP_KINDS; i++)
        *ret_can |= offer[i].version != 0 ? kinds & BIT(i) : 0;
    if (kinds & ~*ret_can & BIT(CSN_CGROUP_CPU))
        return refuse_cpu(offer[CSN_CGROUP_CPU].why, err);
    if (j->as_root && (kinds & ~*ret_can & BIT(CSN_CGROUP_PIDS)))
        return refuse_pids(offer[CSN_CGROUP_PIDS].why, err);
    l->sampled = (kinds & ~*ret_can & BIT(CSN_CGROUP_MEMORY)) != 0;
    return CSN_OK;
}

/* Who owns a group may mount and change it from inside, unless it is the root of a namespace on
 * a hierarchy with this option. A root caller's commands own none. */
static csn_status check_nested(const csn_jail *j, csn_error **err)
{
    csn_autofree char *line = NULL;
    bool delegates = false;
    size_t cap = 0;

    if (!j->nested || j->root || j->limits.group.count == 0)
        return CSN_OK;
    FILE *f = fopen("/proc/self/mountinfo", "re");
    while (f && getline(&line, &cap, f) > 0)
        delegates = delegates || (strstr(line, " - cgroup2 ") && strstr(line, "nsdelegate"));
    if (f)
        fclose(f);
    if (delegates && version_of(&j->limits, CSN_CGROUP_MEMORY) != 1 &&
        version_of(&j->limits, CSN_CGROUP_PIDS) != 1 &&
        version_of(&j->limits, CSN_CGROUP_CPU) != 1)
        return CSN_OK;
    csn_status st =
        csn_fail(err, CSN_UNSUPPORTED,
                 "nested: commands could change the control group that limits them");
    return csn_error_advise(
        st, err, "leave out memory, pids and cpus, or mount cgroup2 with nsdelegate");
}

static int plan_groups(const csn_runtime *rt, csn_jail_limits *l, unsigned kinds,
                       csn_cgroup_fault *fault)
{
    const csn_cgroup_limits want = group_limits(rt->config, kinds);

    return csn_cgroup_plan(NULL, rt->id, &want, &l->group, fault);
}

/* Sampling would end each command at its first sample: short ones succeed, others do not. */
csn_status csn_jail_limits_check(const csn_config *c, csn_error **err)
{
    if (is_set(c->memory_max) && c->memory_max < MEMORY_LEAST)
        return csn_fail(err, CSN_INVALID, "limits.memory: a jail needs at least 4 MiB");
    return CSN_OK;
}

/* Probing is slow, so it is done only after a plan with groups for all limits has failed. */
csn_status csn_jail_limits_plan(csn_runtime *rt, csn_error **err)
{
    csn_jail_limits *l = limits_of(rt);
    csn_cgroup_fault fault = {0};
    unsigned kinds = requested(rt->config);
    csn_status st = CSN_OK;

    if (kinds == 0 || l->planned)
        return CSN_OK;
    l->planned = true;
    int rc = plan_groups(rt, l, kinds, &fault);
    if (rc == -EACCES || rc == -ENOTSUP) {
        st = choose_kinds(rt->jail, l, kinds, &kinds, err);
        rc = st < 0 ? 0 : plan_groups(rt, l, kinds, &fault);
    }
    if (st < 0 || rc < 0)
        return st < 0 ? st : group_failed(&fault, rc, err);
    return check_nested(rt->jail, err);
}

/* ---- description ---- */

static const char *means(const csn_jail_limits *l, int kind, const char *otherwise)
{
    int v = version_of(l, kind);

    return v == 2 ? "cgroup v2" : v == 1 ? "cgroup v1" : otherwise;
}

/* Reads a hard limit from /proc/PID/limits, which needs no permission. UINT64_MAX: unknown. */
static uint64_t hard_limit_of(int64_t pid, const char *name)
{
    csn_autofree char *line = NULL;
    unsigned long long soft, hard = UINT64_MAX;
    char path[40];
    size_t cap = 0;

    snprintf(path, sizeof(path), "/proc/%lld/limits", (long long)pid);
    FILE *f = fopen(path, "re");
    while (f && getline(&line, &cap, f) > 0)
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), "%llu %llu", &soft, &hard) != 2)
            hard = UINT64_MAX;
    if (f)
        fclose(f);
    return hard;
}

/* The keeper does not raise the hard limits of the process that started it. A connected handle
 * reads them from the keeper. */
static uint64_t at_most(const csn_runtime *rt, int what, const char *name, uint64_t value)
{
    struct rlimit r;
    uint64_t hard = rt->connected              ? hard_limit_of(rt->keeper_pid, name)
                    : getrlimit(what, &r) == 0 ? r.rlim_max
                                               : UINT64_MAX;

    return hard < value ? hard : value;
}

/* "N processes by ..." */
static void describe_pids(const csn_runtime *rt, char *ret, size_t size)
{
    const csn_jail *j = rt->jail;
    uint64_t pids = csn_jail_limit_pids(rt);
    uint64_t most = pids != 0 ? pids + 1 : RLIM_INFINITY;
    uint64_t processes = at_most(rt, RLIMIT_NPROC, "Max processes", most);

    if (processes == RLIM_INFINITY) {
        snprintf(ret, size, "no limit on processes");
        return;
    }
    processes -= processes > 0; /* the keeper is one of them */
    bool exempt = j->as_root && version_of(&j->limits, CSN_CGROUP_PIDS) == 0;
    if (exempt && (rt->level == CSN_LEVEL_LANDLOCK_ONLY || j->ready.pid_max_errnum != 0))
        snprintf(ret, size, "no limit on processes, because commands run as root");
    else if (exempt)
        snprintf(ret, size, "about %llu processes by the pid namespace",
                 (unsigned long long)pids);
    else
        snprintf(ret, size, "%llu processes by %s", (unsigned long long)processes,
                 processes + 1 < most ? "the caller's own rlimit"
                                      : means(&j->limits, CSN_CGROUP_PIDS, "rlimit"));
}

csn_status csn_jail_limits_describe(csn_runtime *rt, csn_error **err)
{
    const csn_config *c = rt->config;
    csn_jail *j = rt->jail;
    csn_jail_limits *l = &j->limits;
    char memory[96] = "", cpu[64] = "", file[64] = "", private[96] = "no limit on disk; ";
    char layers[96] = "";
    char size[CSN_SIZE_TEXT], processes[96];

    rt->memory_all = csn_jail_limit_memory(rt);
    if (rt->memory_all)
        snprintf(memory, sizeof(memory), "memory %s by %s; ",
                 csn_size_text(rt->memory_all, size),
                 means(l, CSN_CGROUP_MEMORY,
                       rt->level == CSN_LEVEL_LANDLOCK_ONLY ? "an rlimit for each process"
                       : is_set(c->memory_max) ? "sampling and an rlimit for each process"
                                               : "sampling"));
    if (is_set(c->cpu_milli))
        snprintf(cpu, sizeof(cpu), "cpu %llu.%03llu by %s; ",
                 (unsigned long long)(c->cpu_milli / 1000),
                 (unsigned long long)(c->cpu_milli % 1000),
                 means(l, CSN_CGROUP_CPU, "nothing"));
    if (is_set(rt->file_max))
        snprintf(file, sizeof(file), "a file %s by rlimit; ",
                 csn_size_text(rt->file_max, size));
    uint64_t disk = csn_jail_limit_disk(rt);
    if (rt->level == CSN_LEVEL_NAMESPACES && disk != 0)
        snprintf(private, sizeof(private), "private disk %s and %llu files by tmpfs; ",
                 csn_size_text(disk, size), (unsigned long long)files_of(disk));
    rt->disk_all = limit_of_layers(rt);
    if (rt->disk_all != 0)
        snprintf(layers, sizeof(layers),
                 "changes of the workspace %s and %llu files by sampling; ",
                 csn_size_text(disk, size), (unsigned long long)files_of(disk));
    describe_pids(rt, processes, sizeof(processes));
    l->text = csn_arena_printf(
        j->arena, "%s%s%s; %s%s%s%llu descriptors by rlimit", memory, cpu, processes, private,
        layers, file, (unsigned long long)at_most(rt, RLIMIT_NOFILE, "Max open files", NOFILE));
    return l->text ? CSN_OK : csn_fail(err, CSN_NOMEM, "limits of the jail");
}

/* ---- control groups ---- */

static csn_status make_groups(const csn_runtime *rt, csn_jail_limits *l, csn_error **err)
{
    csn_cgroup_fault fault = {0};
    unsigned kinds = 0;

    for (uint32_t i = 0; i < l->group.count; i++)
        kinds |= l->group.dirs[i].kinds;
    const csn_cgroup_limits want = group_limits(rt->config, kinds);
    int rc = csn_cgroup_create(NULL, &l->group, &want, &fault);
    l->made = rc == 0;
    return rc < 0 ? group_failed(&fault, rc, err) : CSN_OK;
}

/* True if the keeper has sent FAILED, its only message before it is confined. */
static bool has_failed(const csn_runtime *rt)
{
    struct pollfd pf = {.fd = rt->keeper_fd, .events = POLLIN};

    return poll(&pf, 1, 0) == 1;
}

/* cgroup.procs is opened here, because the keeper's user may not have permission. */
csn_status csn_jail_limits_admit(csn_runtime *rt, csn_error **err)
{
    csn_jail_limits *l = limits_of(rt);
    int procs_fds[CSN_CGROUP_KINDS];

    if (l->group.count == 0)
        return CSN_OK;
    csn_status st = make_groups(rt, l, err);
    if (st < 0)
        return st;
    int rc = csn_cgroup_procs_fds(&l->group, procs_fds);
    if (rc == -ENOENT && has_failed(rt))
        return CSN_OK; /* it has failed and its groups were removed; FAILED is read later */
    if (rc < 0)
        return csn_fail_errno(err, -rc, "control group of '%s'", rt->id);
    rc = csn_proto_send(rt->keeper_fd, CSN_MSG_CGROUPS, NULL, procs_fds, l->group.count,
                        csn_deadline_in(CSN_KEEPER_ANSWER_MS));
    for (uint32_t i = 0; i < l->group.count; i++)
        close(procs_fds[i]);
    if (rc < 0 && rc != -EPIPE) /* the keeper has ended; FAILED is read later */
        return csn_fail_errno(err, -rc, "control group of '%s'", rt->id);
    return CSN_OK;
}

void csn_jail_limits_fill(csn_runtime *rt, csn_confinement *w)
{
    const csn_config *c = rt->config;
    const csn_jail_limits *l = limits_of(rt);
    uint64_t disk = csn_jail_limit_disk(rt);

    w->pids_max = csn_jail_limit_pids(rt);
    if (w->pids_max != 0)
        w->pids_max += version_of(l, CSN_CGROUP_PIDS) ? PIDS_SLACK : 1;
    if (rt->jail->as_root && w->pids_max != 0)
        w->pid_max = (uint32_t)(w->pids_max < INT32_MAX / 2 ? w->pids_max + PIDS_RESERVED : 0);
    w->nofile_max = NOFILE;
    /* Slightly smaller than the file limit, so that a full disk is ENOSPC, not EFBIG. */
    w->mounts.size = disk > 2 * PAGE ? disk - PAGE : disk;
    w->mounts.inodes = files_of(disk);
    if (disk == 0) /* 0 would be the kernel's default */
        w->mounts.size = w->mounts.inodes = NO_TMPFS_LIMIT;
    if (limit_of_layers(rt) != 0) {
        const csn_usage *start = &rt->jail->cow->start;
        w->disk_max = disk + start->bytes;
        w->disk_files = files_of(disk) + start->files;
        w->disk_dir = rt->jail->cow_copy ? rt->jail->shares->v[0].inside : NULL;
    }
    if (rt->level == CSN_LEVEL_LANDLOCK_ONLY) {
        csn_landlock_only_limits(rt, w);
    } else if (l->sampled) {
        uint64_t slack = c->memory_max / 2 > DATA_SLACK ? c->memory_max / 2 : DATA_SLACK;
        w->memory_max = c->memory_max;
        w->data_max = c->memory_max < UINT64_MAX - slack ? c->memory_max + slack : UINT64_MAX;
    } else if (c->memory_max == 0) {
        w->memory_max = csn_jail_limit_memory(rt);
    }
}

csn_status csn_jail_limits_find(csn_runtime *rt, csn_error **err)
{
    if (requested(rt->config) != 0) {
        int rc = csn_cgroup_find_by_pid((pid_t)rt->keeper_pid, rt->id, requested(rt->config),
                                        &limits_of(rt)->group);
        if (rc < 0)
            return csn_fail_errno(err, -rc, "control group of '%s'", rt->id);
    }
    return csn_jail_limits_describe(rt, err);
}

/* The sweeper removes the groups; if it was killed, they are removed here. After a failed open
 * this waits for it, because the caller may open again with the same id. */
void csn_jail_limits_ended(csn_runtime *rt)
{
    csn_jail_limits *l = limits_of(rt);

    if (csn_jail_sweeper_finish(rt, !rt->ended) || l->group.count == 0)
        return;
    if (l->made || rt->connected) {
        (void)csn_cgroup_kill(&l->group);
        int rc = csn_cgroup_remove(&l->group);
        if (rc < 0)
            csn_log_debug("control group of '%s': %s", rt->id, strerrordesc_np(-rc));
    }
    l->group.count = 0;
}

/* ---- limits that were reached ---- */

csn_jail_limit_hits csn_jail_limits_hits(const csn_runtime *rt)
{
    csn_cgroup_events u;

    csn_cgroup_read_events(&limits_of(rt)->group, &u);
    return (csn_jail_limit_hits){
        .memory = u.memory_oom_kills, .pids = u.pids_limit_hits, .memory_peak = u.memory_peak};
}

static bool rose(uint64_t before, uint64_t now)
{
    return before != CSN_CGROUP_UNKNOWN && now != CSN_CGROUP_UNKNOWN && now > before;
}

/* The kernel's counters are per sandbox: if one rose during a failed command, the command is
 * reported as having reached the limit. A peak that rose is attributed to this command. */
void csn_jail_limits_explain(const csn_runtime *rt, const csn_jail_limit_hits *before,
                             csn_exec_end *end)
{
    const csn_jail_limit_hits now = csn_jail_limits_hits(rt);

    if (rose(before->memory_peak, now.memory_peak))
        end->peak_memory = now.memory_peak;
    if (end->how != CSN_END_EXITED || (end->exit_code == 0 && end->signal == 0))
        return;
    if (rose(before->memory, now.memory)) {
        csn_runtime_end_limit(end, CSN_END_MEMORY, "memory", rt->config->memory_max,
                              now.memory_peak == CSN_CGROUP_UNKNOWN ? 0 : now.memory_peak);
    } else if (rose(before->pids, now.pids)) {
        end->how = CSN_END_PIDS;
        snprintf(end->message, sizeof(end->message), "process limit %llu reached, %llu refused",
                 (unsigned long long)rt->config->pids_max,
                 (unsigned long long)(now.pids - before->pids));
    }
}
