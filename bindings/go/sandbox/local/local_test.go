package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"caisson.dev/go/sandbox"
)

var ctx = context.Background()

// open opens a sandbox on a directory of the test's own.
func open(t testing.TB) (*LocalSandbox, string) {
	t.Helper()
	dir := t.TempDir()
	sb, err := NewLocalSandbox(dir)
	must(t, err)
	t.Cleanup(func() { must(t, sb.Close()) })
	return sb, dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func TestLocalSandbox_Exec(t *testing.T) {
	tests := []struct {
		name, command  string
		exitCode       int
		stdout, stderr string
	}{
		{"output", "echo hello", 0, "hello\n", ""},
		{"both streams", "echo out; echo err >&2", 0, "out\n", "err\n"},
		{"exit code", "exit 7", 7, "", ""},
		{"shell syntax", "printf %s a | tr a b && test -d .", 0, "b", ""},
		{"missing program", "no-such-program 2>/dev/null", 127, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sb, _ := open(t)
			res, err := sb.Exec(ctx, tt.command)
			must(t, err)
			equal(t, "exit code", res.ExitCode, tt.exitCode)
			equal(t, "stdout", res.Stdout, tt.stdout)
			equal(t, "stderr", res.Stderr, tt.stderr)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		sb, _ := open(t)
		ctx, cancel := context.WithCancel(ctx)
		_, err := sb.Stream(ctx, "echo started; exec sleep 600", &sandbox.ExecOptions{
			Stdout: writerFunc(func([]byte) { cancel() })}).Result()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("the error is %v", err)
		}
	})
}

type writerFunc func([]byte)

func (w writerFunc) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestLocalSandbox_WriteFile(t *testing.T) {
	tests := []struct {
		name    string
		path    string
		content string
		wantErr bool
		errMsg  string
	}{
		{name: "simple file", path: "test.txt", content: "hello world"},
		{name: "nested path", path: "subdir/test.txt", content: "nested"},
		{name: "path traversal attempt", path: "../outside.txt", content: "malicious",
			wantErr: true, errMsg: "outside base directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sb, _ := open(t)
			err := sb.WriteFile(ctx, tt.path, tt.content)
			if tt.wantErr {
				if err == nil || !strings.Contains(err.Error(), tt.errMsg) {
					t.Fatalf("the error is %v, not %q", err, tt.errMsg)
				}
				return
			}
			must(t, err)
			content, err := sb.ReadFile(ctx, tt.path)
			must(t, err)
			equal(t, "content", content, tt.content)
		})
	}
	t.Run("all or none", func(t *testing.T) {
		sb, dir := open(t)
		must(t, sb.WriteFiles(ctx, map[string]string{"a/1": "one", "a/2": "two"}))
		if err := sb.WriteFiles(ctx, map[string]string{"b": "b", "../c": "c"}); err == nil {
			t.Fatal("a file outside was written")
		}
		names, err := sb.ListDirectory(ctx, ".")
		must(t, err)
		equal(t, "names in "+dir, strings.Join(names, " "), "a")
	})
}

func TestLocalSandbox_ReadFile(t *testing.T) {
	sb, dir := open(t)
	content := strings.Repeat("line\n", 100000) + "\x00\xff"
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o600))
	got, err := sb.ReadFile(ctx, "f")
	must(t, err)
	if got != content {
		t.Fatal("the content differs")
	}
	_, err = sb.ReadFile(ctx, "missing")
	if !errors.Is(err, sandbox.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the error is %v", err)
	}
	must(t, sb.DeleteFile(ctx, "f"))
	if _, err := os.Stat(filepath.Join(dir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the file is still there: %v", err)
	}
}

func TestLocalSandbox_ListDirectory(t *testing.T) {
	sb, _ := open(t)
	must(t, sb.WriteFiles(ctx, map[string]string{"b": "", "a": "", "c/d": "", ".hidden": ""}))
	names, err := sb.ListDirectory(ctx, ".")
	must(t, err)
	if want := []string{".hidden", "a", "b", "c"}; !slices.Equal(names, want) {
		t.Fatalf("%v, want %v", names, want)
	}
	if _, err := sb.ListDirectory(ctx, "none"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Fatalf("the error is %v", err)
	}
}

func TestLocalSandbox_SetWorkdir(t *testing.T) {
	sb, dir := open(t)
	must(t, sb.WriteFile(ctx, "sub/f", "x"))
	must(t, sb.SetWorkdir(ctx, "sub"))
	res, err := sb.Exec(ctx, "pwd -P")
	must(t, err)
	real, err := filepath.EvalSymlinks(filepath.Join(dir, "sub"))
	must(t, err)
	equal(t, "directory", res.Stdout, real+"\n")
	content, err := sb.ReadFile(ctx, "f")
	must(t, err)
	equal(t, "content", content, "x")
	if err := sb.SetWorkdir(ctx, "../.."); !errors.Is(err, sandbox.ErrOutside) {
		t.Fatalf("the error is %v", err)
	}
}

// outsideFile makes a file beside the base directory of a sandbox.
func outsideFile(t *testing.T) string {
	at := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(at, []byte("secret"), 0o600))
	return at
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, sandbox.ErrOutside) || !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("%s: the error is %v", what, err)
	}
}

func TestLocalSandbox_PathTraversal(t *testing.T) {
	sb, _ := open(t)
	secret := outsideFile(t)
	must(t, sb.WriteFile(ctx, "d/f", "x"))
	for _, path := range []string{"../x", "d/../../x", "../../../../etc/passwd", "d/../../../tmp/x",
		strings.Repeat("../", 40) + secret[1:]} {
		_, err := sb.ReadFile(ctx, path)
		refused(t, "read "+path, err)
		refused(t, "write "+path, sb.WriteFile(ctx, path, "evil"))
		refused(t, "delete "+path, sb.DeleteFile(ctx, path))
		_, err = sb.ListDirectory(ctx, path)
		refused(t, "list "+path, err)
		refused(t, "workdir "+path, sb.SetWorkdir(ctx, path))
	}
	if _, err := sb.ReadFile(ctx, "d/f\x00/../../x"); !errors.Is(err, sandbox.ErrInvalid) {
		t.Fatalf("a NUL byte in a path: the error is %v", err)
	}
	content, err := os.ReadFile(secret)
	must(t, err)
	equal(t, "secret", string(content), "secret")
}

func TestLocalSandbox_SymlinkEscape(t *testing.T) {
	sb, dir := open(t)
	secret := outsideFile(t)
	must(t, os.Symlink(secret, filepath.Join(dir, "file")))
	must(t, os.Symlink(filepath.Dir(secret), filepath.Join(dir, "dir")))
	must(t, os.Symlink("dir", filepath.Join(dir, "chain")))
	for _, path := range []string{"file", "dir/secret", "chain/secret", "dir/new"} {
		_, err := sb.ReadFile(ctx, path)
		refused(t, "read "+path, err)
	}
	for _, path := range []string{"dir/new", "chain/new", "dir/secret"} {
		refused(t, "write "+path, sb.WriteFile(ctx, path, "evil"))
		refused(t, "delete "+path, sb.DeleteFile(ctx, path))
	}
	content, err := os.ReadFile(secret)
	must(t, err)
	equal(t, "secret", string(content), "secret")
	names, err := os.ReadDir(filepath.Dir(secret))
	must(t, err)
	equal(t, "files outside", len(names), 1)
}

func TestLocalSandbox_Concurrent(t *testing.T) {
	sb, _ := open(t)
	const workers = 32
	var group sync.WaitGroup
	failures := make(chan error, workers)
	for i := range workers {
		group.Go(func() { failures <- work(sb, i) })
	}
	group.Wait()
	for range workers {
		must(t, <-failures)
	}
	names, err := sb.ListDirectory(ctx, ".")
	must(t, err)
	equal(t, "files", len(names), workers)
}

// work writes a file, changes it with a command and reads it, several times.
func work(sb sandbox.Sandbox, n int) error {
	name := fmt.Sprintf("f%d", n)
	for i := range 5 {
		want := fmt.Sprintf("%d-%d\n", n, i)
		if err := sb.WriteFile(ctx, name, want); err != nil {
			return err
		}
		res, err := sb.Exec(ctx, "cat "+name+" >&2; echo more >>"+name)
		if err != nil {
			return err
		}
		got, err := sb.ReadFile(ctx, name)
		if err != nil {
			return err
		}
		if res.Stderr != want || got != want+"more\n" {
			return fmt.Errorf("%s: %q and %q", name, res.Stderr, got)
		}
	}
	return nil
}

func BenchmarkLocalSandbox_WriteFile(b *testing.B) {
	sb, _ := open(b)
	for b.Loop() {
		must(b, sb.WriteFile(ctx, "f", "content"))
	}
}

func BenchmarkLocalSandbox_ReadFile(b *testing.B) {
	sb, _ := open(b)
	must(b, sb.WriteFile(ctx, "f", strings.Repeat("x", 4096)))
	for b.Loop() {
		_, err := sb.ReadFile(ctx, "f")
		must(b, err)
	}
}

func BenchmarkLocalSandbox_Exec(b *testing.B) {
	sb, _ := open(b)
	for b.Loop() {
		_, err := sb.Exec(ctx, "true")
		must(b, err)
	}
}
