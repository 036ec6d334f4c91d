package sandbox_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"caisson.dev/go/sandbox"
)

const long = 5 * time.Minute // more than any wait takes

func TestProcessesReadWriteAndEnd(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		p, err := sb.Start(ctx, []string{"cat"}, &sandbox.ExecOptions{StdinPipe: true})
		must(t, err)
		_, err = io.WriteString(p, "first\n")
		must(t, err)
		must(t, sb.WaitLog(ctx, "first", long))
		list, err := sb.Processes(ctx)
		must(t, err)
		if len(list) != 1 || list[0].PID != p.PID() || list[0].State != "running" {
			t.Fatalf("%+v", list)
		}
		again, err := sb.OpenProcess(ctx, p.PID())
		must(t, err)
		_, err = again.Wait(ctx, 10*time.Millisecond)
		wantCode(t, "wait", err, "timeout")
		_, err = io.WriteString(again, "second\n")
		must(t, err)
		must(t, p.CloseStdin(ctx))
		all, err := io.ReadAll(p.Reader(ctx, sandbox.Stdout))
		must(t, err)
		end, err := p.Wait(ctx, long)
		must(t, err)
		if string(all) != "first\nsecond\n" || end.ExitCode != 0 || end.State != "exited" {
			t.Fatalf("%q %+v", all, end)
		}
		must(t, again.Close())
	})
}

func TestOutputOfAProcessIsFollowed(t *testing.T) {
	sb := open(t, "jail")
	p, err := sb.StartSh(ctx, "for i in 1 2 3; do echo $i; sleep 0.01; done; echo bad >&2; exit 4", nil)
	must(t, err)
	var all strings.Builder
	for chunk, err := range p.Follow(ctx, sandbox.Stdout) {
		must(t, err)
		all.WriteString(chunk.Data)
	}
	end, err := p.Wait(ctx, long)
	must(t, err)
	chunk, err := p.Logs(ctx, sandbox.Stderr, 0, long)
	must(t, err)
	if all.String() != "1\n2\n3\n" || chunk.Data != "bad\n" || end.ExitCode != 4 {
		t.Fatalf("%q %+v %+v", all.String(), chunk, end)
	}
}

func TestSignalsAndCancelledWaits(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		p, err := sb.Start(ctx, []string{"sleep", "600"}, nil)
		must(t, err)
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := p.Wait(short, sandbox.NoLimit); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the error is %v", err)
		}
		if err := sb.WaitLog(short, "never", sandbox.NoLimit); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the error is %v", err)
		}
		must(t, p.Signal(ctx, syscall.SIGKILL))
		end, err := p.Wait(ctx, long)
		must(t, err)
		if end.Signal != "SIGKILL" || end.ExitCode != -1 {
			t.Fatalf("%+v", end)
		}
	})
}

func TestPortsAndTerminals(t *testing.T) {
	sb := open(t, "jail")
	_, err := sb.Start(ctx, []string{"python3", "-m", "http.server", "--bind", "127.0.0.1", "8123"}, nil)
	must(t, err)
	must(t, sb.WaitPort(ctx, 8123, long))
	wantCode(t, "port", sb.WaitPort(ctx, 8124, 20*time.Millisecond), "timeout")
	p, err := sb.StartSh(ctx, "stty size; read x; stty size", &sandbox.ExecOptions{PTY: true,
		StdinPipe: true, Rows: 10, Cols: 40})
	must(t, err)
	must(t, sb.WaitLog(ctx, "10 40", long))
	must(t, p.Resize(ctx, 20, 50))
	_, err = io.WriteString(p, "\n")
	must(t, err)
	must(t, sb.WaitLog(ctx, "20 50", long))
}

func TestATiedProcessEndsWithItsHandle(t *testing.T) {
	sb := open(t, "jail")
	p, err := sb.Start(ctx, []string{"sleep", "600"}, &sandbox.ExecOptions{Tied: true})
	must(t, err)
	other, err := sb.OpenProcess(ctx, p.PID())
	must(t, err)
	must(t, p.Close())
	_, err = other.Wait(ctx, long)
	must(t, err)
}

// A wait is one operation of the audit log, not one for each step of the wait.
func TestWaitsAreRecordedOnce(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit")
	sb := open(t, "jail", sandbox.WithAudit(log))
	p, err := sb.Start(ctx, []string{"sleep", "600"}, nil)
	must(t, err)
	_, err = p.Wait(ctx, 350*time.Millisecond)
	wantCode(t, "wait", err, "timeout")
	wantCode(t, "log", sb.WaitLog(ctx, "never", 350*time.Millisecond), "timeout")
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	wantCode(t, "port", sb.WaitPort(short, 81, 350*time.Millisecond), "timeout")
	lines := 0
	for line, err := range sandbox.AuditReadFile(log) {
		must(t, err)
		if strings.Contains(line, `"op":"wait`) {
			lines++
		}
	}
	if lines != 2 {
		t.Fatalf("%d lines", lines)
	}
}
