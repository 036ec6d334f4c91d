// Package local opens sandboxes on a directory of this machine, without isolation of commands: file
// calls stay within the directory.
package local

import "caisson.dev/go/sandbox"

// LocalSandbox is a sandbox of the backend local.
type LocalSandbox = sandbox.Caisson

// NewLocalSandbox opens a sandbox on baseDir, which must exist.
func NewLocalSandbox(baseDir string) (*LocalSandbox, error) {
	return sandbox.Open(sandbox.TypeLocal, sandbox.WithBaseDir(baseDir))
}
