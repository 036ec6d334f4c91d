/* policy_protected_names.c: which names are protected, and what git writes by itself. */
#include "policy/protected_names.h"

#include "git_fixture.h"
#include "policy/gitconfig.h"
#include "policy/gitindex.h"

#define LEN(array) (sizeof(array) / sizeof(*(array)))

/* ---- paths ---- */

static void protected_paths_are_found_at_any_depth(void **state)
{
    static const char *const paths[] = {
        ".git/hooks/pre-commit",
        ".git/hooks",
        ".git/hooks/x.sample",
        ".git/config",
        ".git/config.worktree",
        ".git",
        ".git/",
        ".git/commondir",
        ".git/index",
        ".git/modules/libs/s/hooks/post-checkout",
        ".git/modules/s/config",
        ".git/modules/a/b/c/config.worktree",
        ".git/worktrees/w/config.worktree",
        ".git/worktrees/w/rebase-merge/git-rebase-todo",
        ".git/rebase-merge/git-rebase-todo",
        ".bashrc",
        ".zshenv",
        ".envrc",
        ".mcp.json",
        ".gitconfig",
        ".ssh/authorized_keys",
        ".vscode/tasks.json",
        ".vscode",
        ".idea/workspace.xml",
        ".claude/settings.json",
        ".claude/commands/x.md",
        ".claude/hooks/a/b",
        ".codex/config.toml",
        ".cursor/mcp.json",
        ".gemini/.env",
        ".kiro/settings/mcp.json",
        ".jj/repo/config.toml",
        "opencode.json",
        ".config/caisson/config.json",
        ".config/git/config",
        "my.code-workspace",
        "x/all.run.xml",
        ".devcontainer.json",
        ".devcontainer/Dockerfile",
        ".bashrc/.",
        ".//.bashrc",
        ".git/.vscode/tasks.json",
        ".claude/.git/config",
        "..",
        "a/../b",
    };
    char deep[300];

    (void)state;
    for (size_t i = 0; i < LEN(paths); i++) {
        const char *rule = NULL;
        if (!csn_protected_name_match(paths[i], &rule) || !rule || !*rule)
            fail_msg("%s is not protected", paths[i]);
        snprintf(deep, sizeof(deep), "a/.b/node_modules/%s", paths[i]);
        if (!csn_protected_name_match(deep, NULL) || !csn_protected_name_match_tree(deep, NULL))
            fail_msg("%s is not protected", deep);
    }
}

static void ordinary_paths_are_not(void **state)
{
    static const char *const paths[] = {
        "",
        ".",
        "src/main.c",
        "package.json",
        ".npmrc",
        ".husky/pre-commit",
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        ".pre-commit-config.yaml",
        ".git/HEAD",
        ".git/objects",
        ".git/refs/heads/main",
        ".git/info/exclude",
        ".git/modules/s/HEAD",
        ".git/FETCH_HEAD",
        ".git/rebase-merge/done",
        ".env",
        ".github/workflows/ci.yml",
        "src/hooks/useThing.ts",
        "config",
        "src/config",
        "hooks/pre-commit",
        "git/config",
        "x.git/config",
        ".gitx/config",
        ".bashrc2",
        "bashrc",
        ".cursor/rules/a.mdc",
        ".claude/notes.md",
        "CLAUDE.md",
        ".config/htop/htoprc",
        ".jj/repo/store/x",
        ".github/CODEOWNERS",
        ".windsurf/rules/a.md",
        ".clinerules/a.md",
        ".local/bin/x",
        ".irbrc2",
        ".Rproj.user/x",
        ".yarnrc.yml",
        ".run.xml",
        ".code-workspace",
        "a.run.xmlx",
        "opencode.js",
        ".venv/bin/python",
        "objects/config",
        ".vscod",
        ".vscode2/tasks.json",
        "index",
        "settings.json",
        "commands/x.md",
        "r\xc3\xa9sum\xc3\xa9",
        ".b\xc3\xa4shrc",
    };

    (void)state;
    for (size_t i = 0; i < LEN(paths); i++) {
        const char *rule = "?";
        if (csn_protected_name_match(paths[i], &rule))
            fail_msg("%s is protected by %s", paths[i], rule);
    }
}

static void other_spellings_of_the_same_name_are_protected(void **state)
{
    static const char *const paths[] = {
        ".GIT/Hooks/pre-commit",
        ".Git/CONFIG",
        ".BashRC",
        "X.CODE-WORKSPACE",
        ".MCP.json",
        ".git/hoo\xe2\x84\xaas/pre-commit", /* KELVIN SIGN */
        ".git/con\xef\xac\x81g",            /* LATIN SMALL LIGATURE FI */
        ".ba\xc5\xbfhrc",                   /* LATIN SMALL LETTER LONG S */
        ".g\xe2\x80\x8bit/config",          /* ZERO WIDTH SPACE */
        "\xef\xbb\xbf.envrc",               /* ZERO WIDTH NO-BREAK SPACE */
        ".\xc3\x9fh/config",                /* LATIN SMALL LETTER SHARP S */
        ".git/modules/S/HOO\xe2\x84\xaaS/x",
    };

    (void)state;
    for (size_t i = 0; i < LEN(paths); i++)
        if (!csn_protected_name_match(paths[i], NULL))
            fail_msg("%s is not protected", paths[i]);
}

static void what_brings_a_tree_may_not_become_the_parent_of_protected_names(void **state)
{
    static const char *const parents[] = {
        ".claude",        "a/.cursor",        ".config", ".git/modules",
        ".git/modules/x", ".git/worktrees/w", ".hg",     ".git/rebase-merge",
        ".kiro",          ".local/share",     ".github"};

    (void)state;
    for (size_t i = 0; i < LEN(parents); i++) {
        const char *rule = NULL;
        assert_false(csn_protected_name_match(parents[i], NULL));
        if (!csn_protected_name_match_tree(parents[i], &rule) || !rule)
            fail_msg("%s may be replaced", parents[i]);
    }
    assert_false(csn_protected_name_match_tree("src", NULL));
    assert_false(csn_protected_name_match_tree(".github/workflows", NULL));
    assert_false(csn_protected_name_match_tree(".config/htop", NULL));
}

/* Every row, at the root and below, in its own and in upper case. */
static void every_row_is_found(void **state)
{
    const char *name;
    size_t rows = 0;

    (void)state;
    for (; (name = csn_protected_name_row(rows)); rows++) {
        char deep[100], upper[100];
        snprintf(deep, sizeof(deep), "a/b/%s%s", *name == '*' ? "x" : "",
                 name + (*name == '*'));
        for (size_t i = 0; i <= strlen(deep); i++)
            upper[i] = (char)(deep[i] >= 'a' && deep[i] <= 'z' ? deep[i] - 32 : deep[i]);
        bool found = csn_protected_name_match(deep + 4, NULL) &&
                     csn_protected_name_match(deep, NULL) &&
                     csn_protected_name_match(upper, NULL);
        if (!found)
            fail_msg("%s is not found", name);
        if (csn_protected_name_rule(deep, false) != (int)rows)
            fail_msg(
                "%s is found as %s", name,
                csn_protected_name_rule_text((uint8_t)csn_protected_name_rule(deep, false)));
    }
    assert_true(rows > 100 && rows < 256);
}

typedef struct places {
    csn_protected_name_place seen[400];
    size_t n;
    bool config, hooks, index;
} places;

static void check_place(void *ctx, const csn_protected_name_place *p)
{
    places *all = ctx;
    const char *slash = strrchr(p->path, '/');
    size_t dir = slash ? (size_t)(slash - p->path) : 0;
    bool parent = slash == NULL;

    assert_true(all->n < LEN(all->seen));
    for (size_t i = 0; i < all->n; i++) {
        const csn_protected_name_place *old = &all->seen[i];
        parent = parent || (old->pin && strlen(old->path) == dir &&
                            strncmp(old->path, p->path, dir) == 0);
        if (strcmp(old->path, p->path) == 0 && old->pin == p->pin)
            fail_msg("%s is named twice", p->path);
    }
    if (!parent)
        fail_msg("%s comes before its parent", p->path);
    assert_true(csn_protected_name_match_tree(p->path, NULL));
    assert_true(p->pin == (p->rule == NULL));
    assert_true(p->pin || csn_protected_name_match(p->path, NULL));
    bool pointer = strcmp(p->path, ".git") == 0 || strcmp(p->path, ".jj/repo") == 0;
    assert_true(p->file_only == (!p->pin && pointer));
    all->config = all->config || strcmp(p->path, ".git/config") == 0;
    all->hooks = all->hooks || strcmp(p->path, ".git/hooks") == 0;
    all->index = all->index || strcmp(p->path, ".git/index") == 0;
    all->seen[all->n++] = *p;
}

static void places_at_the_start_name_parents_first(void **state)
{
    places all = {0};

    (void)state;
    csn_protected_name_each_place(check_place, &all);
    assert_true(all.n > 50 && all.config && all.hooks && !all.index);
}

/* ---- git config ---- */

static void a_key_that_names_a_program_is_not_harmless(void **state)
{
    static const char *const keys[][2] = {
        {"[core]\nhooksPath = x", "core.hookspath"},
        {"[core]\nfsmonitor = true", "core.fsmonitor"},
        {"[CORE]\nSSHCommand = x", "core.sshcommand"},
        {"[core]\npager = x", "core.pager"},
        {"[core]\neditor = x", "core.editor"},
        {"[core]\naskPass = x", "core.askpass"},
        {"[core]\ngitProxy = x", "core.gitproxy"},
        {"[core]\nalternateRefsCommand = x", "core.alternaterefscommand"},
        {"[core]\nattributesFile = x", "core.attributesfile"},
        {"[alias]\nst = !x", "alias.st"},
        {"[alias \"st\"]\ncommand = !x", "alias.*.command"},
        {"[filter \"x\"]\nclean = x", "filter.*.clean"},
        {"[filter \"x\"]\nprocess = x", "filter.*.process"},
        {"[diff \"x\"]\ntextconv = x", "diff.*.textconv"},
        {"[diff]\nexternal = x", "diff.external"},
        {"[merge \"x\"]\ndriver = x", "merge.*.driver"},
        {"[mergetool \"x\"]\ncmd = x", "mergetool.*.cmd"},
        {"[credential]\nhelper = !x", "credential.helper"},
        {"[credential \"https://x\"]\nhelper = x", "credential.*.helper"},
        {"[gpg]\nprogram = x", "gpg.program"},
        {"[gpg \"ssh\"]\nprogram = x", "gpg.*.program"},
        {"[include]\npath = x", "include.path"},
        {"[includeIf \"gitdir:x\"]\npath = x", "includeif.*.path"},
        {"[uploadpack]\npackObjectsHook = x", "uploadpack.packobjectshook"},
        {"[protocol \"ext\"]\nallow = always", "protocol.*.allow"},
        {"[url \"ext::x\"]\ninsteadOf = https://", "url.*.insteadof"},
        {"[sequence]\neditor = x", "sequence.editor"},
        {"[remote \"o\"]\nuploadpack = x", "remote.*.uploadpack"},
        {"[remote \"o\"]\nreceivepack = x", "remote.*.receivepack"},
        {"[remote \"o\"]\nvcs = x", "remote.*.vcs"},
        {"[remote \"o\"]\nurl = ext::sh -c x", "remote.*.url"},
        {"[remote \"o\"]\nurl = fd::3", "remote.*.url"},
        {"[remote \"o\"]\nurl = \"a;#::x\"", "remote.*.url"},
        {"[remote \"o\"]\nurl = foo://x", "remote.*.url"},
        {"[remote \"o\"]\nurl = -oProxyCommand=x:y", "remote.*.url"},
        {"[remote \"o\"]\nurl = ssh://-oProxyCommand=x/y", "remote.*.url"},
        {"[remote \"o\"]\npushurl = \"ext\"::x", "remote.*.pushurl"},
        {"[remote \"o\"]\nurl", "remote.*.url"},
        {"[branch \"m\"]\nremote = ext::x", "branch.*.remote"},
        {"[branch \"m\"]\nmergeoptions = -s x", "branch.*.mergeoptions"},
        {"[submodule \"s\"]\nupdate = !x", "submodule.*.update"},
        {"[submodule \"s\"]\nurl = ext::x", "submodule.*.url"},
        {"[extensions]\nunknown = 1", "extensions.unknown"},
        {"[core]\nworktree = ..", "core.worktree"},
        {"[core]\nbare = !x", "core.bare"},
        {"[core \"x\"]\nbare = true", "core.*.bare"},
        {"[pager]\nlog = x", "pager.log"},
        {"[man]\nviewer = x", "man.viewer"},
        {"[http]\nproxy = x", "http.proxy"},
        {"[lfs]\nurl = x", "lfs.url"},
        {"[trailer \"x\"]\ncommand = x", "trailer.*.command"},
        {"[interactive]\ndiffFilter = x", "interactive.difffilter"},
        {"[init]\ntemplateDir = x", "init.templatedir"},
        {"[commit]\ntemplate = x", "commit.template"},
        {"[safe]\ndirectory = *", "safe.directory"},
    };

    (void)state;
    for (size_t i = 0; i < LEN(keys); i++) {
        csn_autofree char *key = NULL;
        if (csn_gitconfig_is_harmless(keys[i][0], strlen(keys[i][0]), &key, NULL))
            fail_msg("harmless: %s", keys[i][0]);
        assert_string_equal(key, keys[i][1]);
        assert_false(csn_gitconfig_is_harmless(keys[i][0], strlen(keys[i][0]), NULL, NULL));
    }
}

static void ordinary_keys_are_harmless(void **state)
{
    static const char *const texts[] = {
        "",
        "\n\n",
        "# only a comment",
        "; x\n# [core]\n#\thooksPath = x\n",
        "[core]\n\tbare = false\n",
        "[core]bare=true",
        "[core] bare\n\tfileMode\n",
        "[core]\r\n\tbare = false\r\n",
        "[remote \"o\"]\n\turl = https://x/y.git # c\n",
        "[remote \"a b\\\"]c\"]\n\turl = ../x\n\tfetch = +refs/heads/*:refs/remotes/o/*\n",
        "[branch \"feature/x\"]\n\tremote = .\n\tmerge = refs/heads/main\n",
        "[user]\n\tname = \"A \\\"B\\\" \\\n  C\"\n\temail = a@b\n",
        "[remote \"o\"]\n\turl = git@host:path/x\n\turl = ssh://git@host/x\n\turl = "
        "file:///x\n",
        "[remote \"o\"]\n\turl = /a path/with blanks\n\turl =\n",
        "[submodule \"s\"]\n\tactive = true\n\tupdate = none\n",
        "[pull]\n\trebase = true\n[push]\n\tdefault = current\n[init]\n\tdefaultBranch = "
        "main\n",
        "[core]\n\tcompression = -1\n[advice]\n\tdetachedHead = false\n",
    };

    (void)state;
    for (size_t i = 0; i < LEN(texts); i++) {
        csn_autofree char *key = NULL;
        if (!csn_gitconfig_is_harmless(texts[i], strlen(texts[i]), &key, NULL))
            fail_msg("%s: %s", texts[i], key);
    }
}

static void what_is_not_understood_is_not_harmless(void **state)
{
    static const char nul[] = "[core]\n\tbare = false\0\n";
    static const char *const texts[] = {
        "bare = true",
        "[core",
        "[core]]",
        "[]",
        "[ core]",
        "[core.x]\nbare=true",
        "[core ]",
        "[core \"x]\n",
        "[core \"x\" ]\n",
        "[core \"a\\\nb\"]\n",
        "[core]\n=x",
        "[core]\nbare x",
        "[core]\nbare # c",
        "[core]\nbare = \"x",
        "[core]\nbare = \\x",
        "[core]\nbare = a\\nb",
        "[core]\nbare = \"a\nb\"",
        "[core]\nb_are = 1",
        "[core]\n1bare = 1",
        "\xef\xbb\xbf[core]",
        "[core]\rbare = 1",
        "[core]\n\vbare = 1",
        "[core]\n\x7f",
        "[c\xc3\xb6re]\n",
        "[core]\nbare = a\\",
        "[core]\nbare = a\\bc",
    };

    (void)state;
    assert_false(csn_gitconfig_is_harmless(nul, sizeof(nul) - 1, NULL, NULL));
    for (size_t i = 0; i < LEN(texts); i++) {
        csn_autofree char *key = NULL;
        if (csn_gitconfig_is_harmless(texts[i], strlen(texts[i]), &key, NULL))
            fail_msg("harmless: %s", texts[i]);
        assert_non_null(key);
    }
    csn_autofree char *big = malloc(2 << 20);
    memset(big, '\n', 2 << 20);
    assert_false(csn_gitconfig_is_harmless(big, 2 << 20, NULL, NULL));
}

/* Ways to write a key so that a reader of the text might miss it. git is asked whether it is
 * there; where it is, it must have been found here too. */
static void a_key_that_git_sees_is_seen(void **state)
{
    static const char *const texts[] = {
        "[core]\nhooksPath = x",
        "[core] hooksPath = x",
        "[core]hooksPath=x",
        "[CoRe]\n\t\tHOOKSPATH\t=\tx\t; c",
        "[user]\nname = a \\\nb\n[core]\nhooksPath = x",
        "[user]\nname = \"; [x]\\\n\"\n[core]\nhooksPath = x",
        "[core]\nhooksPath = \"\"x\"\"",
        "[user]\nname = a # \\\n[core]\nhooksPath = x",
        "[user]\nname = a ; \" \n[core]hooksPath=x",
        "[branch \"]\"]\nremote = a\n[core]\nhooksPath = x",
        "[core]\r\nhooksPath = x\r\n",
        "[branch \"\\\"]\n[core]\nhooksPath = x\n[x \"y\"]",
        "[core]\nbare=0;\n[core]hooksPath=x",
        "[core]\nbare = false\\\n[core]\nhooksPath = x",
        "\xef\xbb\xbf[core]\nhooksPath = x",
        "[core]\nhooksPath",
        "[user]\nname = \\\\\n[core]\nhooksPath = \\\nx",
    };
    git_fixture r;
    size_t seen = 0;

    (void)state;
    SKIP_WITHOUT_GIT();
    git_room_make(&r);
    for (size_t i = 0; i < LEN(texts); i++) {
        room_put(&r, "config", texts[i]);
        if (git_try(&r, ".", "config -f config --get core.hookspath") != 0)
            continue;
        seen++;
        if (csn_gitconfig_is_harmless(texts[i], strlen(texts[i]), NULL, NULL))
            fail_msg("git sees a key in: %s", texts[i]);
    }
    git_room_wipe(&r);
    assert_true(seen >= 12);
}

/* ---- what git writes, and what it is made into ---- */

static csn_protected_content_verdict judge_text(const char *rule_path, const char *path,
                                                const char *text)
{
    csn_protected_content doc = {
        .path = path, .workspace = "/w", .text = text, .len = strlen(text)};
    csn_protected_content_verdict v;
    csn_name_rules_step s = {0};

    for (const char *p = rule_path; *p; p += strcspn(p, "/") + (p[strcspn(p, "/")] == '/'))
        s = csn_protected_name_rules.step(s.at, p, strcspn(p, "/"));
    assert_true(s.wanted);
    doc.rule = s.rule;
    csn_protected_content_check(&doc, &v);
    assert_true(v.harmless == (v.why == NULL));
    return v;
}

static void judged(const char *rule_path, const char *path, const char *text, const char *dir)
{
    csn_protected_content_verdict v = judge_text(rule_path, path, text);

    if (v.harmless != (dir != NULL))
        fail_msg("%s with '%s' is %s", path, text, v.harmless ? "harmless" : v.why);
    if (dir && *dir)
        assert_string_equal(v.real_dir, dir);
    csn_protected_content_verdict_release(&v);
}

static void pointers_of_git_are_harmless_inside_the_workspace_only(void **state)
{
    static const char *const out[] = {"gitdir: ../../../x\n",
                                      "gitdir: /etc\n",
                                      "gitdir: /w2/x\n",
                                      "gitdir: a/../b\n",
                                      "x",
                                      "",
                                      "gitdir: ../../.git/objects/x\n",
                                      "gitdir: x\ny\n",
                                      "gitdir:x\n",
                                      "gitdir: x\r\n"};

    (void)state;
    judged(".git", "libs/s/.git", "gitdir: ../../.git/modules/libs/s\n", ".git/modules/libs/s");
    judged(".git", "t/.git", "gitdir: /w/.git/worktrees/t\n", ".git/worktrees/t");
    for (size_t i = 0; i < LEN(out); i++)
        judged(".git", "libs/s/.git", out[i], NULL);
    judged(".git/commondir", ".git/worktrees/t/commondir", "../..\n", "");
    judged(".git/commondir", ".git/worktrees/t/commondir", "../../x\n", NULL);
    judged(".git/commondir", "x/commondir", "../..\n", NULL);
    judged(".git/config", ".git/modules/libs/s/config",
           "[core]\nworktree = ../../../../libs/s\n", "libs/s");
    judged(".git/config", ".git/config", "[core]\nworktree = ../..\n", NULL);
    judged(".git/config", ".git/config", "[core]\nworktree = /home/me\n", NULL);
    judged(".git/config", ".git/config", "[core]\nworktree = x/../..\n", NULL);
    judged(".git/config", ".git/config", "[core]\nworktree = a\nworktree = b\n", NULL);
    judged(".git/hooks", ".git/hooks/pre-commit", "", NULL);
    judged(".git/rebase-merge/git-rebase-todo", "x", "pick 1 x\n# exec\n\nf -C 2\n", "");
    judged(".git/rebase-merge/git-rebase-todo", "x", "pick 1 x\n  exec sh\n", NULL);
    judged(".git/rebase-merge/git-rebase-todo", "x", "x sh", NULL);
    judged(".git/rebase-merge/git-rebase-todo", "x", "pick 1\rx sh", "");
}

static void a_link_is_never_harmless(void **state)
{
    csn_protected_content_verdict v;

    (void)state;
    csn_protected_content_check(
        &(csn_protected_content){.rule = 1, .path = ".git/config", .link = true, .text = ""},
        &v);
    assert_false(v.harmless);
    csn_protected_content_verdict_release(&v);
}

static void configs_that_git_writes_are_harmless(void **state)
{
    static const char *const paths[] = {"main/.git/config",
                                        "main/.git/modules/libs/s/config",
                                        "clone/.git/config",
                                        "lib/.git/config",
                                        "clone/.git/modules/libs/s/config",
                                        "clone/.git/config.worktree",
                                        "bare.git/config",
                                        "partial/.git/config"};
    git_fixture r;

    (void)state;
    SKIP_WITHOUT_GIT();
    git_room_make(&r);
    git_make_everything(&r);
    for (size_t i = 0; i < LEN(paths); i++) {
        size_t len;
        csn_autofree char *text = room_get(r.fd, paths[i], &len), *key = NULL, *tree = NULL;
        assert_true(len > 10);
        if (!csn_gitconfig_is_harmless(text, len, &key, &tree))
            fail_msg("%s: %s", paths[i], key);
        assert_true((tree != NULL) == (strstr(paths[i], "modules") != NULL));
    }
    git_room_wipe(&r);
}

/* The name of the first entry, replaced by another of the same length. */
static void forge(char *data, size_t len, const char *from, const char *to)
{
    char *at = memmem(data, len, from, strlen(from));

    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
}

static void index_round(git_fixture *r, const char *version, const char *to, bool want)
{
    size_t len;

    git(r, ".", version);
    csn_autofree char *data = room_get(r->fd, ".git/index", &len);
    assert_true(csn_gitindex_is_harmless(data, len, 20));
    assert_false(csn_gitindex_is_harmless(data, len, 32));
    for (size_t cut = 1; cut < len; cut++)
        (void)csn_gitindex_is_harmless(data, cut, 20); /* for the sanitizers */
    forge(data, len, "xgit/hooks/post-checkout", to);
    assert_true(csn_gitindex_is_harmless(data, len, 20) == want);
}

static void an_index_with_paths_git_refuses_is_not_harmless(void **state)
{
    static const char *const versions[] = {"update-index --index-version 2",
                                           "update-index --index-version 4"};
    git_fixture r;

    (void)state;
    SKIP_WITHOUT_GIT();
    git_room_make(&r);
    git(&r, ".", "init -q");
    room_mkdir(&r, "xgit/hooks");
    room_put(&r, "xgit/hooks/post-checkout", "x");
    room_put(&r, "xgit/hooks/post-commit", "x");
    git(&r, ".", "add xgit");
    for (size_t i = 0; i < LEN(versions); i++) {
        index_round(&r, versions[i], ".git/hooks/post-checkout", false);
        index_round(&r, versions[i], ".GIT/hooks/post-checkout", false);
        index_round(&r, versions[i], "../t/hooks/post-checkout", false);
        index_round(&r, versions[i], "/etc/hooks/post-checkout", false);
        index_round(&r, versions[i], "xgit//ooks/post-checkout", false);
        index_round(&r, versions[i], "ygit/hooks/post-checkout", true);
        index_round(&r, versions[i], ".gitx/ooks/post-checkout", true);
    }
    assert_int_equal(git_try(&r, ".", "update-index --split-index"), 0);
    size_t len;
    csn_autofree char *split = room_get(r.fd, ".git/index", &len);
    assert_false(csn_gitindex_is_harmless(split, len, 20));
    git_room_wipe(&r);
}

/* git reads blocks of entries where this table says: it must say where they are. */
static void an_index_whose_table_of_blocks_lies_is_not_harmless(void **state)
{
    git_fixture r;
    char name[32];
    size_t len;

    (void)state;
    SKIP_WITHOUT_GIT();
    git_room_make(&r);
    git(&r, ".", "init -q");
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "file-%02d", i);
        room_put(&r, name, "");
    }
    git(&r, ".", "-c index.threads=2 add .");
    csn_autofree char *data = room_get(r.fd, ".git/index", &len);
    char *table = memmem(data, len, "IEOT", 4);
    assert_true(csn_gitindex_is_harmless(data, len, 20));
    if (!table) {
        print_message("# SKIP %s: this git writes no table\n", __func__);
    } else {
        table[8 + 4 + 8 + 3] += 8; /* the offset of the second block, or the next extension */
        assert_false(csn_gitindex_is_harmless(data, len, 20));
    }
    git_room_wipe(&r);
}

/* ---- includes ---- */

static void add_use(void *ctx, csn_gitconfig_use use, const char *path)
{
    char *all = ctx;

    if (use != CSN_GITCONFIG_INCLUDE)
        strncat(all, use == CSN_GITCONFIG_HOOKS ? "hooks " : "program ", 200 - strlen(all));
    strncat(all, path, 200 - strlen(all));
    strncat(all, "|", 200 - strlen(all));
}

static void what_a_config_refers_to_is_found(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ""},
        {"[include]\n\tpath = a\n", "a|"},
        {"[INCLUDE] PATH=\"a b\" ; why\n", "a b|"},
        {"[includeIf \"gitdir:~/x/\"]\n path = ../b\n", "../b|"},
        {"[includeif \"onbranch:x\"]\r\n\tpath = c\r\n", "c|"},
        {"\xef\xbb\xbf[include]path=a\\\nb\n", "ab|"},
        {"[alias]\n x = \"!f() { a\\nb; }\"\n[include]\npath=d\n", "d|"},
        {"[a.b]\nc=d\n[include]\npath=e", "program d|e|"},
        {"[core]\nhooksPath = .husky/_\nbare = false\n[core \"x\"]y=z\n",
         "hooks .husky/_|program z|"},
        {"[CORE]\n\tHOOKSPATH=a\n\tfsmonitor = tools/mon\n\tfsmonitor = true\n",
         "hooks a|program tools/mon|program true|"},
        {"[filter \"x\"]clean = node tools/c %f\n[alias]\nx = !tools/y\n",
         "program node tools/c %f|"},
        {"[blame]ignoreRevsFile=a/b\n[commit]template=a/b\n[user]name=a/b\n", ""},
        {"not understood ]\n[include]\n# path = no\npath = f\npath\n", "f|"},
        {"[include \"x\"]\npath=a\n[includeif]\npath=b\n", "program a|program b|"},
        {"[include]\npath=\"no\n[include]\npath=g\n", "g|"},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        char all[201] = "";
        csn_gitconfig_uses(rows[i].text, strlen(rows[i].text), add_use, all);
        if (strcmp(all, rows[i].want) != 0)
            fail_msg("%s: %s instead of %s", rows[i].text, all, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protected_paths_are_found_at_any_depth),
        cmocka_unit_test(every_row_is_found),
        cmocka_unit_test(ordinary_paths_are_not),
        cmocka_unit_test(other_spellings_of_the_same_name_are_protected),
        cmocka_unit_test(what_brings_a_tree_may_not_become_the_parent_of_protected_names),
        cmocka_unit_test(places_at_the_start_name_parents_first),
        cmocka_unit_test(a_key_that_names_a_program_is_not_harmless),
        cmocka_unit_test(ordinary_keys_are_harmless),
        cmocka_unit_test(what_is_not_understood_is_not_harmless),
        cmocka_unit_test(a_key_that_git_sees_is_seen),
        cmocka_unit_test(pointers_of_git_are_harmless_inside_the_workspace_only),
        cmocka_unit_test(a_link_is_never_harmless),
        cmocka_unit_test(configs_that_git_writes_are_harmless),
        cmocka_unit_test(an_index_with_paths_git_refuses_is_not_harmless),
        cmocka_unit_test(an_index_whose_table_of_blocks_lies_is_not_harmless),
        cmocka_unit_test(what_a_config_refers_to_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
