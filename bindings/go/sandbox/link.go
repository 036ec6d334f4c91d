package sandbox

// With the tag caisson_env only CGO_CFLAGS and CGO_LDFLAGS tell where caisson is: for hosts without
// pkg-config, and for a build tree.

// #cgo !caisson_env pkg-config: caisson
// #cgo caisson_env LDFLAGS: -lcaisson
import "C"
