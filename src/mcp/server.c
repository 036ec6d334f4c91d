/* server.c: creates the state that all sessions share: threads, tool list and instructions.
 *
 * The tool list depends on the configuration alone and is written once. Facts that a model
 * needs before its first call (working directory, network) are part of the tool descriptions,
 * because models read these. */
#include "mcp/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/condvar.h"
#include "base/error.h"
#include "mcp/internal.h"

#define TEXT_MAX (256u * 1024u)

CSN_DEFINE_CLEANUP(csn_info_result, csn_info_free)

/* ---- facts about the sandbox --------------------------------------------------------- */

static bool has_word(const char *const *words, const char *word)
{
    for (; words && *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static bool has_network(const csn_config *c, const csn_info_result *info)
{
    if (c->net_allow || c->packages)
        return true;
    if (c->network)
        return strcmp(c->network, "none") != 0;
    return strcmp(info->backend, "jail") != 0;
}

static void put_words(csn_buf *to, const char *const *words, const char *suffix)
{
    for (; words && *words; words++)
        csn_buf_printf(to, " %s%s", *words, suffix);
}

static void put_facts(csn_buf *to, const csn_config *c, const csn_info_result *info)
{
    csn_buf_printf(to, "This sandbox: backend %s, isolation %s.\n", info->backend,
                   info->isolation);
    if (info->workdir)
        csn_buf_printf(to, "Working directory: %s\n", info->workdir);
    if (!has_network(c, info)) {
        csn_buf_puts(to, "Network: none but loopback inside the sandbox.");
    } else if (!c->net_allow && !c->packages) {
        csn_buf_puts(to, "Network: all.");
    } else {
        csn_buf_puts(to, "Network: only");
        put_words(to, c->net_allow, "");
        put_words(to, c->packages, "-packages");
        csn_buf_putc(to, '.');
    }
    if (has_word(info->capabilities, "diff"))
        csn_buf_puts(to, "\nThe workspace is copy-on-write: changes stay in the sandbox until "
                         "commit.");
    if (c->commands) {
        csn_buf_puts(to, "\nOnly these commands may be run:");
        put_words(to, c->commands, "");
    }
    if (!has_word(info->capabilities, "session"))
        csn_buf_puts(to, "\nThere is no lasting shell here: every command starts in the "
                         "working directory.");
}

static int put_tools(csn_buf *to, const char *facts, bool network, bool cow)
{
    csn_json j;

    csn_json_begin(&j, to);
    csn_json_array(&j);
    for (const csn_tool_schema *t = csn_wire_tools; t->name; t++) {
        bool runs = (t->hints & CSN_TOOL_OPEN_WORLD) != 0;
        if ((t->hints & CSN_TOOL_COW) && !cow)
            continue;
        csn_wire_tool(&j, t, runs ? facts : NULL,
                      network ? t->hints : t->hints & ~CSN_TOOL_OPEN_WORLD);
    }
    csn_json_array_end(&j);
    return csn_json_end(&j);
}

static int describe(csn_mcp_server *s, const csn_info_result *info)
{
    csn_autobuf facts;

    csn_buf_init(&facts, TEXT_MAX);
    csn_buf_init(&s->tools, TEXT_MAX);
    csn_buf_init(&s->instructions, TEXT_MAX);
    put_facts(&facts, s->config, info);
    if (facts.err != 0)
        return facts.err;
    csn_buf_printf(
        &s->instructions,
        "Run commands and work on files in a sandbox. Relative paths begin in the working "
        "directory. When something is refused, the answer names the rule and what the user "
        "could allow; do not try to get around it, tell the user.\n%s",
        facts.data);
    s->cow = has_word(info->capabilities, "diff");
    int e = put_tools(&s->tools, facts.data, has_network(s->config, info), s->cow);
    return e != 0 ? e : s->instructions.err;
}

/* ---- create and free ----------------------------------------------------------------- */

/* Opens and closes a sandbox, so that a configuration that cannot work fails at the start and
 * the descriptions state the properties of a real sandbox. */
static csn_status probe_sandbox(const csn_config *config, csn_info_result **ret,
                                csn_error **err)
{
    csn_sandbox *sb = NULL;
    csn_status st = csn_open(config, &sb, err);

    if (st == CSN_OK)
        st = csn_info(sb, ret, err);
    csn_close(sb);
    return st;
}

csn_status csn_mcp_server_new(const csn_config *config, csn_mcp_server **ret, csn_error **err)
{
    CSN_CLEANUP(csn_info_freep) csn_info_result *info = NULL;
    csn_status st = probe_sandbox(config, &info, err);

    if (st < 0)
        return st;
    csn_mcp_server *s = calloc(1, sizeof(*s));
    if (s) {
        s->config = config;
        s->pool = csn_pool_new(CSN_MCP_CALLS_MAX, CSN_MCP_QUEUE_MAX);
        pthread_mutex_init(&s->lock, NULL);
        csn_cond_init(&s->tick);
    }
    if (!s || !s->pool || describe(s, info) != 0) {
        csn_mcp_server_free(s);
        return csn_fail(err, CSN_NOMEM, "the server");
    }
    *ret = s;
    return CSN_OK;
}

void csn_mcp_server_free(csn_mcp_server *s)
{
    if (!s)
        return;
    csn_pool_free(s->pool);
    csn_mcp_progress_stop(s);
    pthread_cond_destroy(&s->tick);
    pthread_mutex_destroy(&s->lock);
    csn_buf_release(&s->tools);
    csn_buf_release(&s->instructions);
    free(s);
}

const csn_config *csn_mcp_server_config(const csn_mcp_server *s)
{
    return s->config;
}

bool csn_mcp_server_submit(csn_mcp_server *s, void (*run)(void *arg), void *arg)
{
    return csn_pool_submit(s->pool, run, arg);
}
