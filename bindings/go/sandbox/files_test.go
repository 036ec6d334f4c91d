package sandbox_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"caisson.dev/go/sandbox"
)

func TestFSPassesTheTestsOfTheStandardLibrary(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		must(t, sb.WriteFiles(ctx, map[string]string{"top": "1", "dir/a.txt": "two\n",
			"dir/deep/b": strings.Repeat("x", 300), "dir/empty": ""}))
		_, err := sb.Exec(ctx, "ln -s a.txt dir/link; mkdir none")
		must(t, err)
		must(t, fstest.TestFS(sb.FS(ctx, "."), "top", "dir/a.txt", "dir/deep/b", "dir/link", "none"))
		must(t, fstest.TestFS(sb.FS(ctx, "dir"), "a.txt", "deep/b"))
	})
}

func TestFSFilesSeekAndFail(t *testing.T) {
	sb := open(t, "jail")
	content := strings.Repeat("0123456789", 60000)
	must(t, sb.WriteFile(ctx, "f", content))
	files := sb.FS(ctx, ".")
	f, err := files.Open("f")
	must(t, err)
	_, err = f.(io.Seeker).Seek(-5, io.SeekEnd)
	must(t, err)
	rest, err := io.ReadAll(f)
	must(t, err)
	buf := make([]byte, 10)
	n, err := f.(io.ReaderAt).ReadAt(buf, int64(len(content)-3))
	if string(rest) != "56789" || n != 3 || err != io.EOF {
		t.Fatalf("%q, %d, %v", rest, n, err)
	}
	must(t, f.Close())
	if _, err := f.Read(buf); !errors.Is(err, fs.ErrClosed) {
		t.Fatalf("a closed file: %v", err)
	}
	_, err = files.Open("none")
	var perr *fs.PathError
	if !errors.As(err, &perr) || perr.Path != "none" || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	if _, err := files.Open("../f"); !errors.Is(err, fs.ErrInvalid) {
		t.Fatalf("%v", err)
	}
	walked := 0
	must(t, fs.WalkDir(files, ".", func(string, fs.DirEntry, error) error { walked++; return nil }))
	if walked != 2 {
		t.Fatalf("walked over %d", walked)
	}
}

func TestStreamsReadAndWriteFiles(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		large := strings.Repeat("0123456789abcde\n", 100000)
		written, err := sb.WriteFrom(ctx, "a", io.MultiReader(strings.NewReader(large[:5]),
			strings.NewReader(large[5:])), &sandbox.WriteOptions{Mode: 0o600})
		must(t, err)
		if written.Bytes != int64(len(large)) || len(written.Hash) != 64 {
			t.Fatalf("%+v", written)
		}
		var got bytes.Buffer
		must(t, sb.ReadTo(ctx, "a", &got, nil))
		if got.String() != large {
			t.Fatalf("%d bytes, want %d", got.Len(), len(large))
		}
		info, err := sb.Stat(ctx, "a")
		must(t, err)
		if info.Mode != 0o600 || info.FileSize != int64(len(large)) || info.Modified.IsZero() {
			t.Fatalf("%+v", info)
		}
		w := sb.Writer(ctx, "b", nil)
		_, err = io.Copy(w, strings.NewReader(large))
		must(t, err)
		must(t, w.Close())
		data, err := sb.ReadBytes(ctx, "b", &sandbox.ReadOptions{Offset: 16, Limit: 10})
		must(t, err)
		if string(data) != "0123456789" {
			t.Fatalf("%q", data)
		}
	})
}

func TestAFailedSourceLeavesTheFileAsItWas(t *testing.T) {
	sb := open(t, "local")
	must(t, sb.WriteFile(ctx, "f", "old"))
	_, err := sb.WriteFrom(ctx, "f", io.MultiReader(strings.NewReader("new"), failing{}), nil)
	if !errors.Is(err, errFull) {
		t.Fatalf("the error is %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	_, err = sb.WriteFrom(ctx, "f", readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	}), nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v", err)
	}
	got, err := sb.ReadFile(context.Background(), "f")
	must(t, err)
	if got != "old" {
		t.Fatalf("%q", got)
	}
	w := sb.Writer(context.Background(), "../f", nil)
	io.WriteString(w, "x")
	wantCode(t, "close", w.Close(), "outside")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFull }

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

func TestTarsGoInAndOut(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		must(t, sb.WriteFiles(ctx, map[string]string{"d/a": "one", "d/e/b": "two"}))
		var archive bytes.Buffer
		var entries int64
		must(t, sb.ExportTar(ctx, "d", &archive,
			&sandbox.TransferOptions{OnProgress: func(n, _ int64) { entries = n }}))
		if names := tarNames(t, archive.Bytes()); !strings.Contains(names, "e/b") || entries == 0 {
			t.Fatalf("%s, %d entries", names, entries)
		}
		must(t, sb.ImportTar(ctx, "copy", bytes.NewReader(archive.Bytes()), nil))
		must(t, sb.WriteTar(ctx, "written", bytes.NewReader(archive.Bytes())))
		for _, at := range []string{"copy/e/b", "written/e/b"} {
			got, err := sb.ReadFile(ctx, at)
			must(t, err)
			if got != "two" {
				t.Fatalf("%s: %q", at, got)
			}
		}
		if err := sb.ExportTar(ctx, "d", fullWriter{}, nil); !errors.Is(err, errFull) {
			t.Fatalf("the error is %v", err)
		}
	})
}

func tarNames(t *testing.T, data []byte) string {
	var names []string
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return strings.Join(names, " ")
		}
		must(t, err)
		names = append(names, h.Name)
	}
}

func TestAnExportLeavesOutProtectedFilesAndNamesThem(t *testing.T) {
	sb := open(t, "local")
	must(t, sb.WriteFiles(ctx, map[string]string{"r/.git/hooks/pre-commit": "#!/bin/sh\n", "r/f": "x"}))
	var held []string
	opts := &sandbox.TransferOptions{OnProtected: func(path, rule string) { held = append(held, path+rule) }}
	host := filepath.Join(t.TempDir(), "out")
	must(t, sb.Export(ctx, "r", host, opts))
	_, err := os.Stat(filepath.Join(host, ".git/hooks/pre-commit"))
	if len(held) != 1 || !strings.Contains(held[0], "pre-commit") || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%q, %v", held, err)
	}
	opts.Protected = true
	must(t, sb.Export(ctx, "r", host, opts))
	_, err = os.Stat(filepath.Join(host, ".git/hooks/pre-commit"))
	must(t, err)
}

func TestWriteManyChecksHashesAndModes(t *testing.T) {
	sb := open(t, "jail")
	must(t, sb.WriteMany(ctx, []sandbox.FileContent{{Path: "a", Data: []byte("1"), Mode: 0o755},
		{Path: "empty"}}))
	read, err := sb.Read(ctx, "a", &sandbox.ReadOptions{Hash: true})
	must(t, err)
	info, err := sb.Stat(ctx, "a")
	must(t, err)
	if info.Mode != 0o755 || len(read.Hash) != 64 {
		t.Fatalf("%+v %+v", info, read)
	}
	must(t, sb.WriteMany(ctx, []sandbox.FileContent{{Path: "a", Data: []byte("2"), IfHash: read.Hash}}))
	err = sb.WriteMany(ctx, []sandbox.FileContent{{Path: "a", Data: []byte("3"), IfHash: read.Hash}})
	wantCode(t, "the second", err, "conflict")
	wantCode(t, "create", sb.WriteMany(ctx, []sandbox.FileContent{{Path: "a"}}, sandbox.FileCreate), "exists")
}

func TestWatchesSeeChanges(t *testing.T) {
	both(t, func(t *testing.T, backend sandbox.Type) {
		sb := open(t, backend)
		must(t, sb.Mkdir(ctx, "d"))
		w, err := sb.Watch(ctx, ".", sandbox.FileRecursive)
		must(t, err)
		must(t, sb.WriteFile(ctx, "d/f", "x"))
		for event, err := range w.Events(ctx) {
			must(t, err)
			if event.Path == "d/f" {
				break
			}
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := w.Next(short); !errors.Is(err, context.Canceled) {
			t.Fatalf("the error is %v", err)
		}
		must(t, w.Close())
		_, err = w.Next(ctx)
		wantCode(t, "next", err, "gone")
	})
}
