package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"io/fs"
	"math"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// NoLimit stands for no limit in durations and sizes.
const NoLimit = math.MaxInt64

const arenaBlock = 2048

// blocks has first blocks of arenas, for reuse.
var blocks = make(chan unsafe.Pointer, 64)

// arena holds the arguments of one call in C memory. Data of the caller that is only read stays in
// Go memory, pinned.
type arena struct {
	free   []byte // the unused part of the last block
	first  unsafe.Pointer
	more   []unsafe.Pointer
	pinned runtime.Pinner
}

// nulError is the panic of an arena for a string that C would cut short. guard turns it into an
// error, before the library is called.
type nulError struct{ text string }

func (m *arena) alloc(size int) unsafe.Pointer {
	size = (size + 7) &^ 7
	if size > len(m.free) {
		m.grow(size)
	}
	at := unsafe.Pointer(unsafe.SliceData(m.free))
	m.free = m.free[size:]
	return at
}

func (m *arena) grow(size int) {
	n := max(size, arenaBlock)
	var block unsafe.Pointer
	if m.first == nil && n == arenaBlock {
		select {
		case block = <-blocks:
		default:
			block = C.malloc(arenaBlock)
		}
		m.first = block
	} else {
		block = C.malloc(C.size_t(n))
		m.more = append(m.more, block)
	}
	m.free = unsafe.Slice((*byte)(block), n)
	clear(m.free)
}

func (m *arena) release() {
	for _, block := range m.more {
		C.free(block)
	}
	if m.first != nil {
		select {
		case blocks <- m.first:
		default:
			C.free(m.first)
		}
	}
	m.pinned.Unpin()
}

func (m *arena) str(s string) *C.char {
	if strings.IndexByte(s, 0) >= 0 {
		panic(nulError{s})
	}
	at := m.alloc(len(s) + 1)
	copy(unsafe.Slice((*byte)(at), len(s)), s)
	return (*C.char)(at)
}

// text is a string with its length, which may contain NUL bytes.
func (m *arena) text(s string) (*C.char, C.size_t) {
	at := m.alloc(len(s) + 1)
	copy(unsafe.Slice((*byte)(at), len(s)), s)
	return (*C.char)(at), C.size_t(len(s))
}

// optional is NULL for the empty string.
func (m *arena) optional(s string) *C.char {
	if s == "" {
		return nil
	}
	return m.str(s)
}

// strings is NULL for nil, and a list without entries for an empty one.
func (m *arena) strings(list []string) **C.char {
	if list == nil {
		return nil
	}
	at := (**C.char)(m.alloc((len(list) + 1) * int(unsafe.Sizeof(uintptr(0)))))
	for i, s := range list {
		unsafe.Slice(at, len(list))[i] = m.str(s)
	}
	return at
}

// pin makes the bytes usable from C until release, without a copy.
func (m *arena) pin(data []byte) unsafe.Pointer {
	if len(data) == 0 {
		return nil
	}
	m.pinned.Pin(unsafe.SliceData(data))
	return unsafe.Pointer(unsafe.SliceData(data))
}

func textOf(data unsafe.Pointer, n C.size_t) string {
	return string(viewOf(data, n))
}

// viewOf is memory of the library, valid as long as its result or callback.
func viewOf(data unsafe.Pointer, n C.size_t) []byte {
	return unsafe.Slice((*byte)(data), int(n))
}

func stringsOf(list **C.char) []string {
	found := []string{}
	for list != nil && *list != nil {
		found = append(found, C.GoString(*list))
		list = (**C.char)(unsafe.Add(unsafe.Pointer(list), unsafe.Sizeof(uintptr(0))))
	}
	return found
}

// sameText compares a string of C with one of Go, without a copy.
func sameText(p *C.char, s string) bool {
	if p == nil {
		return s == ""
	}
	for i := range len(s) { // a NUL byte, the end of p, is never equal
		if *(*byte)(unsafe.Add(unsafe.Pointer(p), i)) != s[i] {
			return false
		}
	}
	return *(*byte)(unsafe.Add(unsafe.Pointer(p), len(s))) == 0
}

func timeOfMs(ms C.int64_t) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}

func timeOfNs(ns C.int64_t) time.Time {
	return time.Unix(0, int64(ns))
}

func spanOf(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}

// cSpan rounds up: a short time must not become 0, the default.
func cSpan(d time.Duration) C.uint64_t {
	if d == NoLimit {
		return C.CSN_NO_LIMIT
	}
	if d <= 0 {
		return 0
	}
	return C.uint64_t((d + time.Millisecond - 1) / time.Millisecond)
}

func cSize(n int64) C.uint64_t {
	if n == NoLimit {
		return C.CSN_NO_LIMIT
	}
	return C.uint64_t(max(n, 0))
}

// modeOf translates st_mode. The permission bits are equal.
func modeOf(mode C.uint32_t) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & 0o170000 {
	case 0o040000:
		m |= fs.ModeDir
	case 0o120000:
		m |= fs.ModeSymlink
	case 0o010000:
		m |= fs.ModeNamedPipe
	case 0o140000:
		m |= fs.ModeSocket
	case 0o020000:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		m |= fs.ModeDevice
	}
	for bit, flag := range map[C.uint32_t]fs.FileMode{
		0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}
