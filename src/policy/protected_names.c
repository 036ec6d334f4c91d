/* protected_names.c: the table of protected names, and finding them in paths and walks.
 *
 * An agent chooses the paths. Invariants: no spelling of a protected path is missed, at any
 * depth; ordinary names are dismissed in a few comparisons, because the scan checks every name
 * of the workspace. Not protected on purpose:
 *  - .git/info/attributes, .gitattributes: they select filters, and only a config, which is
 *    protected (or the user's own), makes a filter a program.
 *  - .gitmodules: git takes no command from it (update=!x is refused since 2.17.3), helper
 *    transports are off by default, and `git submodule add` must work.
 *  - package.json, .npmrc, .yarnrc.yml, .pnpmfile.cjs, Makefile, .bazelrc, .cargo, .mvn,
 *    conftest.py, .husky, lefthook.yml, .pre-commit-config.yaml, .eslintrc.js, .pylintrc:
 *    project files. Running, building, installing or checking the project on the host runs what
 *    the agent wrote, knowingly. (.husky is protected where core.hooksPath names it.)
 *  - .env: an ordinary project file. Programs that load it get variables, not commands; agents
 *    that took their own settings from it have been corrected (CVE-2025-61260).
 *  - .venv, .direnv, node_modules: build results; the same holds.
 *  - CLAUDE.md, AGENTS.md, .cursor/rules, .windsurf/rules, .clinerules, .roo/rules,
 * .goosehints, .github/copilot-instructions.md: text for a model, not commands.
 *  - mise.toml, .tool-versions, .autoenv, .dir-locals.el, .luarc.json: their programs ask the
 *    user before they trust them, or run nothing.
 *  - .editorconfig, .netrc, .curlrc: no commands. */
#include "policy/protected_names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

typedef struct row {
    const char *name;
    csn_protected_name_kind kind;
    bool top; /* can be mounted read-only: no ordinary command writes it */
    const char *rule;
} row;

#define ROW(name, why)                                                                         \
    {                                                                                          \
        name, CSN_PROTECTED_NAME_ALWAYS, true, name ": " why                                   \
    }
#define KIND(name, kind, top, why)                                                             \
    {                                                                                          \
        name, CSN_PROTECTED_NAME_##kind, top, name ": " why                                    \
    }
#define SHELL(name)  ROW(name, "shells run it when they start or end")
#define MCP(name)    ROW(name, "names programs that agents start as MCP servers")
#define AGENT(name)  ROW(name, "holds commands or permissions of an agent")
#define EDITOR(name) ROW(name, "an editor runs what it names")
#define START(name)  ROW(name, "its interpreter or debugger runs it when it starts")

/* Rows with the same directory are adjacent; csn_protected_name_each_place relies on it. A row
 * also covers everything below it, except for those of kind FILE and `.git` itself. A row is
 * here if a program of the host reads it from the current directory, a parent directory or the
 * home, and then runs code although its user did not ask to run the project. */
static const row rows[] = {
    /* git; also in submodules, worktrees and bare repositories */
    KIND(".git", GITFILE, true, "as a file or link it sends git to another repository"),
    KIND(".git/config", GITCONFIG, true, "git runs programs that it names"),
    KIND(".git/config.worktree", GITCONFIG, true, "git runs programs that it names"),
    KIND(".git/commondir", COMMONDIR, true, "sends git to another config and other hooks"),
    ROW(".git/hooks", "git runs what is in it"),
    KIND(".git/index", GITINDEX, false, "made by hand, it has git write its own hooks"),
    KIND(".git/rebase-merge/git-rebase-todo", TODO, false, "git runs its exec lines"),
    ROW(".gitconfig", "git runs programs that it names"),
    /* other version control */
    ROW(".hg/hgrc", "Mercurial runs hooks and extensions that it names"),
    ROW(".hg/hgrc-not-shared", "Mercurial runs hooks and extensions that it names"),
    ROW(".hg/sharedpath", "sends Mercurial to the hgrc of another repository"),
    ROW(".hgrc", "Mercurial runs hooks and extensions that it names"),
    KIND(".jj/repo", FILE, true, "as a file it sends Jujutsu to another repository"),
    ROW(".jj/repo/config.toml", "Jujutsu runs programs that it names"),
    ROW(".jj/workspace-config.toml", "Jujutsu runs programs that it names"),
    ROW(".jjconfig.toml", "Jujutsu runs programs that it names"),
    /* shells, what they load, and what starts with a session */
    SHELL(".bashrc"),
    SHELL(".bash_profile"),
    SHELL(".bash_login"),
    SHELL(".bash_logout"),
    SHELL(".bash_aliases"),
    SHELL(".profile"),
    SHELL(".zshrc"),
    SHELL(".zshenv"),
    SHELL(".zprofile"),
    SHELL(".zlogin"),
    SHELL(".zlogout"),
    SHELL(".kshrc"),
    SHELL(".mkshrc"),
    SHELL(".shrc"),
    SHELL(".cshrc"),
    SHELL(".tcshrc"),
    SHELL(".login"),
    SHELL(".logout"),
    SHELL(".xonshrc"),
    ROW(".inputrc", "binds keys to commands"),
    ROW(".envrc", "direnv runs it on cd"),
    ROW(".xprofile", "run at login"),
    ROW(".xsession", "run at login"),
    ROW(".xsessionrc", "run at login"),
    ROW(".xinitrc", "run at login"),
    ROW(".pam_environment", "sets the environment of every program of a session"),
    ROW(".tmux.conf", "tmux runs commands from it when it starts"),
    ROW(".screenrc", "screen runs commands from it when it starts"),
    ROW(".ssh", "ssh runs programs that its config names; authorized_keys admits users"),
    ROW(".gnupg", "gpg runs programs that its config names"),
    ROW(".config/caisson", "says what later sandboxes may do"),
    ROW(".config/git", "git runs programs that its config names"),
    ROW(".config/jj", "Jujutsu runs programs that its config names"),
    ROW(".config/fish", "shells run it when they start or end"),
    ROW(".config/nushell", "shells run it when they start or end"),
    ROW(".config/powershell", "shells run it when they start or end"),
    ROW(".config/xonsh", "shells run it when they start or end"),
    ROW(".config/direnv", "direnv runs its direnvrc and trusts what its config names"),
    ROW(".config/tmux", "tmux runs commands from it when it starts"),
    ROW(".config/nvim", "an editor runs what it names"),
    ROW(".config/emacs", "an editor runs what it names"),
    ROW(".config/helix", "an editor runs what it names"),
    ROW(".config/zed", "an editor runs what it names"),
    ROW(".config/autostart", "started at login"),
    ROW(".config/plasma-workspace", "started at login"),
    ROW(".config/systemd", "started at login"),
    ROW(".config/environment.d", "sets the environment of every program of a session"),
    ROW(".local/share/applications", "desktops start programs that it names"),
    ROW(".local/share/dbus-1", "the session bus starts programs that it names"),
    ROW(".local/share/systemd", "started at login"),
    /* interpreters and debuggers, which run these files when they start, with any program */
    START(".Rprofile"),
    ROW(".Renviron", "can name a file that R runs when it starts"),
    START(".octaverc"),
    START(".ghci"),
    START(".irbrc"),
    START(".pryrc"),
    START(".rdbgrc"),
    START(".byebugrc"),
    START(".iex.exs"),
    START(".erlang"),
    START(".ocamlinit"),
    START(".sbclrc"),
    START(".guile"),
    START(".gnuplot"),
    START(".psysh.php"),
    START(".perldb"),
    START(".pdbrc"),
    START(".gdbinit"),
    START(".gdbearlyinit"),
    START(".lldbinit"),
    START(".ipython"),
    START(".jupyter"),
    START(".julia/config"),
    START(".psqlrc"),
    START(".sqliterc"),
    /* tools */
    ROW(".ripgreprc", "can name a program to run on each file"),
    ROW(".lessfilter", "less runs it on each file"),
    ROW(".mailcap", "names programs that open files"),
    EDITOR(".vimrc"),
    EDITOR(".gvimrc"),
    EDITOR(".vim"),
    EDITOR(".exrc"),
    EDITOR(".nvimrc"),
    EDITOR(".nvim.lua"),
    EDITOR(".emacs"),
    EDITOR(".emacs.d"),
    EDITOR(".vscode"),
    EDITOR(".vs/mcp.json"),
    EDITOR(".vs/tasks.vs.json"),
    EDITOR(".idea"),
    EDITOR(".zed"),
    EDITOR(".fleet"),
    EDITOR(".theia"),
    EDITOR(".helix"),
    ROW(".externalToolBuilders", "Eclipse runs the builders that it names on every change"),
    ROW(".devcontainer", "its initializeCommand runs on the host"),
    ROW(".devcontainer.json", "its initializeCommand runs on the host"),
    /* agents */
    MCP(".mcp.json"),
    AGENT(".claude.json"),
    AGENT(".claude/settings.json"),
    AGENT(".claude/settings.local.json"),
    AGENT(".claude/launch.json"),
    AGENT(".claude/commands"),
    AGENT(".claude/agents"),
    AGENT(".claude/hooks"),
    AGENT(".claude/skills"),
    AGENT(".claude/plugins"),
    MCP(".cursor/mcp.json"),
    AGENT(".cursor/hooks.json"),
    AGENT(".cursor/hooks"),
    AGENT(".cursor/cli.json"),
    AGENT(".cursor/sandbox.json"),
    AGENT(".cursor/worktrees.json"),
    AGENT(".codex"),
    AGENT(".agents"),
    AGENT(".agent/skills"),
    AGENT(".agent/workflows"),
    AGENT(".gemini/settings.json"),
    AGENT(".gemini/commands"),
    AGENT(".gemini/extensions"),
    AGENT(".gemini/agents"),
    AGENT(".gemini/skills"),
    AGENT(".gemini/policies"),
    AGENT(".gemini/hooks"),
    AGENT(".gemini/.env"),
    AGENT(".qwen/settings.json"),
    AGENT(".qwen/commands"),
    AGENT(".qwen/extensions"),
    AGENT(".qwen/agents"),
    AGENT(".qwen/skills"),
    AGENT(".qwen/.env"),
    ROW("caisson.json", "says what later sandboxes of the project may do"),
    AGENT("crush.json"),
    AGENT(".crush.json"),
    MCP(".roo/mcp.json"),
    MCP(".kilocode/mcp.json"),
    MCP(".trae/mcp.json"),
    MCP(".junie/mcp"),
    MCP(".amazonq/mcp.json"),
    AGENT(".amazonq/cli-agents"),
    AGENT(".kiro/settings"),
    AGENT(".kiro/agents"),
    AGENT(".kiro/hooks"),
    AGENT(".windsurf/hooks.json"),
    AGENT(".clinerules/hooks"),
    AGENT(".cline"),
    AGENT(".amp"),
    AGENT(".augment/settings.json"),
    AGENT(".augment/settings.local.json"),
    AGENT(".augment/commands"),
    AGENT(".augment/agents"),
    AGENT(".factory"),
    AGENT(".devin"),
    AGENT(".github/hooks"),
    AGENT(".pi"),
    MCP(".warp/.mcp.json"),
    MCP(".deepagents/.mcp.json"),
    AGENT(".continue"),
    AGENT(".continuerc.json"),
    AGENT(".opencode"),
    AGENT("opencode.json"),
    AGENT("opencode.jsonc"),
    AGENT(".aider.conf.yml"),
    /* by the end of the name */
    EDITOR("*.code-workspace"),
    EDITOR("*.run.xml"),
};

#define ROW_COUNT   (sizeof(rows) / sizeof(*rows))
#define GIT_PREFIX  5u /* ".git/" */
#define FOLDED_SIZE 40u
_Static_assert(ROW_COUNT < 256, "a rule's number is a byte");

/* `at` is the position of a walk: the first row whose name begins with the current path, the
 * length of the matched part, and flags. */
#define AT_LEN(at) ((at)&0xffu)
#define AT_ROW(at) (((at) >> 8) & 0xffu)
#define AT_COVERED (1u << 16) /* the whole row has matched: everything below is protected */
#define AT_DEEP    (1u << 17) /* below .git/modules or .git/worktrees: repositories may follow */
#define AT_LAYOUT  (1u << 18) /* a repository by its content, not by its name */
#define AT_TEXT    (1u << 19) /* only the path is known: below AT_DEEP names decide alone */
#define AT_GIT     (GIT_PREFIX | 1u << 8)
#define AT_PLACE   0xffffu /* AT_LEN and AT_ROW */

/* Marks: git recognises a repository by these entries. */
#define MARK_HEAD      1u
#define MARK_OBJECTS   2u
#define MARK_REFS      4u
#define MARK_COMMONDIR 8u
#define MARK_WORKTREES 16u

/* ---- one spelling of a name ---- */

typedef struct fold {
    uint32_t from, to;  /* code points */
    const char *become; /* NULL: ignored by file systems that fold case */
} fold;

/* Characters that ext4 and f2fs fold to ASCII or ignore; an agent may enable case folding for
 * its own directories. */
static const fold folds[] = {
    {0xad, 0xad, NULL},       {0xdf, 0xdf, "ss"},       {0x17f, 0x17f, "s"},
    {0x34f, 0x34f, NULL},     {0x61c, 0x61c, NULL},     {0x115f, 0x1160, NULL},
    {0x17b4, 0x17b5, NULL},   {0x180b, 0x180f, NULL},   {0x1e9e, 0x1e9e, "ss"},
    {0x200b, 0x200f, NULL},   {0x202a, 0x202e, NULL},   {0x2060, 0x206f, NULL},
    {0x212a, 0x212a, "k"},    {0x3164, 0x3164, NULL},   {0xfb00, 0xfb00, "ff"},
    {0xfb01, 0xfb01, "fi"},   {0xfb02, 0xfb02, "fl"},   {0xfb03, 0xfb03, "ffi"},
    {0xfb04, 0xfb04, "ffl"},  {0xfb05, 0xfb06, "st"},   {0xfe00, 0xfe0f, NULL},
    {0xfeff, 0xfeff, NULL},   {0xffa0, 0xffa0, NULL},   {0xfff0, 0xfff8, NULL},
    {0x1bca0, 0x1bca3, NULL}, {0x1d173, 0x1d17a, NULL}, {0xe0000, 0xe0fff, NULL},
};

/* The ASCII that a character folds to; "?", which no row contains, for all others. */
static const char *fold_char(const unsigned char *s, size_t n)
{
    uint32_t c = n == 2 ? s[0] & 0x1fu : n == 3 ? s[0] & 0x0fu : s[0] & 0x07u;

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3fu);
    for (size_t i = 0; i < sizeof(folds) / sizeof(*folds); i++)
        if (c >= folds[i].from && c <= folds[i].to)
            return folds[i].become ? folds[i].become : "";
    return "?";
}

/* Lower case, one spelling. Returns the length; 0: longer than any row. */
static size_t fold_name(const char *name, size_t len, char out[FOLDED_SIZE])
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)name[i];
        char one[2] = {(char)(c >= 'A' && c <= 'Z' ? c + 32 : c), '\0'};
        size_t used = c < 0x80 ? 1 : csn_utf8_char((const unsigned char *)name + i, len - i);
        const char *text = one;
        if (c >= 0x80)
            text = used > 0 ? fold_char((const unsigned char *)name + i, used) : "?";
        for (; *text; text++) {
            if (n + 1 >= FOLDED_SIZE)
                return 0;
            out[n++] = *text;
        }
        i += used > 0 ? used : 1;
    }
    out[n] = '\0';
    return n;
}

/* ---- one step down a path ---- */

static bool is_ascii(const char *s, size_t len)
{
    unsigned char all = 0;

    for (size_t i = 0; i < len; i++)
        all |= (unsigned char)s[i];
    return all < 0x80;
}

/* Could the name start a row, or be a mark? Cheap, since it runs for nearly every name of a
 * workspace. Other lengths cannot, unless characters fold to more or fewer bytes. */
static bool may_start(const char *name, size_t len)
{
    unsigned char c = (unsigned char)name[0], last = (unsigned char)name[len - 1];

    if (c == '.' || c >= 0x80)
        return true;
    if (len > 8 && (last | 0x20) == (name[len - 8] == '.' ? 'l' : 'e'))
        return true; /* *.run.xml, *.code-workspace */
    switch (c | 0x20) {
    case 'c': /* commondir, crush.json, caisson.json */
        return len == 9 || len == 10 || len == 12 || !is_ascii(name, len);
    case 'w': /* worktrees */
        return len == 9 || !is_ascii(name, len);
    case 'h': /* HEAD */
    case 'r': /* refs */
        return len == 4 || !is_ascii(name, len);
    case 'o': /* objects, opencode.json, opencode.jsonc */
        return len == 7 || len == 13 || len == 14 || !is_ascii(name, len);
    default:
        return false;
    }
}

static bool ends_with(const char *name, size_t len, const char *end)
{
    size_t n = strlen(end);

    return len > n && strncasecmp(name + len - n, end, n) == 0;
}

static uint8_t marks_of(const char *folded)
{
    static const struct {
        const char *name;
        uint8_t mark;
    } marks[] = {{"head", MARK_HEAD},
                 {"objects", MARK_OBJECTS},
                 {"refs", MARK_REFS},
                 {"commondir", MARK_COMMONDIR},
                 {"worktrees", MARK_WORKTREES}};

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (strcmp(folded, marks[i].name) == 0)
            return marks[i].mark;
    return 0;
}

/* Does a row continue with this name after the first `prefix` bytes of row `like`? */
static bool follow(csn_name_rules_step *s, size_t like, size_t prefix, const char *folded,
                   size_t n)
{
    for (size_t i = like; i < ROW_COUNT; i++) {
        const char *rest = rows[i].name + prefix;
        if (prefix > 0 && strncmp(rows[i].name, rows[like].name, prefix) != 0)
            break; /* rows with the same prefix are adjacent */
        if (strncasecmp(rest, folded, n) != 0 || (rest[n] != '\0' && rest[n] != '/'))
            continue;
        s->rule = (uint8_t)i;
        s->wanted = rest[n] == '\0';
        s->wanted_link = true;
        s->at = s->wanted ? AT_COVERED | (uint32_t)i << 8
                          : (uint32_t)(prefix + n + 1) | (uint32_t)i << 8;
        if (i == 0)
            s->at = AT_GIT; /* a directory .git: match its entries instead */
        else if (s->wanted && rows[i].kind == CSN_PROTECTED_NAME_FILE)
            s->at = (uint32_t)(prefix + n + 1) | (uint32_t)(i + 1) << 8; /* the next row */
        return true;
    }
    return false;
}

static bool follow_suffix(csn_name_rules_step *s, const char *name, size_t len)
{
    for (size_t i = ROW_COUNT - 1; rows[i].name[0] == '*'; i--) {
        if (ends_with(name, len, rows[i].name + 1)) {
            s->rule = (uint8_t)i;
            s->wanted = s->wanted_link = true;
            s->at = AT_COVERED | (uint32_t)i << 8;
            return true;
        }
    }
    return false;
}

/* Inside a protected directory. git does not run *.sample files directly in it. */
static csn_name_rules_step step_covered(uint32_t at, const char *name, size_t len)
{
    csn_name_rules_step s = {.at = at, .rule = (uint8_t)AT_ROW(at), .wanted = true};

    s.wanted_link = true;
    if (strcmp(rows[s.rule].name, ".git/hooks") == 0 && ends_with(name, len, ".sample"))
        s.wanted = s.wanted_link = false;
    s.refers_link = s.wanted_link;
    return s;
}

/* `modules` and `worktrees` contain further repositories. `objects` has most of the files, but
 * a walk enters it as any other directory: names decide what is in it, not the place. It is not
 * AT_DEEP in a walk, because directories in a state other than 0 are not cached. */
static void step_git(csn_name_rules_step *s, uint32_t at, const char *folded)
{
    if (strcmp(folded, "modules") == 0 || strcmp(folded, "worktrees") == 0)
        s->at = AT_DEEP;
    else if ((at & AT_DEEP) != 0 && ((at & AT_TEXT) != 0 || strcmp(folded, "objects") != 0))
        s->at |= AT_DEEP;
}

static csn_name_rules_step protect_step(uint32_t at, const char *name, size_t len)
{
    csn_name_rules_step s = {0};
    char folded[FOLDED_SIZE];

    if (len == 0 || (at == 0 && !may_start(name, len)))
        return s;
    if ((at & AT_COVERED) != 0)
        return step_covered(at, name, len);
    size_t n = fold_name(name, len, folded);
    bool found = false;
    if (n > 0) {
        s.marks = marks_of(folded);
        if (AT_LEN(at) > 0)
            found = follow(&s, AT_ROW(at), AT_LEN(at), folded, n);
        if (!found && (at & AT_DEEP) != 0 && (at & AT_TEXT) != 0)
            found = follow(&s, AT_ROW(AT_GIT), GIT_PREFIX, folded, n);
        if (!found && (folded[0] == '.' || folded[0] == 'c' || folded[0] == 'o'))
            found = follow(&s, 0, 0, folded, n);
    }
    if (!found)
        found = follow_suffix(&s, name, len);
    if (!found && (at & AT_PLACE) == AT_GIT && n > 0)
        step_git(&s, at, folded);
    else if ((at & AT_DEEP) != 0 && (s.at & AT_COVERED) == 0)
        s.at |= AT_DEEP;
    s.refers_link = s.wanted_link;
    s.refers = s.wanted && rows[s.rule].kind == CSN_PROTECTED_NAME_GITCONFIG;
    return s;
}

/* git takes a directory with these entries for a repository, whatever its name. A shared one
 * needs no HEAD; that of a worktree has the rest elsewhere. */
static uint32_t protect_classify(uint32_t at, uint8_t marks)
{
    const uint8_t store = MARK_OBJECTS | MARK_REFS, linked = MARK_HEAD | MARK_COMMONDIR;
    bool whole = (marks & store) == store && (marks & (MARK_HEAD | MARK_WORKTREES)) != 0;

    if ((at & AT_COVERED) != 0 || (at & AT_PLACE) == AT_GIT)
        return at;
    return whole || (marks & linked) == linked ? AT_GIT | AT_LAYOUT | (at & AT_DEEP) : at;
}

const csn_name_rules csn_protected_name_rules = {protect_step, protect_classify};

/* ---- paths ---- */

#define NO_RULE   (-1)
#define DOTS_RULE 256 /* a path that was not resolved */

static int find(const char *path, bool tree)
{
    csn_name_rules_step s = {0};

    while (*path) {
        size_t len = strcspn(path, "/");
        bool last = path[len + strspn(path + len, "/")] == '\0';
        bool dots = len == 2 && memcmp(path, "..", 2) == 0;
        if (len > 0 && !(len == 1 && *path == '.') && !dots)
            s = protect_step((s.at & AT_DEEP) != 0 ? s.at | AT_TEXT : s.at, path, len);
        if (dots || (s.at & AT_COVERED) != 0 || (last && (s.wanted || (tree && s.at != 0)))) {
            return dots ? DOTS_RULE : s.rule;
        }
        path += len + (path[len] == '/');
    }
    return NO_RULE;
}

static bool match(const char *path, bool tree, const char **ret_rule)
{
    int rule = find(path, tree);

    if (rule != NO_RULE && ret_rule)
        *ret_rule = rule == DOTS_RULE ? "..: a path that was not resolved" : rows[rule].rule;
    return rule != NO_RULE;
}

int csn_protected_name_rule(const char *path, bool tree)
{
    int rule = find(path, tree);

    return rule == DOTS_RULE ? 0 : rule;
}

bool csn_protected_name_match(const char *path, const char **ret_rule)
{
    return match(path, false, ret_rule);
}

bool csn_protected_name_match_tree(const char *path, const char **ret_rule)
{
    return match(path, true, ret_rule);
}

uint64_t csn_protected_name_version(void)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (size_t i = 0; i < ROW_COUNT; i++)
        for (const char *p = rows[i].name;; p++) {
            h = (h ^ (unsigned char)*p) * 1099511628211u;
            if (!*p)
                break;
        }
    return h;
}

csn_protected_name_kind csn_protected_name_rule_kind(uint8_t rule)
{
    return rule < ROW_COUNT ? rows[rule].kind : CSN_PROTECTED_NAME_ALWAYS;
}

const char *csn_protected_name_row(size_t i)
{
    return i < ROW_COUNT ? rows[i].name : NULL;
}

const char *csn_protected_name_rule_text(uint8_t rule)
{
    return rule < ROW_COUNT ? rows[rule].rule : "";
}

/* ---- the workspace root ---- */

/* True if row i is the first with this parent directory (its first `len` bytes). */
static bool is_new_parent(size_t i, size_t len)
{
    return i == 0 || strncmp(rows[i].name, rows[i - 1].name, len + 1) != 0;
}

void csn_protected_name_each_place(void (*fn)(void *ctx, const csn_protected_name_place *place),
                                   void *ctx)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const row *r = &rows[i];
        if (!r->top || r->name[0] == '*')
            continue;
        for (const char *slash = strchr(r->name, '/'); slash; slash = strchr(slash + 1, '/')) {
            csn_protected_name_place dir = {.pin = true};
            size_t len = (size_t)(slash - r->name);
            if (!is_new_parent(i, len))
                continue;
            memcpy(dir.path, r->name, len);
            fn(ctx, &dir);
        }
        csn_protected_name_place place = {.file_only = r->kind == CSN_PROTECTED_NAME_GITFILE ||
                                                       r->kind == CSN_PROTECTED_NAME_FILE,
                                          .rule = r->rule};
        memcpy(place.path, r->name, strlen(r->name));
        fn(ctx, &place);
    }
}
