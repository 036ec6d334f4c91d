package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"time"
)

// FS returns the files below a directory as a file system for reading: it is a fs.ReadDirFS,
// fs.StatFS, fs.ReadFileFS and fs.ReadLinkFS. Its files are io.ReaderAt and io.Seeker; each read asks
// the sandbox, so a file that changes meanwhile may be read in two states.
func (c *Caisson) FS(ctx context.Context, dir string) fs.FS {
	return &fileSystem{ctx, c, dir}
}

type fileSystem struct {
	ctx context.Context
	c   *Caisson
	dir string
}

func (f *fileSystem) path(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return f.dir, nil
	}
	return f.dir + "/" + name, nil
}

// pathError names the path as the file system does.
func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (f *fileSystem) stat(op, name string, flags ...FileFlag) (*entry, error) {
	at, err := f.path(op, name)
	if err != nil {
		return nil, err
	}
	info, err := f.c.Stat(f.ctx, at, flags...)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return &entry{info, path.Base(name)}, nil
}

func (f *fileSystem) Stat(name string) (fs.FileInfo, error) { return noNil(f.stat("stat", name)) }

func (f *fileSystem) Lstat(name string) (fs.FileInfo, error) {
	return noNil(f.stat("lstat", name, FileNoFollow))
}

// noNil keeps a nil pointer out of the interface.
func noNil(e *entry, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (f *fileSystem) ReadLink(name string) (string, error) {
	e, err := f.stat("readlink", name, FileNoFollow)
	if err != nil {
		return "", err
	}
	if !e.info.IsSymlink {
		return "", pathError("readlink", name, fs.ErrInvalid)
	}
	return e.info.Target, nil
}

func (f *fileSystem) ReadFile(name string) ([]byte, error) {
	at, err := f.path("read", name)
	if err != nil {
		return nil, err
	}
	data, err := f.c.ReadBytes(f.ctx, at, nil)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	return data, nil
}

func (f *fileSystem) ReadDir(name string) ([]fs.DirEntry, error) {
	at, err := f.path("readdir", name)
	if err != nil {
		return nil, err
	}
	list, err := f.c.List(f.ctx, at)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	entries := make([]fs.DirEntry, len(list.Items))
	for i := range list.Items {
		entries[i] = &entry{&list.Items[i], list.Items[i].Path}
	}
	if list.Truncated {
		return entries, pathError("readdir", name, fail(ErrTooLarge, "the directory has more entries"))
	}
	return entries, nil
}

func (f *fileSystem) Open(name string) (fs.File, error) {
	e, err := f.stat("open", name)
	if err != nil {
		return nil, err
	}
	if e.IsDir() {
		return &dirFile{entry: e, f: f, path: name}, nil
	}
	return &file{entry: e, f: f, path: name}, nil
}

// entry is a fs.FileInfo and a fs.DirEntry.
type entry struct {
	info *FileInfo
	name string
}

func (e *entry) Name() string               { return e.name }
func (e *entry) Size() int64                { return e.info.FileSize }
func (e *entry) Mode() fs.FileMode          { return e.info.Mode }
func (e *entry) ModTime() time.Time         { return e.info.Modified }
func (e *entry) IsDir() bool                { return e.info.Mode.IsDir() }
func (e *entry) Sys() any                   { return e.info }
func (e *entry) Type() fs.FileMode          { return e.info.Mode.Type() }
func (e *entry) Info() (fs.FileInfo, error) { return e, nil }
func (e *entry) String() string             { return fs.FormatFileInfo(e) }

const readAhead = 256 << 10

// file reads in pieces of readAhead.
type file struct {
	entry  *entry
	f      *fileSystem
	path   string
	at     int64
	ahead  []byte // bytes from `at` on
	closed bool
}

func (o *file) Stat() (fs.FileInfo, error) { return o.entry, nil }

func (o *file) Close() error {
	if o.closed {
		return pathError("close", o.path, fs.ErrClosed)
	}
	o.closed = true
	return nil
}

// fetch reads up to n bytes from an offset on.
func (o *file) fetch(at int64, n int) ([]byte, error) {
	if o.closed {
		return nil, pathError("read", o.path, fs.ErrClosed)
	}
	name, err := o.f.path("read", o.path)
	if err != nil {
		return nil, err
	}
	data, err := o.f.c.ReadBytes(o.f.ctx, name, &ReadOptions{Offset: at, Limit: int64(n)})
	if err != nil {
		return nil, pathError("read", o.path, err)
	}
	return data, nil
}

func (o *file) Read(buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	if len(o.ahead) == 0 {
		ahead, err := o.fetch(o.at, max(len(buf), readAhead))
		if err != nil {
			return 0, err
		}
		if len(ahead) == 0 {
			return 0, io.EOF
		}
		o.ahead = ahead
	}
	n := copy(buf, o.ahead)
	o.ahead, o.at = o.ahead[n:], o.at+int64(n)
	return n, nil
}

func (o *file) ReadAt(buf []byte, at int64) (int, error) {
	if at < 0 {
		return 0, pathError("read", o.path, fs.ErrInvalid)
	}
	if len(buf) == 0 {
		return 0, nil
	}
	data, err := o.fetch(at, len(buf))
	n := copy(buf, data)
	if err == nil && n < len(buf) {
		err = io.EOF
	}
	return n, err
}

func (o *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.entry.Size()
	case io.SeekStart:
	default:
		return 0, pathError("seek", o.path, fs.ErrInvalid)
	}
	if offset < 0 {
		return 0, pathError("seek", o.path, fs.ErrInvalid)
	}
	o.at, o.ahead = offset, nil
	return offset, nil
}

// dirFile lists a directory at the first ReadDir.
type dirFile struct {
	entry *entry
	f     *fileSystem
	path  string
	begun bool
	rest  []fs.DirEntry
}

func (d *dirFile) Stat() (fs.FileInfo, error) { return d.entry, nil }
func (d *dirFile) Close() error               { return nil }

func (d *dirFile) Read([]byte) (int, error) {
	return 0, pathError("read", d.path, errors.New("is a directory"))
}

func (d *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.begun {
		list, err := d.f.ReadDir(d.path)
		if err != nil {
			return nil, err
		}
		d.begun, d.rest = true, list
	}
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	list := d.rest[:n]
	d.rest = d.rest[n:]
	return list, nil
}
