//go:build caisson_env

package sandbox

// CGO_CFLAGS and CGO_LDFLAGS tell where caisson is, for hosts without pkg-config and for a build
// tree.

// #cgo LDFLAGS: -lcaisson
import "C"
