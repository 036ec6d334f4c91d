//go:build !caisson_env

package sandbox

// #cgo pkg-config: caisson
import "C"
