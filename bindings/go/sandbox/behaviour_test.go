package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson.dev/go/sandbox"
)

// A case of bindings/behaviour.json.
type behaviourCase struct {
	Name      string            `json:"name"`
	Backends  []string          `json:"backends"`
	Options   map[string]any    `json:"options"`
	Files     map[string]string `json:"files"`
	Steps     []json.RawMessage `json:"steps"`
	OpenError string            `json:"open_error"`
}

// step has the arguments of all verbs.
type step struct {
	Verb, Path, Command, Content, Cwd, Session, Keep, Pattern string
	From, To, Text, Data, Op, Target, Name, Snapshot          string

	Argv      []string
	Env       map[string]string
	Stdin     any
	Edits     []sandbox.Edit
	Files     map[string]string
	OutputMax int64  `json:"output_max"`
	TimeoutMs int64  `json:"timeout_ms"`
	IfHash    string `json:"if_hash"`
	Offset    int64
	Limit     *int64

	Merge, Restart, Numbers, Create, Append, Recursive, Regex bool

	IgnoreCase bool `json:"ignore_case"`

	Gitignore bool           `json:"gitignore"`
	Want      map[string]any `json:"want"`
	Error     string         `json:"error"`
}

func TestBehaviour(t *testing.T) {
	at := os.Getenv("CAISSON_BEHAVIOUR")
	if at == "" {
		at = "../../behaviour.json"
	}
	text, err := os.ReadFile(at)
	must(t, err)
	var all struct{ Cases []behaviourCase }
	must(t, json.Unmarshal(text, &all))
	for _, backend := range []string{"local", "jail"} {
		for _, c := range all.Cases {
			if c.Backends != nil && !slices.Contains(c.Backends, backend) {
				continue
			}
			t.Run(backend+"/"+c.Name, func(t *testing.T) { runCase(t, backend, c) })
		}
	}
}

func runCase(t *testing.T, backend string, c behaviourCase) {
	dir := workspace(t, c.Files)
	opts := []sandbox.Option{sandbox.WithWorkspace(dir)}
	for key, value := range c.Options {
		opts = append(opts, sandbox.WithOption(key, value))
	}
	sb, err := sandbox.Open(sandbox.Type(backend), opts...)
	if c.OpenError != "" {
		wantCode(t, "open", err, c.OpenError)
		return
	}
	must(t, err)
	defer sb.Close()
	r := &runner{sb: sb}
	for i, raw := range c.Steps {
		var s step
		decoder := json.NewDecoder(strings.NewReader(string(raw)))
		decoder.DisallowUnknownFields() // an argument that the driver would ignore
		must(t, decoder.Decode(&s))
		result, err := r.do(s)
		what := fmt.Sprintf("step %d: %s", i, s.Verb)
		if s.Error != "" {
			wantCode(t, what, err, s.Error)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		wantMembers(t, what, result, s.Want)
	}
}

func wantCode(t *testing.T, what string, err error, word string) {
	t.Helper()
	var e *sandbox.Error
	if !errors.As(err, &e) || string(e.Code) != word || !errors.Is(err, sandbox.Code(word)) {
		t.Fatalf("%s: the error is %v, not of the code %s", what, err, word)
	}
}

type runner struct {
	sb *sandbox.Caisson
	p  *sandbox.Process
}

func (s step) exec() *sandbox.ExecOptions {
	o := &sandbox.ExecOptions{Cwd: s.Cwd, Session: s.Session, Keep: s.Keep, Merge: s.Merge,
		Restart: s.Restart, OutputMax: s.OutputMax, Timeout: s.timeout()}
	for name, value := range s.Env {
		o.Env = append(o.Env, name+"="+value)
	}
	switch in := s.Stdin.(type) {
	case string:
		o.Stdin = strings.NewReader(in)
	case bool:
		o.StdinPipe = in
	}
	return o
}

func (s step) timeout() time.Duration { return time.Duration(s.TimeoutMs) * time.Millisecond }

func (s step) read() *sandbox.ReadOptions {
	o := &sandbox.ReadOptions{Offset: s.Offset, Numbers: s.Numbers}
	if s.Limit != nil && *s.Limit == 0 {
		o.Limit = sandbox.CountOnly
	} else if s.Limit != nil {
		o.Limit = *s.Limit
	}
	return o
}

func (s step) flags() []sandbox.FileFlag {
	if s.Recursive {
		return []sandbox.FileFlag{sandbox.FileRecursive}
	}
	return nil
}

var ops = map[string]sandbox.Op{"read": sandbox.OpRead, "write": sandbox.OpWrite,
	"delete": sandbox.OpDelete, "exec": sandbox.OpExec, "net": sandbox.OpNet}

func (r *runner) do(s step) (any, error) {
	ctx, sb := context.Background(), r.sb
	switch s.Verb {
	case "exec":
		return sb.Run(ctx, s.Argv, s.exec())
	case "sh":
		return sb.Sh(ctx, s.Command, s.exec())
	case "start_sh":
		var err error
		r.p, err = sb.StartSh(ctx, s.Command, s.exec())
		return nil, err
	case "wait_log":
		return nil, sb.WaitLog(ctx, s.Text, s.timeout())
	case "process_write":
		_, err := io.WriteString(r.p, s.Data)
		return nil, err
	case "process_wait":
		return r.p.Wait(ctx, s.timeout())
	case "process_logs":
		return r.p.Logs(ctx, sandbox.Stdout, s.Offset, 0)
	case "would_allow":
		return sb.WouldAllow(ctx, ops[s.Op], s.Target)
	case "set_workdir":
		return nil, sb.SetWorkdir(ctx, s.Path)
	case "destroy":
		return nil, sb.Destroy(ctx)
	}
	return r.doFiles(ctx, s)
}

func (r *runner) doFiles(ctx context.Context, s step) (any, error) {
	sb := r.sb
	switch s.Verb {
	case "read":
		return sb.Read(ctx, s.Path, s.read())
	case "read_bytes":
		data, err := sb.ReadBytes(ctx, s.Path, s.read())
		return map[string]any{"data": string(data)}, err
	case "write":
		return sb.Write(ctx, s.Path, []byte(s.Content),
			&sandbox.WriteOptions{Create: s.Create, Append: s.Append, IfHash: s.IfHash})
	case "write_many":
		return nil, sb.WriteFiles(ctx, s.Files)
	case "edit":
		return sb.Edit(ctx, s.Path, s.Edits)
	case "delete":
		return nil, sb.Delete(ctx, s.Path, s.flags()...)
	case "mkdir":
		return nil, sb.Mkdir(ctx, s.Path)
	case "rename":
		return nil, sb.Rename(ctx, s.From, s.To)
	case "stat":
		return sb.Stat(ctx, s.Path)
	case "list":
		return sb.List(ctx, s.Path)
	case "glob":
		if s.Gitignore {
			return sb.Glob(ctx, s.Pattern, s.Path, sandbox.FileGitignore)
		}
		return sb.Glob(ctx, s.Pattern, s.Path)
	case "grep":
		return sb.Grep(ctx, s.Pattern, &sandbox.GrepOptions{Path: s.Path, Regex: s.Regex,
			IgnoreCase: s.IgnoreCase, Gitignore: s.Gitignore})
	}
	return r.doWorkspace(ctx, s)
}

func (r *runner) doWorkspace(ctx context.Context, s step) (any, error) {
	switch s.Verb {
	case "diff":
		return r.sb.Diff(ctx, nil)
	case "commit":
		return r.sb.Commit(ctx, nil)
	case "snapshot_as":
		return r.sb.SnapshotAs(ctx, s.Name)
	case "rollback":
		return nil, r.sb.Rollback(ctx, s.Snapshot)
	case "undo":
		return nil, r.sb.Undo(ctx)
	case "discard":
		return nil, r.sb.Discard(ctx)
	}
	return nil, fmt.Errorf("the driver has no verb %q", s.Verb)
}

// wantMembers compares a result, as JSON has it, with the members that it must have.
func wantMembers(t *testing.T, what string, result any, want map[string]any) {
	t.Helper()
	text, err := json.Marshal(result)
	must(t, err)
	var got any
	must(t, json.Unmarshal(text, &got))
	if why := differs(got, want); want != nil && why != "" {
		t.Fatalf("%s: %s\nresult: %s", what, why, text)
	}
}

func differs(got, want any) string {
	switch w := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%v is no object", got)
		}
		for key, value := range w {
			if name, like := strings.CutSuffix(key, "_like"); like {
				if text, _ := object[name].(string); !strings.Contains(text, value.(string)) {
					return fmt.Sprintf("%s: %q does not contain %q", name, text, value)
				}
			} else if member, known := object[key]; !known {
				return fmt.Sprintf("%s: missing", key)
			} else if why := differs(member, value); why != "" {
				return key + ": " + why
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(w) {
			return fmt.Sprintf("%v has not %d elements", got, len(w))
		}
		for i := range w {
			if why := differs(list[i], w[i]); why != "" {
				return fmt.Sprintf("[%d]: %s", i, why)
			}
		}
	case nil:
		if got != nil && got != "" { // Go has an empty string for a text that is not there
			return fmt.Sprintf("%v is not empty", got)
		}
	default:
		if !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("%#v, want %#v", got, want)
		}
	}
	return ""
}

// workspace makes a directory of the test's own with these files.
func workspace(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		at := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte(content), 0o644))
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
