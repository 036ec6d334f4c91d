// Command benchmark measures what the Go package adds to the library: the same calls on equal
// sandboxes, from Go and from C, in turn and in one process. C is timed in C; "cgo" is the same call
// timed in Go, so it includes what a return from a long call costs in any Go program.
package main

/*
#cgo !caisson_env pkg-config: caisson
#cgo caisson_env LDFLAGS: -lcaisson
#include <caisson/caisson.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static csn_sandbox *open_on(const char *backend, const char *dir)
{
    const csn_config c = {.size = sizeof(c), .backend = backend, .workspace = dir};
    csn_sandbox *sb = NULL;

    return csn_open(&c, &sb, NULL) < 0 ? NULL : sb;
}

// Both return nanoseconds, 0 on failure.
static uint64_t exec_true(csn_sandbox *sb)
{
    const char *const argv[] = {"true", NULL};
    csn_exec_result *r = NULL;
    uint64_t start = now();
    csn_status st = csn_exec(sb, argv, NULL, &r, NULL);

    csn_exec_result_free(r);
    return st < 0 ? 0 : now() - start;
}

struct text {
    char data[8192];
    size_t len;
};

static int collect(void *ctx, const void *data, size_t len)
{
    struct text *t = ctx;

    for (size_t i = 0; i < len && t->len < sizeof(t->data); i++)
        t->data[t->len++] = ((const char *)data)[i];
    return 0;
}

static uint64_t read_file(csn_sandbox *sb)
{
    struct text t = {.len = 0};
    uint64_t start = now();
    csn_status st = csn_read_bytes(sb, "f", NULL, collect, &t, NULL);
    uint64_t end = now();

    return st < 0 || t.len != 4096 ? 0 : end - start;
}
*/
import "C"

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"caisson.dev/go/sandbox"
)

var ctx = context.Background()

func main() {
	dir, err := os.MkdirTemp("", "benchmark")
	check(err)
	defer os.RemoveAll(dir)
	for _, backend := range []sandbox.Type{"jail", "local"} {
		measure(backend, dir)
	}
}

func measure(backend sandbox.Type, dir string) {
	sb, err := sandbox.Open(backend, sandbox.WithWorkspace(dir))
	check(err)
	defer sb.Close()
	check(sb.WriteFile(ctx, "f", strings.Repeat("x", 4096)))
	cBackend, cDir := C.CString(string(backend)), C.CString(dir)
	defer C.free(unsafe.Pointer(cBackend))
	defer C.free(unsafe.Pointer(cDir))
	other := C.open_on(cBackend, cDir)
	if other == nil {
		log.Fatal("C cannot open a sandbox")
	}
	defer C.csn_close(other)
	exec := func(ctx context.Context) func() {
		return func() { _, err := sb.Run(ctx, []string{"true"}, nil); check(err) }
	}
	read := func(ctx context.Context) func() {
		return func() { _, err := sb.ReadFile(ctx, "f"); check(err) }
	}
	cancellable, cancel := context.WithCancel(ctx)
	defer cancel()
	execC := func(sb *C.csn_sandbox) C.uint64_t { return C.exec_true(sb) }
	readC := func(sb *C.csn_sandbox) C.uint64_t { return C.read_file(sb) }
	compare(backend, "exec true", 2000, execC, other, exec(ctx))
	compare(backend, "exec true, context", 2000, execC, other, exec(cancellable))
	compare(backend, "read 4 KiB", 20000, readC, other, read(ctx))
	compare(backend, "read 4 KiB, context", 20000, readC, other, read(cancellable))
	parallel(backend, sb)
	level(backend, sb)
}

// compare alternates between C and Go and prints two quantiles.
func compare(backend sandbox.Type, what string, n int, c func(*C.csn_sandbox) C.uint64_t,
	other *C.csn_sandbox, g func()) {
	var fromC, fromCgo, fromGo []time.Duration
	for i := range 2 * n {
		if i%4 == 0 || i%4 == 3 { // C, Go, Go, C: neither is always the first
			start := time.Now()
			d := time.Duration(c(other))
			fromCgo = append(fromCgo, time.Since(start))
			if d == 0 {
				log.Fatal("a call from C failed")
			}
			fromC = append(fromC, d)
			continue
		}
		start := time.Now()
		g()
		fromGo = append(fromGo, time.Since(start))
	}
	slices.Sort(fromC)
	slices.Sort(fromCgo)
	slices.Sort(fromGo)
	for _, at := range []int{10, 50} { // the tenth is less disturbed by other programs
		a, b, d := fromC[n*at/100], fromCgo[n*at/100], fromGo[n*at/100]
		fmt.Printf("%-6s %-20s p%d  C %7.1f us  cgo %+5.1f us  the package %+5.1f us\n", backend, what,
			at, us(a), us(b-a), us(d-b))
	}
}

func us(d time.Duration) float64 { return float64(d) / 1000 }

// parallel runs 200 commands at once, each of which takes 100 ms by itself.
func parallel(backend sandbox.Type, sb *sandbox.Caisson) {
	const commands = 200
	var group sync.WaitGroup
	start := time.Now()
	ticks := make(chan time.Duration)
	done := make(chan struct{})
	go delay(done, ticks)
	for range commands {
		group.Go(func() { _, err := sb.Run(ctx, []string{"sleep", "0.1"}, nil); check(err) })
	}
	group.Wait()
	took := time.Since(start)
	close(done)
	fmt.Printf("%-6s %d commands of 100 ms at once: %v; longest delay of a goroutine: %v\n", backend,
		commands, took.Round(time.Millisecond), (<-ticks).Round(10*time.Microsecond))
}

// delay measures how late a goroutine that sleeps for a millisecond runs again, at most.
func delay(done chan struct{}, ret chan time.Duration) {
	var worst time.Duration
	for {
		select {
		case <-done:
			ret <- worst
			return
		default:
		}
		start := time.Now()
		time.Sleep(time.Millisecond)
		worst = max(worst, time.Since(start)-time.Millisecond)
	}
}

// level prints memory and descriptors before and after 10 000 calls.
func level(backend sandbox.Type, sb *sandbox.Caisson) {
	round := func(n int) {
		for i := range n {
			if i%4 == 0 {
				_, err := sb.Run(ctx, []string{"true"}, nil)
				check(err)
				continue
			}
			_, err := sb.ReadFile(ctx, "f")
			check(err)
		}
	}
	round(1000)
	files, memory := usage()
	round(10000)
	files2, memory2 := usage()
	fmt.Printf("%-6s 10000 calls: memory %d -> %d KiB, descriptors %d -> %d\n", backend,
		memory>>10, memory2>>10, files, files2)
}

func usage() (int, int) {
	list, err := os.ReadDir("/proc/self/fd")
	check(err)
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	var size, resident int
	fmt.Sscan(string(text), &size, &resident)
	return len(list), resident * os.Getpagesize()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
