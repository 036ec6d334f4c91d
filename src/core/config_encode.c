/* config_encode.c: a csn_config as the JSON that csn_config_parse reads back.
 *
 * Called by core/state.c to remember a detached sandbox. The config has passed validate() in
 * config.c. What must hold: parse(encode(c)) equals c, field by field. JSON has no words for
 * some C values: a path that is not UTF-8 is refused (EILSEQ) and not changed silently; numbers
 * beyond what JSON readers keep exact become strings with their unit; no limit is "none". Zero
 * means default and is left out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "base/utf8.h"
#include "core/config.h"
#include "policy/rules.h"

static void put_str(csn_json *j, const char *key, const char *s)
{
    if (!s)
        return;
    if (!csn_utf8_valid(s, strlen(s)) && j->err == 0)
        j->err = EILSEQ;
    csn_json_kstr(j, key, s);
}

/* An empty list is written, a list that is not there is not. */
static void put_list(csn_json *j, const char *key, const char *const *list)
{
    if (!list)
        return;
    csn_json_key(j, key);
    csn_json_array(j);
    for (; *list; list++) {
        if (!csn_utf8_valid(*list, strlen(*list)) && j->err == 0)
            j->err = EILSEQ;
        csn_json_str(j, *list);
    }
    csn_json_array_end(j);
}

/* 2^53 is as far as every JSON reader counts exactly. */
static void put_amount(csn_json *j, const char *key, uint64_t v, const char *unit)
{
    char text[32];

    if (v == 0)
        return;
    if (v == CSN_NO_LIMIT) {
        csn_json_kstr(j, key, "none");
    } else if (v <= (1ull << 53)) {
        csn_json_kuint(j, key, v);
    } else {
        snprintf(text, sizeof(text), "%" PRIu64 "%s", v, unit);
        csn_json_kstr(j, key, text);
    }
}

/* As text: thousandths have no exact double. */
static void put_cpus(csn_json *j, uint64_t milli)
{
    char text[40];

    if (milli == 0)
        return;
    snprintf(text, sizeof(text), "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));
    csn_json_kstr(j, "cpus", milli == CSN_NO_LIMIT ? "none" : text);
}

static void put_rules(csn_json *j, const csn_config *c)
{
    csn_json_key(j, "rules");
    csn_json_array(j);
    for (size_t i = 0; i < c->rule_count; i++) {
        csn_json_object(j);
        csn_json_key(j, "op");
        csn_json_array(j);
        for (uint32_t op = CSN_OP_READ; op <= CSN_OP_NET; op <<= 1)
            if ((c->rules[i].ops & op) != 0)
                csn_json_str(j, csn_op_name(op));
        csn_json_array_end(j);
        csn_json_kstr(j, "effect", c->rules[i].allow ? "allow" : "deny");
        put_str(j, "path", c->rules[i].path);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

static void put_groups(csn_json *j, const csn_config *c)
{
    csn_json_key(j, "limits");
    csn_json_object(j);
    put_amount(j, "memory", c->memory_max, "");
    put_amount(j, "pids", c->pids_max, "");
    put_cpus(j, c->cpu_milli);
    put_amount(j, "disk", c->disk_max, "");
    put_amount(j, "file_size", c->file_max, "");
    csn_json_object_end(j);
    csn_json_key(j, "network");
    csn_json_object(j);
    put_str(j, "mode", c->network);
    put_list(j, "allow", c->net_allow);
    put_list(j, "deny", c->net_deny);
    put_list(j, "packages", c->packages);
    put_list(j, "publish", c->publish);
    put_list(j, "host_ports", c->host_ports);
    csn_json_object_end(j);
}

int csn_config_encode(const csn_config *c, csn_buf *out)
{
    csn_json j;

    csn_json_begin(&j, out);
    csn_json_object(&j);
    put_str(&j, "backend", c->backend);
    put_str(&j, "name", c->name);
    put_str(&j, "workspace", c->workspace);
    put_str(&j, "workdir", c->workdir);
    put_str(&j, "home", c->home);
    put_str(&j, "image", c->image);
    put_str(&j, "audit", c->audit);
    put_list(&j, "read", c->read);
    put_list(&j, "write", c->write);
    put_list(&j, "deny", c->deny);
    put_list(&j, "commands", c->commands);
    put_list(&j, "env", c->env);
    put_list(&j, "workspaces", c->workspaces);
    put_rules(&j, c);
    put_amount(&j, "timeout", c->timeout_ms, "ms");
    put_amount(&j, "output_max", c->output_max, "");
    put_amount(&j, "lifetime", c->lifetime_ms, "ms");
    put_groups(&j, c);
    csn_json_kbool(&j, "detached", (c->flags & CSN_OPEN_DETACHED) != 0);
    csn_json_kbool(&j, "nofollow", (c->flags & CSN_OPEN_NOFOLLOW) != 0);
    csn_json_kbool(&j, "allow_weaker", (c->flags & CSN_OPEN_ALLOW_WEAKER) != 0);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}
