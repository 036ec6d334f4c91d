/* What explain offers and never offers, and how it takes text that was made to mislead it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "explain_world.h"

static void offers_the_smallest_sensible_grant(void **state)
{
    (void)state;
    check("cat: /home/me/x: No such file or directory\n",
          "read /home/me/x -> --read /home/me/x");
    check("cat: /tmp/note: No such file or directory\n", "read /tmp/note -> --read /tmp/note");
    check("cat: /data/set.csv: No such file or directory\n",
          "read /data/set.csv -> --read /data");
    check("ls: cannot access '/data': No such file or directory\n",
          "read /data -> --read /data");
    check("ls: cannot access '/home/me': No such file or directory\n",
          "read /home/me -> " WIDE);
    check("ls: cannot access '/home': No such file or directory\n", "read /home -> " WIDE);
    check("cat: /home/me/.config/tool.json: No such file or directory\n",
          "read /home/me/.config/tool.json -> --read /home/me/.config/tool.json");
    check("bash: line 1: mine: command not found\n", "exec mine -> --read /home/me/.local/bin");
    check("bash: line 1: cargo: command not found\n", "exec cargo -> --read /home/me/.cargo");
    /* a link and where it leads; only where it leads when the link itself is there */
    check("bash: line 1: pipx-tool: command not found\n",
          "exec pipx-tool -> --read /home/me/.local/share/venvs/t --read /home/me/.local/bin");
    check("bash: line 1: linked: command not found\n",
          "exec linked -> --read /home/me/.nvm/versions/node/v20");
}

/* The command chose the path: what it may not talk anybody into. */
static void does_not_offer_what_would_give_the_host_away(void **state)
{
    (void)state;
    check("cat: /home/me/.ssh/id_rsa: No such file or directory\n",
          "read /home/me/.ssh/id_rsa -> " SECRET);
    check("ls: cannot access '/home/me/.ssh': No such file or directory\n",
          "read /home/me/.ssh -> " SECRET);
    check("cat: /home/me/keys/id_ed25519: No such file or directory\n",
          "read /home/me/keys/id_ed25519 -> " SECRET);
    check("cat: /home/me/.config/gh/hosts.yml: No such file or directory\n",
          "read /home/me/.config/gh/hosts.yml -> " SECRET);
    check("cat: /etc/shadow: No such file or directory\n", "read /etc/shadow -> " SECRET);
    check("cat: /proj/innocent: No such file or directory\n", "read /proj/innocent -> " SECRET);
    /* /proj/trap is a link to the home that the command made: not what is offered */
    check("cat: /proj/trap/x: No such file or directory\n",
          "read /proj/trap/x -> --read /home/me/x");
    check("ls: cannot access 'trap/.ssh': No such file or directory\n",
          "read trap/.ssh -> " SECRET);
    check("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker "
          "daemon running?\n",
          "read /var/run/docker.sock -> " SERVICE);
    check("dial unix /var/run/docker.sock: connect: no such file or directory\n",
          "read /var/run/docker.sock -> " SERVICE);
    check("connect: /tmp/ssh-AbC/agent.12: No such file or directory\n",
          "read /tmp/ssh-AbC/agent.12 -> " SERVICE);
    check("connect: /srv/odd.socket: No such file or directory\n",
          "read /srv/odd.socket -> " SERVICE);
    check("touch: cannot touch '/home/me/.cargo/bin/evil': Read-only file system\n",
          "write /home/me/.cargo/bin/evil -> " STARTED);
    check("touch: cannot touch '/ro/.git/hooks/pre-commit': Read-only file system\n",
          "write /ro/.git/hooks/pre-commit -> " STARTED);
    /* where a link leads has terminal sequences in it: nothing is said of it */
    check("cat: /evil: No such file or directory\n", "");
}

static void root_is_not_offered_system_directories(void **state)
{
    csn_explain_in in =
        input("cat: /etc/shadow: No such file or directory\n"
              "touch: cannot touch '/home/me/new': No such file or directory\n");

    (void)state;
    in.host_home = NULL;
    in.host_path = NULL;
    check_in(&in, "read /etc/shadow -> " SECRET "\nwrite /home/me/new -> " WIDE);
}

static void says_everything_once_and_in_order(void **state)
{
    (void)state;
    check("cat: /home/me/dir/x: No such file or directory\n"
          "bash: line 1: node: command not found\n"
          "bash: line 2: node: command not found\n"
          "cat: /home/me/dir/a b: No such file or directory\n"
          "curl: (6) Could not resolve host: example.com\n"
          "x: Temporary failure in name resolution\n",
          NODE "\nread /home/me/dir/a b -> --read /home/me/dir\n"
               "net example.com -> --allow example.com");
    csn_explain_in in = input("cat: /home/me/dir/x: No such file or directory\n");
    in.out =
        (csn_explain_text){.data = "cat: /tmp/note: No such file or directory\n", .len = 42};
    check_in(&in, READ_X "\nread /tmp/note -> --read /tmp/note");
}

static void fills_every_field(void **state)
{
    csn_explain_in in = input("touch: cannot touch '/ro/out/y': Read-only file system\n");
    csn_explain_out out = {0};

    (void)state;
    assert_int_equal(csn_explain(&in, &out, NULL), CSN_OK);
    assert_int_equal(out.count, 1);
    assert_string_equal(out.items[0].op, "write");
    assert_string_equal(out.items[0].target, "/ro/out/y");
    assert_string_equal(out.items[0].resolved, "/ro/out/y");
    assert_string_equal(out.items[0].rule, "read-only");
    assert_string_equal(out.items[0].source, "config.read[0]");
    assert_string_equal(out.items[0].hint, "--write /ro/out");
    csn_explain_release(&out);
    csn_explain_release(&out);
    in.cwd = "work";
    csn_error *err = NULL;
    assert_int_equal(csn_explain(&in, &out, &err), CSN_INVALID);
    csn_error_free(err);
}

/* --- hostile text --- */

static char *many(const char *piece, size_t total)
{
    char *text = malloc(total + 1);
    size_t n = strlen(piece);

    assert_non_null(text);
    for (size_t at = 0; at < total; at++)
        text[at] = piece[at % n];
    text[total] = '\0';
    return text;
}

static void survives_a_mebibyte_of_anything(void **state)
{
    static const char *const pieces[] = {
        "a",
        "'",
        "\"'`",
        "' \" ` \xe2\x80\x98 \xe2\x80\x9c",
        "\n",
        "\x1b",
        "\x1b[",
        "\x1b]",
        "\xff\xfe",
        "/",
        "../",
        ": ",
        "No such file or directory",
        "cat: /x: No such file or directory\n",
        "spawn  ENOENT",
        "No such file or directory: '/home/me/dir/x'",
        "fork: Resource temporarily unavailable ",
        "Read-only file system (os error 30)\n",
        "host='",
        " (: '\xe2\x80",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        char *text = many(pieces[i], 1u << 20);
        csn_explain_in in = input(text);
        in.disk_max = in.pids_max = 0;
        check_in(&in, "");
        free(text);
    }
}

/* 10000 different paths are not 10000 questions, and what was printed last is among them. */
static void asks_a_bounded_number_of_questions(void **state)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    assert_non_null(f);
    for (unsigned i = 0; i < 10000; i++)
        fprintf(f, "cat: /nowhere/%u: No such file or directory\n", i);
    fprintf(f, "cat: /home/me/dir/x: No such file or directory\n");
    assert_int_equal(fclose(f), 0);
    check(text, READ_X);
    assert_int_equal(looks, CSN_EXPLAIN_PROBES_MAX);
    free(text);
}

/* The start and the end of a long text are read, the middle is not. */
static void reads_both_ends_of_a_long_text(void **state)
{
    static const char first[] = "cat: /home/me/dir/x: No such file or directory\n";
    static const char last[] = "cat: /tmp/note: No such file or directory\n";
    static const char middle[] = "cat: /data/set.csv: No such file or directory\n";
    char *text = many("all is well\n", 600u * 1024u);
    size_t len = strlen(text);

    (void)state;
    memcpy(text, first, sizeof(first) - 1);
    memcpy(text + len / 2, middle, sizeof(middle) - 1);
    memcpy(text + len - sizeof(last) + 1, last, sizeof(last) - 1);
    text[len - sizeof(last)] = '\n';
    check(text, READ_X "\nread /tmp/note -> --read /tmp/note");
    free(text);
}

/* Where output was cut, half a line is left on either side. */
static void reads_no_line_across_a_seam(void **state)
{
    static const char text[] = "cat: /tmp/note: No such file or directory\n"
                               "cat: /home/me/longer/home/me/dir/x: No such file or directory\n"
                               "bash: line 1: node: command not found\n";
    csn_explain_in in = input(text);

    (void)state;
    in.err.cut = true;
    in.err.head = (size_t)(strstr(text, "/home/me/dir/x") - text);
    check_in(&in, "read /tmp/note -> --read /tmp/note\n" NODE);
    in.err.head = 0; /* the start is missing: so is what the first line began with */
    check_in(&in, NODE);
    in.err.head = in.err.len - 1; /* the end is missing */
    check_in(&in, "read /tmp/note -> --read /tmp/note");
    in.err.head = in.err.len + 9;
    check_in(&in, "read /tmp/note -> --read /tmp/note\n" NODE);
}

static void drops_what_could_fool_a_reader(void **state)
{
    static const char nul[] = "cat: /home/me/dir/x\0: No such file or directory\n";
    csn_explain_in in = input(nul);

    (void)state;
    in.err.len = sizeof(nul) - 1;
    check_in(&in, "");
    check("cat: '/home/me/dir/x\n': No such file or directory\n", "");
    check("cat: '/home/me/dir/\a': No such file or directory\n", "");
    check("cat: '/home/me/dir/\xff': No such file or directory\n", "");
    check("cat: '/home/me/dir/\xe2\x80\xae"
          "x': No such file or directory\n",
          "");
    check("cat: '/home/me/dir/\xc2\x9b"
          "x': No such file or directory\n",
          "");
    check("No such file or directory: '/home/me/dir/\\x'\n", "");
    /* sequences are taken out, also those that never end */
    check("cat: /home/me/\x1b]0;title\adir/x: No such file or directory\n", READ_X);
    check("cat: /home/me/dir/x\x1b[: No such file or directory\n", "");
    check("cat: /home/me/dir/x\x1b]: No such file or directory\n", "");
}

static void hint_for_a_denied_path_is_to_leave_out_the_denial(void **state)
{
    const char *no = "leave out --deny it";
    char want[128];
    csn_explain_in in = input("cat: denied: Permission denied\n");
    csn_explain_out found = {0};

    (void)state;
    snprintf(want, sizeof(want), "read denied -> %s", no);
    check("cat: denied: Permission denied\n", want);
    snprintf(want, sizeof(want), "write denied -> %s", no);
    check("bash: line 1: denied: Read-only file system\n", want);
    assert_int_equal(csn_explain(&in, &found, NULL), CSN_OK);
    assert_string_equal(found.items[0].rule, "deny it");
    csn_explain_release(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offers_the_smallest_sensible_grant),
        cmocka_unit_test(does_not_offer_what_would_give_the_host_away),
        cmocka_unit_test(root_is_not_offered_system_directories),
        cmocka_unit_test(says_everything_once_and_in_order),
        cmocka_unit_test(fills_every_field),
        cmocka_unit_test(survives_a_mebibyte_of_anything),
        cmocka_unit_test(asks_a_bounded_number_of_questions),
        cmocka_unit_test(reads_both_ends_of_a_long_text),
        cmocka_unit_test(reads_no_line_across_a_seam),
        cmocka_unit_test(drops_what_could_fool_a_reader),
        cmocka_unit_test(hint_for_a_denied_path_is_to_leave_out_the_denial),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
