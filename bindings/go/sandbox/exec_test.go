package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson.dev/go/sandbox"
)

// open opens a sandbox on a directory of the test's own.
func open(t testing.TB, backend sandbox.Type, opts ...sandbox.Option) *sandbox.Caisson {
	t.Helper()
	sb, err := sandbox.Open(backend, append([]sandbox.Option{sandbox.WithWorkspace(t.TempDir())},
		opts...)...)
	must(t, err)
	t.Cleanup(func() { must(t, sb.Close()) })
	return sb
}

// both runs a test on local and on jail.
func both(t *testing.T, test func(t *testing.T, backend sandbox.Type)) {
	for _, backend := range []sandbox.Type{"local", "jail"} {
		t.Run(string(backend), func(t *testing.T) { test(t, backend) })
	}
}

func TestChunksArriveInOrderAndWithBackPressure(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		st := sb.Stream(ctx, "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i + 1)); done", nil)
		var all bytes.Buffer
		for chunk := range st.Chunks() {
			if chunk.Stream != sandbox.Stdout {
				t.Fatalf("stream %d", chunk.Stream)
			}
			all.Write(chunk.Data)
		}
		res, err := st.Result()
		must(t, err)
		if all.String() != res.Stdout || strings.Count(res.Stdout, "\n") != 2000 {
			t.Fatalf("%d bytes in chunks, %d in the result", all.Len(), len(res.Stdout))
		}
	})
}

// A producer of endless output must stand still while its consumer does: the pipe and one chunk are
// all that is ahead.
func TestACommandWaitsForItsConsumer(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		st := sb.Stream(ctx, "i=0; while :; do i=$((i + 1)); echo $i >count; "+
			"head -c 65536 /dev/zero; done", nil)
		taken := 0
		for chunk := range st.Chunks() {
			if taken += len(chunk.Data); taken > 1<<20 {
				break
			}
		}
		res, err := st.Result()
		if res == nil || !res.Interrupted || err == nil {
			t.Fatalf("a break did not end the command: %+v, %v", res, err)
		}
		count, err := sb.ReadFile(ctx, "count")
		must(t, err)
		var pieces int
		fmt.Sscan(count, &pieces)
		if made := pieces * 65536; made > taken+(8<<20) {
			t.Fatalf("%d bytes were made, %d were taken", made, taken)
		}
	})
}

func TestABreakEndsASilentCommand(t *testing.T) {
	sb := open(t, "jail")
	for range sb.Stream(ctx, "echo once; exec sleep 600", nil).Chunks() {
		break
	}
	res, err := sb.Exec(ctx, "echo still here")
	must(t, err)
	if res.Stdout != "still here\n" {
		t.Fatalf("%+v", res)
	}
}

func TestWritersAndCallbacksReceiveOutput(t *testing.T) {
	sb := open(t, "local")
	var out, errs bytes.Buffer
	var seen []byte
	res, err := sb.Sh(ctx, "echo a; echo b >&2", &sandbox.ExecOptions{Stdout: &out, Stderr: &errs,
		OnOutput: func(_ sandbox.Stream, data []byte) error { seen = append(seen, data...); return nil }})
	must(t, err)
	if out.String() != "a\n" || errs.String() != "b\n" || len(seen) != 4 || res.Stdout != "a\n" {
		t.Fatalf("%q %q %q %+v", &out, &errs, seen, res)
	}
}

var errFull = errors.New("full")

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestAnErrorOfAWriterEndsTheCommand(t *testing.T) {
	sb := open(t, "local")
	_, err := sb.Sh(ctx, "echo a; exec sleep 600", &sandbox.ExecOptions{Stdout: fullWriter{}})
	if !errors.Is(err, errFull) {
		t.Fatalf("the error is %v", err)
	}
	must(t, sb.WriteFile(ctx, "f", "content"))
	if err := sb.ReadTo(ctx, "f", fullWriter{}, nil); !errors.Is(err, errFull) {
		t.Fatalf("the error is %v", err)
	}
}

func TestAPanicInACallbackReachesTheCaller(t *testing.T) {
	sb := open(t, "local")
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Fatalf("recovered %v", r)
			}
		}()
		sb.Sh(ctx, "echo a; exec sleep 600", &sandbox.ExecOptions{
			OnOutput: func(sandbox.Stream, []byte) error { panic("mine") }})
	}()
	_, err := sb.Exec(ctx, "true") // the library's locks are free
	must(t, err)
}

func TestACallbackMayUseTheSandbox(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		var inner *sandbox.ExecResult
		_, err := sb.Sh(ctx, "echo a", &sandbox.ExecOptions{
			OnOutput: func(sandbox.Stream, []byte) (err error) {
				inner, err = sb.Exec(ctx, "echo inner")
				return err
			}})
		must(t, err)
		if inner.Stdout != "inner\n" {
			t.Fatalf("%+v", inner)
		}
	})
}

func TestStdinComesFromAnyReader(t *testing.T) {
	sb := open(t, "jail")
	large := strings.Repeat("0123456789abcde\n", 20000)
	file, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer file.Close()
	_, err = io.WriteString(file, large)
	must(t, err)
	_, err = file.Seek(0, io.SeekStart)
	must(t, err)
	for name, in := range map[string]io.Reader{"string": strings.NewReader(large), "file": file,
		"pipe": io.MultiReader(strings.NewReader(large[:7]), strings.NewReader(large[7:]))} {
		res, err := sb.Run(ctx, []string{"cat"}, &sandbox.ExecOptions{Stdin: in})
		must(t, err)
		if res.Stdout != large {
			t.Fatalf("%s: %d bytes, want %d", name, len(res.Stdout), len(large))
		}
	}
	res, err := sb.Run(ctx, []string{"true"}, &sandbox.ExecOptions{Stdin: endless{}})
	must(t, err) // a command that does not read its input ends all the same
	if res.ExitCode != 0 {
		t.Fatalf("%+v", res)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestContextsEndCommands(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		ctx, cancel := context.WithCancel(ctx)
		res, err := sb.Sh(ctx, "echo started; exec sleep 600", &sandbox.ExecOptions{
			OnOutput: func(sandbox.Stream, []byte) error { cancel(); return nil }})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, sandbox.ErrCancelled) ||
			res == nil || res.KilledBy != "cancel" || res.Stdout != "started\n" {
			t.Fatalf("%+v, %v", res, err)
		}
		late, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer stop()
		_, err = sb.Exec(late, "exec sleep 600")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sandbox.ErrTimeout) {
			t.Fatalf("the error is %v", err)
		}
		if _, err = sb.ReadFile(ctx, "f"); !errors.Is(err, context.Canceled) {
			t.Fatalf("a context that is done: %v", err)
		}
		_, err = sb.Exec(context.Background(), "true") // a fired handle is not used again
		must(t, err)
	})
}

func TestManyCommandsRunAtTheSameTime(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		const commands = 200
		sb := open(t, backend, sandbox.WithTimeout(sandbox.NoLimit))
		// Each waits for a file that appears when all have started.
		var group sync.WaitGroup
		failures := make(chan error, commands)
		for i := range commands {
			group.Go(func() {
				res, err := sb.Exec(ctx, fmt.Sprintf(
					"touch s%d; while ! [ -e go ]; do sleep 0.2; done; echo %d", i, i))
				if err == nil && res.Stdout != fmt.Sprintln(i) {
					err = fmt.Errorf("command %d: %+v", i, res)
				}
				failures <- err
			})
		}
		for started := 0; started < commands; {
			list, err := sb.Glob(ctx, "s*", "")
			must(t, err)
			started = len(list.Items)
			time.Sleep(10 * time.Millisecond)
		}
		must(t, sb.WriteFile(ctx, "go", ""))
		group.Wait()
		for range commands {
			must(t, <-failures)
		}
	})
}

func TestCloseEndsCallsThatRun(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb, err := sandbox.Open(backend, sandbox.WithWorkspace(t.TempDir()))
		must(t, err)
		p, err := sb.StartSh(ctx, "exec sleep 600", nil)
		must(t, err)
		started := make(chan struct{})
		ended := make(chan error, 3)
		go func() {
			_, err := sb.Sh(ctx, "echo started; exec sleep 600", &sandbox.ExecOptions{
				OnOutput: func(sandbox.Stream, []byte) error { close(started); return nil }})
			ended <- err
		}()
		go func() { _, err := p.Wait(ctx, sandbox.NoLimit); ended <- err }()
		<-started
		must(t, sb.Close())
		must(t, sb.Close())
		<-ended
		<-ended
		_, err = sb.Exec(ctx, "true")
		wantCode(t, "exec", err, "gone")
		_, err = p.Wait(ctx, 0)
		wantCode(t, "wait", err, "gone")
		must(t, p.Close())
	})
}

func TestALiveDenialIsReported(t *testing.T) {
	sb := open(t, "jail", sandbox.WithNetAllow("allowed.example"))
	var denials []sandbox.Denial
	res, err := sb.Run(ctx, []string{"python3", "-c",
		"import socket; socket.getaddrinfo('refused.example', 80)"},
		&sandbox.ExecOptions{OnDenial: func(d sandbox.Denial) { denials = append(denials, d) }})
	must(t, err)
	if len(denials) != 1 || !strings.Contains(denials[0].Target, "refused.example") ||
		denials[0].Hint == "" || len(res.Denials) == 0 {
		t.Fatalf("live: %+v, in the result: %+v", denials, res.Denials)
	}
}

func TestWordsOfOptionsAreChecked(t *testing.T) {
	sb := open(t, "local")
	_, err := sb.Sh(ctx, "true", &sandbox.ExecOptions{Keep: "middle"})
	wantCode(t, "Keep", err, "invalid")
	_, err = sb.Sh(ctx, "true\x00false", nil)
	wantCode(t, "NUL", err, "invalid")
	_, err = sb.Start(ctx, []string{"true"}, &sandbox.ExecOptions{Stdout: io.Discard})
	wantCode(t, "Stdout of a process", err, "invalid")
	_, err = sb.Run(ctx, []string{"true"}, &sandbox.ExecOptions{Sudo: true})
	wantCode(t, "Sudo", err, "unsupported")
}
