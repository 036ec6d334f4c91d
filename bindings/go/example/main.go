// Command example is the loop of a coding agent with a scripted model: no account and no network.
//
// The agent works in a jail on a copy-on-write workspace: it reads, edits and runs the tests, is
// refused something and sees the hint, and its changes reach the host only with the commit.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"caisson.dev/go/sandbox"
)

// toolCall is what a model asks for.
type toolCall struct {
	tool     string
	path     string
	old, new string
	command  string
}

// script is the model: it fixes a bug, runs the tests and tries to reach the network.
var script = []toolCall{
	{tool: "bash", command: "python3 -m unittest -q"},
	{tool: "read", path: "add.py"},
	{tool: "edit", path: "add.py", old: "a - b", new: "a + b"},
	{tool: "bash", command: "python3 -m unittest -q"},
	{tool: "bash", command: "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.org\")'"},
	{tool: "read", path: "secret.env"},
}

var files = map[string]string{
	"add.py": "def add(a, b):\n    return a - b\n",
	"test_add.py": "import unittest\nfrom add import add\n\n\nclass T(unittest.TestCase):\n" +
		"    def test(self):\n        self.assertEqual(add(1, 2), 3)\n",
	"secret.env": "TOKEN=1\n",
}

func main() {
	dir, err := os.MkdirTemp("", "example")
	check(err)
	defer os.RemoveAll(dir)
	for name, content := range files {
		check(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(dir), sandbox.WithCOW(true),
		sandbox.WithDeny("secret.env"), sandbox.WithEnv("PYTHONDONTWRITEBYTECODE=1"))
	check(err)
	defer sb.Close()

	ctx := context.Background()
	for _, call := range script {
		fmt.Printf("> %s %s%s\n", call.tool, call.path, call.command)
		if err := do(ctx, sb, call); err != nil {
			explain(err)
		}
	}
	finish(ctx, sb, dir)
}

// do performs one call of the model and prints what the model would see.
func do(ctx context.Context, sb *sandbox.Caisson, call toolCall) error {
	switch call.tool {
	case "read":
		r, err := sb.Read(ctx, call.path, nil)
		if err != nil {
			return err
		}
		fmt.Print(r.Content)
	case "edit":
		r, err := sb.Edit(ctx, call.path, []sandbox.Edit{{Old: call.old, New: call.new}})
		if err != nil {
			return err
		}
		fmt.Printf("%d replaced\n", r.Occurrences)
	case "bash":
		r, err := sb.Sh(ctx, call.command, &sandbox.ExecOptions{Merge: true, Keep: "tail", OutputMax: 200})
		if err != nil {
			return err
		}
		fmt.Printf("%s[exit %d]\n", r.Output, r.ExitCode)
		for _, d := range r.Denials {
			fmt.Printf("denied: %s %s; hint: %s\n", d.Op, d.Target, d.Hint)
		}
	}
	return nil
}

// explain prints an error as a model should see it.
func explain(err error) {
	fmt.Println("error:", err)
	var e *sandbox.Error
	if errors.As(err, &e) && e.Hint != "" {
		fmt.Println("hint:", e.Hint)
	}
}

// finish shows the changes and writes them to the host.
func finish(ctx context.Context, sb *sandbox.Caisson, dir string) {
	diff, err := sb.Diff(ctx, &sandbox.DiffOptions{Patch: true})
	check(err)
	fmt.Print("> diff\n", diff.Patch)
	before, err := os.ReadFile(filepath.Join(dir, "add.py"))
	check(err)
	result, err := sb.Commit(ctx, nil)
	check(err)
	after, err := os.ReadFile(filepath.Join(dir, "add.py"))
	check(err)
	fmt.Printf("> commit: %d applied\n", result.Applied)
	if !result.Written || string(before) != files["add.py"] || string(after) == string(before) {
		log.Fatal("the host's file changed before the commit, or not with it")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
