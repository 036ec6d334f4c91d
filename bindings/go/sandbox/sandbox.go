// Package sandbox runs commands and manages files in a sandbox of caisson.
//
// New opens one and returns the interface Sandbox. Open returns a *Caisson, which has these methods
// and all other calls of libcaisson. The first argument of most methods is a context: its end stops
// commands, reads, searches, transfers and waits; other file calls check it before they start.
//
// Several goroutines may use one sandbox at the same time. Functions and Readers and Writers that
// are passed to a call run on the goroutine of that call; they may use the sandbox, but must not
// close it or call runtime.Goexit.
package sandbox

import "context"

// Sandbox is an isolated place to run commands and keep files in.
type Sandbox interface {
	// Exec runs a shell command. A non-zero exit status is a result, not an error.
	Exec(ctx context.Context, command string) (*ExecResult, error)

	// WriteFile writes a whole file and makes missing directories.
	WriteFile(ctx context.Context, path, content string) error
	// WriteFiles writes all files or none.
	WriteFiles(ctx context.Context, files map[string]string) error
	ReadFile(ctx context.Context, path string) (string, error)
	DeleteFile(ctx context.Context, path string) error

	// ListDirectory returns the sorted names.
	ListDirectory(ctx context.Context, path string) ([]string, error)
	SetWorkdir(ctx context.Context, path string) error

	// ExportDirectory copies a directory of the sandbox to the host and returns where it is.
	ExportDirectory(ctx context.Context, containerPath, hostPath string) (string, error)
	// RefreshFromHost copies a directory of the host into the sandbox.
	RefreshFromHost(ctx context.Context, hostPath, containerPath string) error

	// Close ends the sandbox, unless it is detached.
	Close() error
}

// Type is the name of a backend. RegisterBackend adds further ones.
type Type string

// The backends of the library.
const (
	TypeDefault Type = "" // $CAISSON_BACKEND, else jail
	TypeJail    Type = "jail"
	TypeLocal   Type = "local"
	TypeE2B     Type = "e2b"
	TypeVercel  Type = "vercel"
	TypeDagger  Type = "dagger"
	TypeDocker  Type = "docker"
)

// New opens a sandbox.
func New(t Type, opts ...Option) (Sandbox, error) {
	c, err := Open(t, opts...)
	if err != nil {
		return nil, err
	}
	return c, nil
}

var _ Sandbox = (*Caisson)(nil)
