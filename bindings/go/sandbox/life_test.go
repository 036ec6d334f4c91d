package sandbox_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caisson.dev/go/sandbox"
)

func TestInfoVerdictsAndVersion(t *testing.T) {
	sb := open(t, "jail", sandbox.WithMemory(1<<30),
		sandbox.WithWorkspace(workspace(t, map[string]string{"LICENSE": "mine\n"})),
		sandbox.WithRules(sandbox.Rule{Op: []string{"write", "delete"}, Effect: "deny", Path: "LICENSE"}))
	info, err := sb.Info(ctx)
	must(t, err)
	if info.ID != sb.ID() || info.Backend != "jail" || info.Isolation != "kernel" || info.Detached ||
		len(info.Layers) == 0 || len(info.Capabilities) == 0 || info.Created.IsZero() {
		t.Fatalf("%+v", info)
	}
	v, err := sb.WouldAllow(ctx, sandbox.OpWrite, "LICENSE")
	must(t, err)
	if v.Allowed || v.Why.Rule == "" {
		t.Fatalf("%+v", v)
	}
	if sandbox.Version() == "" || !strings.HasPrefix(sb.ID(), "jail-") {
		t.Fatalf("%q %q", sandbox.Version(), sb.ID())
	}
	must(t, sb.Extend(ctx, time.Hour))
	info, err = sb.Info(ctx)
	must(t, err)
	if left := time.Until(info.Expires); left < 50*time.Minute || left > time.Hour {
		t.Fatalf("expires in %v", left)
	}
}

func TestADetachedSandboxIsFoundAndDestroyed(t *testing.T) {
	name := fmt.Sprintf("go-detached-%d", os.Getpid())
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(t.TempDir()), sandbox.WithDetached(true),
		sandbox.WithName(name))
	must(t, err)
	id := sb.ID()
	defer sandbox.DestroyID(id, nil)
	must(t, sb.WriteFile(ctx, "f", "kept"))
	go sb.Exec(ctx, "touch running; exec sleep 600") // Close ends it
	for {
		if _, err := sb.Stat(ctx, "running"); err == nil {
			break
		}
	}
	must(t, sb.Close())
	again, err := sandbox.Connect(name)
	must(t, err)
	got, err := again.ReadFile(ctx, "f")
	must(t, err)
	list, err := sandbox.Sandboxes()
	must(t, err)
	found := false
	for _, entry := range list {
		found = found || entry.ID == id && entry.Name == name && entry.State == "running"
	}
	if !found || got != "kept" || again.ID() != id {
		t.Fatalf("%q %+v", got, list)
	}
	must(t, again.Close())
	var denials []sandbox.Denial
	must(t, sandbox.DestroyID(id, func(d sandbox.Denial) { denials = append(denials, d) }))
	_, err = sandbox.Connect(id)
	wantCode(t, "connect", err, "not_found")
}

func TestCleanupNeedsForceForADirectoryOfTheHost(t *testing.T) {
	sb := open(t, "local")
	must(t, sb.WriteFile(ctx, "f", "x"))
	wantCode(t, "cleanup", sb.Cleanup(ctx, false), "denied")
	must(t, sb.Cleanup(ctx, true))
	names, err := sb.ListDirectory(ctx, ".")
	must(t, err)
	if len(names) != 0 {
		t.Fatalf("%v", names)
	}
}

func TestCallsThatABackendDoesNotHave(t *testing.T) {
	sb := open(t, "local")
	wantCode(t, "reset", sb.Reset(ctx), "unsupported")
	wantCode(t, "pause", sb.Pause(ctx), "unsupported")
	wantCode(t, "resume", sb.Resume(ctx), "unsupported")
	wantCode(t, "network", sb.SetNetwork(ctx, &sandbox.NetworkOptions{Network: "all"}), "unsupported")
	_, err := sb.Snapshot(ctx)
	wantCode(t, "snapshot", err, "unsupported")
}

func TestNetworkRulesChange(t *testing.T) {
	sb := open(t, "jail", sandbox.WithNetAllow("one.example"))
	must(t, sb.SetNetwork(ctx, &sandbox.NetworkOptions{NetAllow: []string{"two.example"}}))
	_, err := sb.Run(ctx, []string{"python3", "-c",
		"import socket; socket.getaddrinfo('one.example', 80)"}, nil)
	must(t, err)
	net, err := sb.Network(ctx, 0)
	must(t, err)
	if len(net.NetAllow) != 1 || net.NetAllow[0] != "two.example" || len(net.Events) == 0 ||
		net.Events[0].Host != "one.example" || net.Events[0].Verdict != "deny" {
		t.Fatalf("%+v", net)
	}
}

func TestAuditLogsAreReadVerifiedAndRemoved(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit")
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(t.TempDir()), sandbox.WithAudit(log))
	must(t, err)
	_, err = sb.Exec(ctx, "echo recorded")
	must(t, err)
	must(t, sb.Close())
	lines := 0
	for line, err := range sandbox.AuditReadFile(log) {
		must(t, err)
		if !strings.HasPrefix(line, "{") {
			t.Fatalf("%q", line)
		}
		lines++
	}
	report, err := sandbox.AuditVerifyFile(log)
	must(t, err)
	if !report.OK || report.Lines != int64(lines) || lines < 2 {
		t.Fatalf("%d lines, %+v", lines, report)
	}
	for range sandbox.AuditReadFile(log) {
		break // a loop that is left ends the read
	}
	for _, err := range sandbox.AuditRead("jail-0-none") {
		wantCode(t, "read", err, "not_found")
	}
}

func TestAuditLogsAtTheDefaultPlace(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	runIn(t, "audit")
}

// runIn runs this test program again as a process of its own, whose environment the library sees
// from its start.
func runIn(t *testing.T, role string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=TestRole", "-test.v")
	cmd.Env = append(os.Environ(), "CAISSON_GO_ROLE="+role, "CAISSON_GO_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "role done") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestRole(t *testing.T) {
	switch os.Getenv("CAISSON_GO_ROLE") {
	case "":
		return // only as a process of its own
	case "audit":
		roleAudit(t)
	case "aside":
		roleAside(t)
	case "victim":
		roleVictim(t)
	}
	fmt.Println("role done")
}

func roleAudit(t *testing.T) {
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(os.Getenv("CAISSON_GO_DIR")))
	must(t, err)
	id := sb.ID()
	_, err = sb.Exec(ctx, "true")
	must(t, err)
	wantCode(t, "remove", sandbox.AuditRemove(id), "conflict")
	must(t, sb.Close())
	logs, err := sandbox.AuditLogs()
	must(t, err)
	report, err := sandbox.AuditVerify(id)
	must(t, err)
	if len(logs) != 1 || logs[0].ID != id || logs[0].Written.IsZero() || !report.OK {
		t.Fatalf("%+v %+v", logs, report)
	}
	must(t, sandbox.AuditRemove(id))
}

func TestFilesInTheQuarantineAreListedAndRestored(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	runIn(t, "aside")
}

func roleAside(t *testing.T) {
	dir := os.Getenv("CAISSON_GO_DIR")
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(dir))
	must(t, err)
	var late []sandbox.Denial
	must(t, sb.OnDenial(func(d sandbox.Denial) { late = append(late, d) }))
	res, err := sb.Exec(ctx, "mkdir -p n/.git/hooks; cd n; git init -q . 2>/dev/null; "+
		"echo '#!/bin/sh' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit")
	must(t, err)
	must(t, sb.Close())
	list, err := sandbox.AsideList()
	must(t, err)
	if len(list) == 0 {
		t.Fatalf("nothing was moved away: %+v, %+v", res, late)
	}
	must(t, sandbox.AsideRestore(list[0].ID, false))
	wantCode(t, "remove", sandbox.AsideRemove(list[0].ID), "not_found")
	for _, entry := range list[1:] {
		must(t, sandbox.AsideRemove(entry.ID))
	}
}

func TestDoctorChecksThisHost(t *testing.T) {
	d, err := sandbox.Doctor(t.TempDir())
	must(t, err)
	if len(d.Items) == 0 || d.Rung == "" || d.Items[0].Status == "" {
		t.Fatalf("%+v", d)
	}
}

// A program that is killed with SIGKILL leaves no process of its sandbox.
func TestAKilledProgramLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		cmd := exec.Command(os.Args[0], "-test.run=TestRole")
		mark := fmt.Sprintf("%d.%d", 600+os.Getpid(), time.Now().UnixNano())
		cmd.Env = append(os.Environ(), "CAISSON_GO_ROLE=victim", "CAISSON_GO_DIR="+t.TempDir(),
			"CAISSON_GO_BACKEND="+string(backend), "CAISSON_GO_MARK="+mark)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		must(t, err)
		if line != "started\n" {
			t.Fatalf("%q", line)
		}
		for count(t, mark) < 2 { // the line may come before both programs run
			time.Sleep(5 * time.Millisecond)
		}
		must(t, cmd.Process.Kill())
		cmd.Wait()
		for count(t, mark) > 0 {
			time.Sleep(5 * time.Millisecond)
		}
	})
}

func roleVictim(t *testing.T) {
	sb, err := sandbox.Open(sandbox.Type(os.Getenv("CAISSON_GO_BACKEND")),
		sandbox.WithWorkspace(os.Getenv("CAISSON_GO_DIR")))
	must(t, err)
	sb.Sh(ctx, "setsid sleep $M & echo started; exec sleep $M", &sandbox.ExecOptions{
		Env: []string{"M=" + os.Getenv("CAISSON_GO_MARK")}, Stdout: os.Stdout, Timeout: sandbox.NoLimit})
}

// count returns the number of sleeping processes with this argument.
func count(t *testing.T, mark string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	n := 0
	for _, at := range all {
		if text, err := os.ReadFile(at); err == nil && string(text) == "sleep\x00"+mark+"\x00" {
			n++
		}
	}
	return n
}

// The memory and the descriptors of this process stay level over many calls.
func TestNothingLeaks(t *testing.T) {
	sb := open(t, "local")
	must(t, sb.WriteFile(ctx, "f", strings.Repeat("x", 4096)))
	round := func(n int) {
		for i := range n {
			_, err := sb.ReadFile(ctx, "f")
			must(t, err)
			_, err = sb.Grep(ctx, "x", nil)
			must(t, err)
			_, err = sb.ReadFile(ctx, "none")
			wantCode(t, "read", err, "not_found")
			if i%20 == 0 {
				_, err = sb.Sh(ctx, "echo x", &sandbox.ExecOptions{Env: []string{"A=b"}})
				must(t, err)
				w, err := sb.Watch(ctx, ".")
				must(t, err)
				must(t, w.Close())
			}
		}
	}
	round(500)
	files, memory := usage(t)
	round(3000)
	files2, memory2 := usage(t)
	if files2 > files || memory2 > memory+(8<<20) {
		t.Fatalf("descriptors %d -> %d, memory %d -> %d KiB", files, files2, memory>>10, memory2>>10)
	}
}

// usage returns the number of open descriptors and the resident memory in bytes.
func usage(t testing.TB) (int, int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	text, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	var size, resident int
	fmt.Sscan(string(text), &size, &resident)
	return len(list), resident * os.Getpagesize()
}
