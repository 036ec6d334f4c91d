package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"caisson.dev/go/sandbox"
)

// hostBackend runs commands in a directory of this machine.
type hostBackend struct{ dir string }

func (b hostBackend) Exec(ctx context.Context, req *sandbox.BackendRequest) (sandbox.BackendResult, error) {
	if req.Argv[0] == "break" {
		return sandbox.BackendResult{}, &sandbox.Error{Code: sandbox.ErrUnavailable, Message: "it is broken"}
	}
	if req.Argv[0] == "panic" {
		panic("in the backend")
	}
	cmd := exec.CommandContext(ctx, req.Argv[0], req.Argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.dir, req.Stdin, req.Stdout, req.Stderr
	if req.Cwd != "" {
		cmd.Dir = req.Cwd
	}
	cmd.Env = append(cmd.Environ(), req.Env...)
	if req.Merge {
		cmd.Stderr = cmd.Stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return sandbox.BackendResult{Spawn: err.Error()}, nil
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	result := sandbox.BackendResult{ExitCode: cmd.ProcessState.ExitCode()}
	if status.Signaled() {
		result.Signal = status.Signal()
	}
	return result, nil
}

func TestABackendInGo(t *testing.T) {
	dir := t.TempDir()
	must(t, sandbox.RegisterBackend("go-host", hostBackend{dir}))
	wantCode(t, "again", sandbox.RegisterBackend("go-host", hostBackend{dir}), "exists")
	sb, err := sandbox.Open("go-host")
	must(t, err)
	defer sb.Close()
	must(t, sb.SetWorkdir(ctx, dir))

	t.Run("commands", func(t *testing.T) { backendCommands(t, sb) })
	t.Run("files", func(t *testing.T) { backendFiles(t, sb) })
	t.Run("ends", func(t *testing.T) { backendEnds(t, sb) })
}

func backendCommands(t *testing.T, sb *sandbox.Caisson) {
	var out bytes.Buffer
	large := strings.Repeat("0123456789abcde\n", 30000)
	res, err := sb.Run(ctx, []string{"cat"}, &sandbox.ExecOptions{Stdin: strings.NewReader(large), Stdout: &out})
	must(t, err)
	if res.Stdout != large || out.String() != large {
		t.Fatalf("%d and %d bytes, want %d", len(res.Stdout), out.Len(), len(large))
	}
	res, err = sb.Run(ctx, []string{"cat"}, &sandbox.ExecOptions{
		Stdin: io.MultiReader(strings.NewReader("through "), strings.NewReader("a pipe"))})
	must(t, err)
	if res.Stdout != "through a pipe" {
		t.Fatalf("%+v", res)
	}
	res, err = sb.Sh(ctx, "echo $A; echo e >&2; exit 3", &sandbox.ExecOptions{Env: []string{"A=b"}})
	must(t, err)
	if res.Stdout != "b\n" || res.Stderr != "e\n" || res.ExitCode != 3 {
		t.Fatalf("%+v", res)
	}
}

func backendFiles(t *testing.T, sb *sandbox.Caisson) {
	must(t, sb.WriteFiles(ctx, map[string]string{"d/a": "one\ntwo\n", "d/b": "x"}))
	names, err := sb.ListDirectory(ctx, "d")
	must(t, err)
	found, err := sb.Grep(ctx, "two", &sandbox.GrepOptions{Path: "d"})
	must(t, err)
	got, err := sb.ReadFile(ctx, "d/a")
	must(t, err)
	if strings.Join(names, " ") != "a b" || len(found.Items) != 1 || got != "one\ntwo\n" {
		t.Fatalf("%v %+v %q", names, found, got)
	}
	_, err = sb.Edit(ctx, "d/a", []sandbox.Edit{{Old: "two", New: "2"}})
	must(t, err)
	must(t, sb.Delete(ctx, "d", sandbox.FileRecursive))
	_, err = sb.Stat(ctx, "d")
	wantCode(t, "stat", err, "not_found")
}

func backendEnds(t *testing.T, sb *sandbox.Caisson) {
	res, err := sb.Sh(ctx, "sleep 600", &sandbox.ExecOptions{Timeout: 50 * time.Millisecond})
	must(t, err)
	if !res.TimedOut {
		t.Fatalf("%+v", res)
	}
	cancelled, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err = sb.Sh(cancelled, "sleep 600", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v", err)
	}
	if _, err = sb.Sh(ctx, "echo a; exec sleep 600", &sandbox.ExecOptions{Stdout: fullWriter{}}); !errors.Is(err, errFull) {
		t.Fatalf("the error is %v", err)
	}
	_, err = sb.Run(ctx, []string{"break"}, nil)
	wantCode(t, "break", err, "unavailable")
	_, err = sb.Run(ctx, []string{"panic"}, nil)
	wantCode(t, "panic", err, "internal")
	res, err = sb.Run(ctx, []string{"no-such-program"}, nil)
	must(t, err)
	if res.ExitCode != 127 {
		t.Fatalf("%+v", res)
	}
}
