package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"caisson.dev/go/sandbox"
)

func TestACopyOnWriteWorkspaceIsComparedForkedAndCommitted(t *testing.T) {
	dir := workspace(t, map[string]string{"keep": "old\n", "other": "x\n"})
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(dir), sandbox.WithCOW(true))
	must(t, err)
	defer sb.Close()
	_, err = sb.Exec(ctx, "echo new >keep; rm other; echo bin >added")
	must(t, err)
	diff, err := sb.Diff(ctx, &sandbox.DiffOptions{Patch: true, Counts: true, Hashes: true,
		Paths: []string{"keep"}})
	must(t, err)
	if len(diff.Changes) != 1 || diff.Changes[0].Kind != sandbox.ChangeModified ||
		diff.Changes[0].LinesAdded != 1 || len(diff.Changes[0].HashAfter) != 64 ||
		!strings.Contains(diff.Patch, "+new") {
		t.Fatalf("%+v", diff)
	}
	first, err := sb.SnapshotAs(ctx, "first")
	must(t, err)
	list, err := sb.Snapshots(ctx)
	must(t, err)
	if len(list) != 1 || list[0].Name != "first" || first.Name != "first" || list[0].Created.IsZero() {
		t.Fatalf("%+v %+v", first, list)
	}
	fork, err := sb.Fork(ctx, "")
	must(t, err)
	defer fork.Close()
	must(t, fork.WriteFile(ctx, "keep", "forked\n"))
	got, err := sb.ReadFile(ctx, "keep")
	must(t, err)
	if got != "new\n" || fork.ID() == sb.ID() {
		t.Fatalf("%q", got)
	}
	dry, err := sb.Commit(ctx, &sandbox.CommitOptions{DryRun: true})
	must(t, err)
	if dry.Written || len(dry.Changes) != 3 {
		t.Fatalf("%+v", dry)
	}
	must(t, fork.Discard(ctx))
	must(t, sb.Rollback(ctx, "first"))
}

func TestConflictsAreResolved(t *testing.T) {
	dir := workspace(t, map[string]string{"f": "old\n"})
	sb, err := sandbox.Open("jail", sandbox.WithWorkspace(dir), sandbox.WithCOW(true))
	must(t, err)
	defer sb.Close()
	must(t, sb.WriteFile(ctx, "f", "sandbox\n"))
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("host\n"), 0o644))
	res, err := sb.Commit(ctx, nil)
	must(t, err)
	if res.Written || len(res.Conflicts) != 1 || res.Conflicts[0].Host != "host\n" ||
		res.Conflicts[0].Sandbox != "sandbox\n" || res.Changes[0].Outcome != sandbox.OutcomeConflict {
		t.Fatalf("%+v", res)
	}
	res, err = sb.Commit(ctx, &sandbox.CommitOptions{Resolved: map[string][]byte{"f": []byte("both\n")}})
	must(t, err)
	got, err := os.ReadFile(filepath.Join(dir, "f"))
	must(t, err)
	if !res.Written || string(got) != "both\n" {
		t.Fatalf("%+v, %q", res, got)
	}
}
