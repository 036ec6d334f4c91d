/* What failed commands print, and what is made of it. The messages are those of the programs
 * themselves, run on Debian 12; the file systems are a table. */
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

/* A file the host has in a directory that was not granted. */
static void finds_the_missing_file_in_what_programs_print(void **state)
{
    static const char *const messages[] = {
        "cat: /home/me/dir/x: No such file or directory\n",
        "ls: cannot access '/home/me/dir/x': No such file or directory\n",
        "find: \xe2\x80\x98/home/me/dir/x\xe2\x80\x99: No such file or directory\n",
        "head: cannot open '/home/me/dir/x' for reading: No such file or directory\n",
        "sed: can't read /home/me/dir/x: No such file or directory\n",
        "awk: cannot open /home/me/dir/x (No such file or directory)\n",
        "sort: cannot read: /home/me/dir/x: No such file or directory\n",
        "/home/me/dir/x: cannot open `/home/me/dir/x' (No such file or directory)\n",
        "cp: cannot stat '/home/me/dir/x': No such file or directory\n",
        "bash: line 1: cd: /home/me/dir/x: No such file or directory\n",
        "bash: line 1: /home/me/dir/x: No such file or directory\n",
        "dash: 1: cd: can't cd to /home/me/dir/x\n",
        "dash: 1: cannot open /home/me/dir/x: No such file\n",
        "dash: 1: .: cannot open /home/me/dir/x: No such file\n",
        "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"
        "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/dir/x'\n",
        "/usr/bin/python3: can't open file '/home/me/dir/x': [Errno 2] No such file or "
        "directory\n",
        "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/dir/x' -> "
        "'/home/me/y'\n",
        "ERROR: Could not open requirements file: [Errno 2] No such file or directory: "
        "'/home/me/dir/x'\n",
        "node:fs:573\n  return binding.open(\n                 ^\n\nError: ENOENT: no such "
        "file "
        "or directory, open '/home/me/dir/x'\n    at Object.openSync (node:fs:573:18)\n",
        "Error: ENOENT: no such file or directory, rename '/home/me/dir/x' -> '/home/me/y'\n",
        "Error: Cannot find module '/home/me/dir/x'\nRequire stack:\n- /proj/[eval]\n",
        "fatal: cannot change to '/home/me/dir/x': No such file or directory\n",
        "fatal: repository '/home/me/dir/x' does not exist\n",
        "fatal: not a git repository: '/home/me/dir/x'\n",
        "error: can't open patch '/home/me/dir/x': No such file or directory\n",
        "cc1: fatal error: /home/me/dir/x: No such file or directory\ncompilation "
        "terminated.\n",
        "b.c:1:10: fatal error: '/home/me/dir/x' file not found\n#include \"/home/me/dir/x\"\n",
        "clang: error: no such file or directory: '/home/me/dir/x'\n",
        "/usr/bin/ld: cannot find /home/me/dir/x: No such file or directory\n",
        "make: *** /home/me/dir/x: No such file or directory.  Stop.\n",
        "make: *** No rule to make target '/home/me/dir/x', needed by 'a'.  Stop.\n",
        "M4:1: /home/me/dir/x: No such file or directory\n",
        "Can't open perl script \"/home/me/dir/x\": No such file or directory\n",
        "cannot open /home/me/dir/x: No such file or directory at -e line 1.\n",
        "Can't locate /home/me/dir/x at -e line 1.\n",
        "tar: /home/me/dir/x: Cannot open: No such file or directory\ntar: Error is not "
        "recoverable: exiting now\n",
        "Error: Unable to access jarfile /home/me/dir/x\n",
        "Exception in thread \"main\" java.io.FileNotFoundException: /home/me/dir/x (No such "
        "file or directory)\n\tat java.base/java.io.FileInputStream.open0(Native Method)\n",
        "Exception in thread \"main\" java.nio.file.NoSuchFileException: /home/me/dir/x\n",
        "Error: unable to open database \"/home/me/dir/x\": unable to open database file\n",
        "CMake Error: The source directory \"/home/me/dir/x\" does not exist.\n",
        "ninja: fatal: chdir to '/home/me/dir/x' - No such file or directory\n",
        "unzip:  cannot find or open /home/me/dir/x, /home/me/dir/x.zip or "
        "/home/me/dir/x.ZIP.\n",
        "jq: error: Could not open file /home/me/dir/x: No such file or directory\n",
        "error: couldn't read `/home/me/dir/x`: No such file or directory (os error 2)\n",
        "error: manifest path `/home/me/dir/x` does not exist\n",
        "error: failed to read `/home/me/dir/x`\n\nCaused by:\n  No such file or directory (os "
        "error 2)\n",
        "Assembler messages:\nError: can't open /home/me/dir/x for reading: No such file or "
        "directory\n",
        "Warning: Identity file /home/me/dir/x not accessible: No such file or directory.\n",
        "open /home/me/dir/x: no such file or directory\n",
        "panic: stat /home/me/dir/x: no such file or directory\n",
        "\x1b[1m\x1b[31merror\x1b[0m: couldn't read `\x1b[1m/home/me/dir/x\x1b[0m`: No such "
        "file or directory (os error 2)\n",
        "  0  100  50\r  0 100 100\rcurl: (37) Couldn't open file /home/me/dir/x\n"
        "cat: /home/me/dir/x: No such file or directory",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        check(messages[i], READ_X);
    check("npm error code ENOENT\nnpm error syscall open\nnpm error enoent Could not read "
          "package.json: Error: ENOENT: no such file or directory, open "
          "'/home/me/dir/package.json'\n",
          "read /home/me/dir/package.json -> --read /home/me/dir");
    check(
        "b.c:1:10: fatal error: /home/me/dir/x.h: No such file or directory\n    1 | #include "
        "\"/home/me/dir/x.h\"\n",
        "read /home/me/dir/x.h -> --read /home/me/dir");
}

static void cuts_paths_out_exactly(void **state)
{
    (void)state;
    check("ls: cannot access '/home/me/dir/a b': No such file or directory\n",
          "read /home/me/dir/a b -> --read /home/me/dir");
    check("cat: /home/me/dir/a b: No such file or directory\n",
          "read /home/me/dir/a b -> --read /home/me/dir");
    check("cat: \"/home/me/it's\": No such file or directory\n",
          "read /home/me/it's -> --read '/home/me/it'\\''s'");
    check("cat: ~/dir/x: No such file or directory\n", "read ~/dir/x -> --read /home/me/dir");
    check("cat: ../home/me/dir/x: No such file or directory\n",
          "read ../home/me/dir/x -> --read /home/me/dir");
    check("cat: /proj/../../home/me/dir/x: No such file or directory\n",
          "read /proj/../../home/me/dir/x -> --read /home/me/dir");
    check("cat: /home//me/./dir/x: No such file or directory\n",
          "read /home//me/./dir/x -> --read /home/me/dir");
    /* `..` that nobody resolved, a quote that is not closed, another name that starts the same
     */
    check("cat: ../lost: No such file or directory\n", "");
    check("cat: '/home/me/dir/x: No such file or directory\n", "");
    check("No such file or directory: '/home/me/dir/x\n", "");
    check("cat: /home/me/dir/x and more: No such file or directory\n", "");
    check("cat: /home/me/dir/xy: No such file or directory\n", "");
    check("cat: s/home/me/dir/x: No such file or directory\n", "");
}

/* Nothing that the sandbox did. */
static void stays_silent_about_ordinary_failures(void **state)
{
    static const char *const messages[] = {
        "",
        "\n\n\n",
        "cat: /nowhere: No such file or directory\n",
        "cat: nowhere: No such file or directory\n",
        "cat: /home/me/dir/nowhere: No such file or directory\n",
        "cat: /home/me/theirs: No such file or directory\n",
        "cat: /home/me/theirs: Permission denied\n",
        "cat: /etc/passwd: Permission denied\n",
        "touch: cannot touch '/rootsown/x': Read-only file system\n",
        "touch: cannot touch '/rootsown/x': Permission denied\n",
        "touch: cannot touch '/proj/x': Read-only file system\n",
        "bash: line 1: ./a.c: Permission denied\n",
        "bash: line 1: /ro/f: Permission denied\n",
        "bash: line 1: nosuchtool: command not found\n",
        "bash: line 1: python3: command not found\n",
        "cat: node: No such file or directory\n",
        "FileNotFoundError: [Errno 2] No such file or directory: 'node'\n",
        "make: *** No rule to make target 'node'.  Stop.\n",
        "curl: (22) The requested URL returned error: 404 Not Found\n",
        "error: package node: not found\n",
        "configure: checking for node: not found\n",
        "ModuleNotFoundError: No module named 'nope'\n",
        "fatal: not a git repository (or any of the parent directories): .git\n",
        "c.c:1:10: fatal error: nope.h: No such file or directory\n",
        "/usr/bin/ld: cannot find -lnope: No such file or directory\n",
        "./needs: error while loading shared libraries: libnope.so.1: cannot open shared "
        "object file: No such file or directory\n",
        "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n",
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
        "read: Resource temporarily unavailable\n",
        "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to "
        "server\n",
        "curl: (7) Failed to connect to localhost port 9 after 0 ms: Couldn't connect\n",
        "chown: changing ownership of 'a': Operation not permitted\n",
        "dmesg: read kernel buffer failed: Operation not permitted\n",
        "a large amount of things: Operation not permitted\n",
        "FAILED tests/x.py::test_home - assert '/home/me/dir/x' in paths\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        check(messages[i], "");
}

static void finds_the_tool_that_was_not_granted(void **state)
{
    static const char *const messages[] = {
        "bash: line 1: node: command not found\n",
        "bash: node: command not found\n",
        "zsh: command not found: node\n",
        "dash: 1: node: not found\n",
        "/bin/sh: 1: node: not found\n",
        "sh: node: not found\n",
        "bash: line 1: exec: node: not found\n",
        "env: \xe2\x80\x98node\xe2\x80\x99: No such file or directory\n",
        "/usr/bin/env: 'node': No such file or directory\n",
        "xargs: node: No such file or directory\n",
        "make: node: No such file or directory\nmake: *** [Makefile:2: all] Error 127\n",
        "timeout: failed to run command \xe2\x80\x98node\xe2\x80\x99: No such file or "
        "directory\n",
        "nohup: failed to run command 'node': No such file or directory\n",
        "strace: Can't stat 'node': No such file or directory\n",
        "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/subprocess.py\", "
        "line "
        "1901, in _execute_child\n    raise child_exception_type(errno_num, err_msg, "
        "err_filename)\nFileNotFoundError: [Errno 2] No such file or directory: 'node'\n",
        "Error: spawn node ENOENT\n    at ChildProcess._handle.onexit\n",
        "npm error enoent spawn node ENOENT\n",
        "Exception in thread \"main\" java.io.IOException: Cannot run program \"node\": "
        "error=2, "
        "No such file or directory\n",
        "exec: \"node\": executable file not found in $PATH\n",
        "error: linker `node` not found\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        check(messages[i], NODE);
}

static void finds_the_toolchains_that_a_home_lacks(void **state)
{
    (void)state;
    check("error: rustup could not choose a version of cargo to run, because one wasn't "
          "specified explicitly, and no default is configured.\n",
          "read ~/.rustup -> --read \"$HOME/.rustup\" --env \"RUSTUP_HOME=$HOME/.rustup\"");
}

/* Whether the host has it is not known; the text decides. */
static void offers_what_the_sandbox_does_not_show(void **state)
{
    csn_explain_in in = input("bash: line 1: tool: command not found\n");

    (void)state;
    check("cat: /hidden/f: No such file or directory\n", "read /hidden/f -> --read /hidden/f");
    check("cat: /hidden/f.c: No such file or directory\n",
          "read /hidden/f.c -> --read /hidden");
    check("cat: /hidden/f: Permission denied\n", "read /hidden/f -> --read /hidden/f");
    check("cat: /hidden/id_rsa: No such file or directory\n",
          "read /hidden/id_rsa -> no grant is offered: it may hold keys or passwords");
    check("mkdir: cannot create directory '/hidden/new': No such file or directory\n",
          "write /hidden/new -> --write /hidden");
    check("bash: line 1: /hidden/new: No such file or directory\n",
          "write /hidden/new -> --write /hidden");
    check("env: '/hidden/kit/bin/tool': No such file or directory\n",
          "exec /hidden/kit/bin/tool -> --read /hidden/kit");
    in.exit_code = 127;
    check_in(&in, "");
    in.path = "/usr/bin"; /* the sandbox shows less of PATH than the host has */
    check_in(&in, "exec tool -> --read DIRECTORY");
}

static void finds_the_missing_interpreter_and_library(void **state)
{
    static const char want[] = "exec /home/me/.nvm/versions/node/v20/bin/node -> --read "
                               "/home/me/.nvm/versions/node/v20";

    (void)state;
    check("bash: ./script: /home/me/.nvm/versions/node/v20/bin/node: bad interpreter: No such "
          "file or directory\n",
          want);
    check("bash: line 1: ./script: cannot execute: required file not found\n", want);
    check("dash: 1: ./script: not found\n", want);
    check("./script: bad interpreter: No such file or directory\n", want);
    check("env: './script': No such file or directory\n", want);
    check("./a.c: bad interpreter: No such file or directory\n", "");
    check("dash: 1: /home/me/.nvm/versions/node/v20/bin/node: not found\n", want);
    check("./needs: error while loading shared libraries: libz9.so: cannot open shared object "
          "file: No such file or directory\n",
          "read libz9.so -> --read /home/me/libs");
    check("OSError: /home/me/libs/libz9.so: cannot open shared object file: No such file or "
          "directory\n",
          "read /home/me/libs/libz9.so -> --read /home/me/libs");
}

/* No text at all: the program itself could not be started. */
static void explains_a_program_that_never_started(void **state)
{
    csn_explain_in in = input(NULL);

    (void)state;
    in.exit_code = 127;
    in.argv0 = "node";
    check_in(&in, NODE);
    in.argv0 = "/home/me/.local/bin/mine";
    check_in(&in, "exec /home/me/.local/bin/mine -> --read /home/me/.local/bin");
    in.argv0 = "sh";
    check_in(&in, "");
    in.err = input("bash: line 1: /home/me/.cargo/bin/cargo: No such file or directory\n").err;
    check_in(&in, "exec /home/me/.cargo/bin/cargo -> --read /home/me/.cargo");
    in.err.len = 0;
    in.argv0 = NULL;
    check_in(&in, "");
    in.exit_code = 0;
    in.argv0 = "node";
    check_in(&in, "");
}

static void finds_what_is_read_only(void **state)
{
    static const char *const messages[] = {
        "bash: line 1: /ro/new: Read-only file system\n",
        "dash: 1: cannot create /ro/new: Read-only file system\n",
        "touch: cannot touch '/ro/new': Read-only file system\n",
        "mkdir: cannot create directory \xe2\x80\x98/ro/new\xe2\x80\x99: Read-only file "
        "system\n",
        "mv: cannot move '/proj/a.c' to '/ro/new': Read-only file system\n",
        "sed: couldn't open temporary file /ro/new: Read-only file system\n",
        "sort: open failed: /ro/new: Read-only file system\n",
        "OSError: [Errno 30] Read-only file system: '/ro/new'\n",
        "Error: EROFS: read-only file system, open '/ro/new'\n",
        "fatal: cannot mkdir /ro/new: Read-only file system\n",
        "ld: cannot open output file /ro/new: Read-only file system\n",
        "tar: /ro/new: Cannot open: Read-only file system\n",
        "Saving key \"/ro/new\" failed: Read-only file system\n",
        "E: Unable to mkstemp /ro/new - GetTempFile (30: Read-only file system)\n",
        "/ro/new: Read-only file system\n",
        "Warning: Failed to open the file /ro/new: Read-only file system\n",
        "error: failed to create package `xx` at `/ro/new`\n\nCaused by:\n  failed to create "
        "directory `/ro/new`\n\nCaused by:\n  Read-only file system (os error 30)\n",
        "mkdir: cannot create directory '/ro/new': Permission denied\n",
        "bash: line 1: /ro/new: Permission denied\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        check(messages[i], "write /ro/new -> --write /ro");
    check("rm: cannot remove '/ro/f': Read-only file system\n", "write /ro/f -> --write /ro");
    check("rm: cannot remove '/ro/f': Permission denied\n", "write /ro/f -> --write /ro");
    check("touch: cannot touch '/ro/out/y': Read-only file system\n",
          "write /ro/out/y -> --write /ro/out");
    csn_explain_in in = input("error: could not lock config file .git/config: Read-only file "
                              "system\n");
    in.cwd = "/ro";
    check_in(&in, "write .git/config -> --write /ro/.git");
    in = input("tar: home: Cannot mkdir: Read-only file system\n");
    in.cwd = "/ro";
    check_in(&in, "write home -> --write /ro");
}

/* In a directory that is not there at all, creating looks like a missing file. */
static void finds_the_missing_directory_of_a_new_file(void **state)
{
    (void)state;
    check("touch: cannot touch '/home/me/dir/new': No such file or directory\n",
          "write /home/me/dir/new -> --write /home/me/dir");
    check("dash: 1: cannot create /home/me/dir/new: Directory nonexistent\n",
          "write /home/me/dir/new -> --write /home/me/dir");
    check("/usr/bin/ld: cannot open output file /home/me/dir/new: No such file or directory\n",
          "write /home/me/dir/new -> --write /home/me/dir");
    check("touch: cannot touch '/nowhere/new': No such file or directory\n", "");
    check("touch: cannot touch '/home/me/theirs.d/new': No such file or directory\n", "");
}

static void names_the_host_of_a_closed_network(void **state)
{
    static const struct {
        const char *text, *host;
    } cases[] = {
        {"  0     0    0 --:--:--     0curl: (6) Could not resolve host: example.com\n",
         "example.com"},
        {"curl: (7) Failed to connect to 1.2.3.4 port 80 after 0 ms: Couldn't connect to "
         "server\n",
         "1.2.3.4:80"},
        {"Resolving example.com (example.com)... failed: Temporary failure in name "
         "resolution.\nwget: unable to resolve host address \xe2\x80\x98"
         "example.com\xe2\x80\x99\n",
         "example.com"},
        {"Connecting to 1.2.3.4:80... failed: Network is unreachable.\n", "1.2.3.4:80"},
        {"fatal: unable to access 'https://github.com/a/b/': Could not resolve host: "
         "github.com\n",
         "github.com"},
        {"ssh: Could not resolve hostname github.com: Temporary failure in name resolution\n",
         "github.com"},
        {"fatal: unable to look up github.com (port 9418) (Temporary failure in name "
         "resolution)\n",
         "github.com:9418"},
        {"ssh: connect to host 1.2.3.4 port 22: Network is unreachable\n", "1.2.3.4:22"},
        {"Error: getaddrinfo EAI_AGAIN example.com\n", "example.com"},
        {"Error: getaddrinfo ENOTFOUND example.com example.com:443\n", "example.com"},
        {"Error: connect ENETUNREACH 1.2.3.4:80 - Local (0.0.0.0:0)\n", "1.2.3.4:80"},
        {"npm error request to https://registry.test/left-pad failed, reason: getaddrinfo "
         "EAI_AGAIN registry.test\n",
         "registry.test"},
        {"  [6] Could not resolve hostname (Could not resolve host: index.test)\n",
         "index.test"},
        {"connect: IO::Socket::INET: Bad hostname 'example.com:80' Invalid argument\n",
         "example.com:80"},
        {"wget: bad address 'example.com'\n", "example.com"},
        {"wget: can't connect to remote host (1.2.3.4): Network is unreachable\n", "1.2.3.4"},
        {"bash: line 1: /dev/tcp/1.2.3.4/80: Network is unreachable\n", "1.2.3.4:80"},
        {"bash: line 1: example.com: Temporary failure in name resolution\n", "example.com"},
        {"Exception in thread \"main\" java.net.UnknownHostException: example.com\n",
         "example.com"},
        {"dial tcp: lookup example.com on 10.0.0.1:53: read udp: i/o timeout\n", "example.com"},
        {"dial tcp 1.2.3.4:443: connect: network is unreachable\n", "1.2.3.4:443"},
        {"HTTPSConnectionPool(host='example.com', port=443): Max retries exceeded with url: /x "
         "(Caused by NewConnectionError('<x>: Failed to establish a new connection: [Errno "
         "101] Network is unreachable'))\n",
         "example.com:443"},
        {"E: Failed to fetch http://deb.test/x  Temporary failure resolving 'deb.test'\n",
         "deb.test"},
    };
    char want[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(want, sizeof(want), "net %s -> --allow %s", cases[i].host, cases[i].host);
        check(cases[i].text, want);
    }
    check("socket.gaierror: [Errno -3] Temporary failure in name resolution\n",
          "net - -> --allow HOST");
    check("urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>\n",
          "net - -> --allow HOST");
    csn_explain_in in = input(cases[0].text);
    in.net_rule = NULL;
    check_in(&in, "");
}

static void does_not_offer_hosts_that_give_out_keys(void **state)
{
    static const char want[] = "no grant is offered: it gives out the credentials of this "
                               "machine";

    (void)state;
    csn_explain_in in = input("curl: (7) Failed to connect to 169.254.169.254 port 80 after 0 "
                              "ms: x\n");
    assert_non_null(strstr(tell(&in), want));
    in = input("curl: (6) Could not resolve host: Metadata.google.internal\n");
    assert_non_null(strstr(tell(&in), want));
    /* a name of other letters is not cut short to one that exists */
    check("curl: (6) Could not resolve host: ex\xc3\xa4mple.com\n", "");
    check("curl: (6) Could not resolve host: a.com$(reboot)\n", "");
    check("curl: (6) Could not resolve host: --net\n", "");
}

static void names_the_limit_that_was_met(void **state)
{
    (void)state;
    check("dd: error writing '/proj/big': No space left on device\n",
          "limit disk -> --disk 128M");
    check("npm error nospc ENOSPC: no space left on device, open '/proj/x'\n",
          "limit disk -> --disk 128M");
    check("OSError: [Errno 27] File too large\n", "limit file -> --limit-file 2M");
    check(
        "bash: fork: retry: Resource temporarily unavailable\nbash: fork: Resource temporarily "
        "unavailable\n",
        "limit pids -> --pids 200");
    check("dash: 0: Cannot fork\n", "limit pids -> --pids 200");
    check("RuntimeError: can't start new thread\n", "limit pids -> --pids 200");
    check("BlockingIOError: [Errno 11] Resource temporarily unavailable\n",
          "limit pids -> --pids 200");
    check("make: /bin/sh: Resource temporarily unavailable\n", "limit pids -> --pids 200");
    check("Traceback:\nMemoryError\n", "limit memory -> --memory 6G");
    check("Out of memory!\n", "limit memory -> --memory 6G");
    check("bash: xrealloc: cannot allocate 200257536 bytes\n", "limit memory -> --memory 6G");
    check("fork: Cannot allocate memory\n", "limit memory -> --memory 6G");
    csn_explain_in in = input("MemoryError\nNo space left on device\nCannot fork\n");
    in.memory_max = in.disk_max = in.pids_max = 0;
    check_in(&in, "");
}

static void names_the_refused_system_call(void **state)
{
    csn_explain_in in = input(NULL);

    (void)state;
    check("unshare: unshare failed: Operation not permitted\n", "syscall unshare -> -");
    check("bwrap: Creating new namespace failed: Operation not permitted\n",
          "syscall unshare -> -");
    check("mount: /mnt: Operation not permitted\n", "syscall mount -> -");
    check("strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted\n", "");
    in.exit_code = 0;
    in.signal = SIGSYS;
    check_in(&in, "syscall sh -> -");
    in = input("Bad system call\n");
    in.exit_code = 128 + SIGSYS;
    in.argv0 = "\x1b[2J";
    check_in(&in, "syscall - -> -");
    in = input("unshare: unshare failed: Operation not permitted\n");
    in.refuses = NULL;
    check_in(&in, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_missing_file_in_what_programs_print),
        cmocka_unit_test(cuts_paths_out_exactly),
        cmocka_unit_test(stays_silent_about_ordinary_failures),
        cmocka_unit_test(finds_the_tool_that_was_not_granted),
        cmocka_unit_test(finds_the_toolchains_that_a_home_lacks),
        cmocka_unit_test(offers_what_the_sandbox_does_not_show),
        cmocka_unit_test(finds_the_missing_interpreter_and_library),
        cmocka_unit_test(explains_a_program_that_never_started),
        cmocka_unit_test(finds_what_is_read_only),
        cmocka_unit_test(finds_the_missing_directory_of_a_new_file),
        cmocka_unit_test(names_the_host_of_a_closed_network),
        cmocka_unit_test(does_not_offer_hosts_that_give_out_keys),
        cmocka_unit_test(names_the_limit_that_was_met),
        cmocka_unit_test(names_the_refused_system_call),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
