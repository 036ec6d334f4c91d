package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caisson.dev/go/sandbox"
)

var ctx = context.Background()

// The workflow of the document: files, a script that npm runs, its result.
func TestSandbox_NPMWorkflow(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	sb, err := sandbox.New(sandbox.TypeLocal, sandbox.WithBaseDir(t.TempDir()),
		sandbox.WithTimeout(5*time.Minute))
	must(t, err)
	defer sb.Close()
	must(t, sb.WriteFile(ctx, "package.json", `{
        "name": "test",
        "scripts": {"test": "echo success"}
    }`))
	result, err := sb.Exec(ctx, "npm test")
	must(t, err)
	if result.ExitCode != 0 || !strings.Contains(result.Stdout, "success") {
		t.Fatalf("%+v", result)
	}
}

func TestNewOpensBackendsByName(t *testing.T) {
	for _, name := range []sandbox.Type{"local", "jail"} {
		sb, err := sandbox.New(name, sandbox.WithBaseDir(t.TempDir()))
		must(t, err)
		res, err := sb.Exec(ctx, "echo $((6 * 7))")
		must(t, err)
		if res.Stdout != "42\n" {
			t.Fatalf("%s: %+v", name, res)
		}
		must(t, sb.Close())
	}
	_, err := sandbox.New("no-such-backend")
	wantCode(t, "open", err, "invalid")
	if !strings.Contains(err.Error(), "no-such-backend") {
		t.Fatalf("the error does not name the backend: %v", err)
	}
}

func TestDirectoriesAreExportedAndRefreshed(t *testing.T) {
	for _, name := range []sandbox.Type{"local", "jail"} {
		sb, err := sandbox.New(name, sandbox.WithBaseDir(t.TempDir()))
		must(t, err)
		defer sb.Close()
		must(t, sb.WriteFiles(ctx, map[string]string{"d/a": "1", "d/e/b": "2"}))
		host := filepath.Join(t.TempDir(), "out")
		where, err := sb.ExportDirectory(ctx, "d", host)
		must(t, err)
		if where != host {
			t.Fatalf("exported to %s, not %s", where, host)
		}
		content, err := os.ReadFile(filepath.Join(host, "e/b"))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(host, "a"), append(content, '!'), 0o644))
		must(t, sb.RefreshFromHost(ctx, host, "back"))
		got, err := sb.ReadFile(ctx, "back/a")
		must(t, err)
		if got != "2!" {
			t.Fatalf("%s: %q", name, got)
		}
	}
}

func TestTheTimeoutOfASandboxEndsCommands(t *testing.T) {
	sb, err := sandbox.New("local", sandbox.WithBaseDir(t.TempDir()),
		sandbox.WithTimeout(50*time.Millisecond))
	must(t, err)
	defer sb.Close()
	res, err := sb.Exec(ctx, "exec sleep 600")
	must(t, err)
	if !res.TimedOut || res.KilledBy != "timeout" || res.ExitCode != -1 {
		t.Fatalf("%+v", res)
	}
}

func TestErrorsHaveWordsPathsAndHints(t *testing.T) {
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(workspace(t, map[string]string{"secret": "s"})),
		sandbox.WithDeny("secret"))
	must(t, err)
	defer sb.Close()
	_, err = sb.ReadFile(ctx, "secret")
	var e *sandbox.Error
	if !errors.As(err, &e) || e.Code != sandbox.ErrDenied || e.Path != "secret" ||
		e.Denial == nil || e.Denial.Op != "read" || e.Denial.Rule == "" || e.Op == "" {
		t.Fatalf("%#v", err)
	}
	if errors.Is(err, sandbox.ErrNotFound) || !errors.Is(err, os.ErrPermission) {
		t.Fatalf("errors.Is does not tell codes apart: %v", err)
	}
}
