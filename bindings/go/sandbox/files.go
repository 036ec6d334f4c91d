package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"io"
	"io/fs"
	"unsafe"
)

// CountOnly as ReadOptions.Limit asks for the counts of lines without content.
const CountOnly = -1

func flagsOf(flags []FileFlag) C.uint32_t {
	var all FileFlag
	for _, f := range flags {
		all |= f
	}
	return C.uint32_t(all)
}

// ReadFile returns the whole content of a file.
func (c *Caisson) ReadFile(ctx context.Context, path string) (string, error) {
	data, err := c.ReadBytes(ctx, path, nil)
	return string(data), err
}

// ReadBytes returns the bytes of a file, of any size; Offset and Limit are in bytes.
func (c *Caisson) ReadBytes(ctx context.Context, path string, opts *ReadOptions) ([]byte, error) {
	data := []byte{}
	err := c.readBytes(ctx, path, opts, func(piece []byte) error {
		data = append(data, piece...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// ReadTo copies the bytes of a file to w; Offset and Limit are in bytes.
func (c *Caisson) ReadTo(ctx context.Context, path string, w io.Writer, opts *ReadOptions) error {
	return c.readBytes(ctx, path, opts, func(piece []byte) error {
		_, err := w.Write(piece)
		return err
	})
}

func (c *Caisson) readBytes(ctx context.Context, path string, opts *ReadOptions,
	sink func([]byte) error) error {
	h := &hooks{write: sink}
	return h.use(func(handle C.uintptr_t) error {
		return c.doCancel(ctx, func(m *arena, k *C.csn_cancel, e **C.csn_error) C.csn_status {
			o := opts.toC(m)
			if opts != nil {
				o.limit = cSize(opts.Limit)
			}
			o.cancel = k
			return C.caisson_go_read_bytes(c.handle, m.str(path), o, handle, e)
		})
	})
}

// Read returns a window of lines of a text file, or an image.
func (c *Caisson) Read(ctx context.Context, path string, opts *ReadOptions) (*ReadResult, error) {
	var r *C.csn_read_result
	err := c.doCancel(ctx, func(m *arena, k *C.csn_cancel, e **C.csn_error) C.csn_status {
		o := opts.toC(m)
		o.limit = C.CSN_LINES_DEFAULT
		if opts != nil && opts.Limit < 0 {
			o.limit = 0
		} else if opts != nil && opts.Limit > 0 {
			o.limit = cSize(opts.Limit)
		}
		o.cancel = k
		return C.csn_read(c.handle, m.str(path), o, &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_read_result_free(r)
	res := toReadResult(r)
	return &res, nil
}

// WriteFile writes a whole file, atomically, and makes missing directories.
func (c *Caisson) WriteFile(ctx context.Context, path, content string) error {
	_, err := c.Write(ctx, path, unsafe.Slice(unsafe.StringData(content), len(content)), nil)
	return err
}

// Write writes a file from memory.
func (c *Caisson) Write(ctx context.Context, path string, data []byte,
	opts *WriteOptions) (*WriteResult, error) {
	var r *C.csn_write_result
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		at := unsafe.Pointer(m.str(""))
		if len(data) > 0 {
			at = m.pin(data)
		}
		return C.csn_write(c.handle, m.str(path), at, C.size_t(len(data)), opts.toC(m), &r, e)
	})
	return takeWritten(r, err)
}

func takeWritten(r *C.csn_write_result, err error) (*WriteResult, error) {
	if err != nil {
		return nil, err
	}
	defer C.csn_write_result_free(r)
	res := toWriteResult(r)
	return &res, nil
}

// WriteFrom writes what r supplies until its end. An error of r, or the end of ctx, leaves the file
// as it was.
func (c *Caisson) WriteFrom(ctx context.Context, path string, r io.Reader,
	opts *WriteOptions) (*WriteResult, error) {
	var res *C.csn_write_result
	h := &hooks{read: readWith(ctx, r)}
	err := h.use(func(handle C.uintptr_t) error {
		return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
			return C.caisson_go_write_from(c.handle, m.str(path), handle, opts.toC(m), &res, e)
		})
	})
	return takeWritten(res, err)
}

// readWith reads from r as long as ctx is not done.
func readWith(ctx context.Context, r io.Reader) func([]byte) (int, error) {
	return func(buf []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, contextError(ctx)
		}
		return r.Read(buf)
	}
}

// Writer returns a writer of the file. Its Close completes the file and returns the error.
func (c *Caisson) Writer(ctx context.Context, path string, opts *WriteOptions) io.WriteCloser {
	r, w := io.Pipe()
	f := &fileWriter{pipe: w, done: make(chan error, 1)}
	go func() {
		_, err := c.WriteFrom(ctx, path, r, opts)
		r.CloseWithError(err)
		f.done <- err
	}()
	return f
}

type fileWriter struct {
	pipe   *io.PipeWriter
	done   chan error
	closed bool
}

func (f *fileWriter) Write(data []byte) (int, error) { return f.pipe.Write(data) }

func (f *fileWriter) Close() error {
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.pipe.Close()
	return <-f.done
}

// FileContent is one file of WriteMany.
type FileContent struct {
	Path   string
	Data   []byte
	Mode   fs.FileMode // 0: that of an existing file, else 0644 without the umask
	IfHash string      // SHA-256 in hex: ErrConflict if the file has another hash
}

// WriteFiles writes all files or none.
func (c *Caisson) WriteFiles(ctx context.Context, files map[string]string) error {
	list := make([]FileContent, 0, len(files))
	for path, content := range files {
		list = append(list, FileContent{Path: path, Data: []byte(content)})
	}
	return c.WriteMany(ctx, list)
}

// WriteMany writes all files or none.
func (c *Caisson) WriteMany(ctx context.Context, files []FileContent, flags ...FileFlag) error {
	return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		at := (*C.csn_file_content)(m.alloc(max(1, len(files)) * C.sizeof_csn_file_content))
		for i, r := range unsafe.Slice(at, len(files)) {
			r.path, r.mode = m.str(files[i].Path), C.uint32_t(files[i].Mode.Perm())
			r.if_hash = m.optional(files[i].IfHash)
			r.data, r.len = m.pin(files[i].Data), C.size_t(len(files[i].Data))
			unsafe.Slice(at, len(files))[i] = r
		}
		return C.csn_write_many(c.handle, at, C.size_t(len(files)), flagsOf(flags), e)
	})
}

// WriteTar writes the files of a tar stream below path (empty: the working directory), all or none.
func (c *Caisson) WriteTar(ctx context.Context, path string, r io.Reader, flags ...FileFlag) error {
	h := &hooks{read: readWith(ctx, r)}
	return h.use(func(handle C.uintptr_t) error {
		return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
			return C.caisson_go_write_tar(c.handle, m.optional(path), handle, flagsOf(flags), e)
		})
	})
}

// Edit replaces text in a file.
type Edit struct {
	Old        string `json:"old_string"` // exact, not empty
	New        string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

// Edit applies the edits in order, all or none. ErrNoMatch: the text is not there; ErrAmbiguous: it
// is there more than once and ReplaceAll is not set.
func (c *Caisson) Edit(ctx context.Context, path string, edits []Edit,
	flags ...FileFlag) (*EditResult, error) {
	var r *C.csn_edit_result
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		at := (*C.csn_edit_item)(m.alloc(max(1, len(edits)) * C.sizeof_csn_edit_item))
		for i, edit := range edits {
			item := &unsafe.Slice(at, len(edits))[i]
			item.old_string, item.old_len = m.text(edit.Old)
			item.new_string, item.new_len = m.text(edit.New)
			item.replace_all = C.uint32_t(cBool(edit.ReplaceAll))
		}
		return C.csn_edit(c.handle, m.str(path), at, C.size_t(len(edits)), flagsOf(flags), &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_edit_result_free(r)
	res := toEditResult(r)
	return &res, nil
}

// DeleteFile deletes a file or an empty directory.
func (c *Caisson) DeleteFile(ctx context.Context, path string) error {
	return c.Delete(ctx, path)
}

// Delete deletes a file or an empty directory; with FileRecursive a tree.
func (c *Caisson) Delete(ctx context.Context, path string, flags ...FileFlag) error {
	return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_delete(c.handle, m.str(path), flagsOf(flags), e)
	})
}

// Mkdir makes a directory and, without FileNoParents, missing ones above it.
func (c *Caisson) Mkdir(ctx context.Context, path string, flags ...FileFlag) error {
	return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_mkdir(c.handle, m.str(path), flagsOf(flags), e)
	})
}

// Rename renames a file or directory.
func (c *Caisson) Rename(ctx context.Context, from, to string, flags ...FileFlag) error {
	return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_rename(c.handle, m.str(from), m.str(to), flagsOf(flags), e)
	})
}

// Stat describes a file. It follows symlinks unless FileNoFollow is given.
func (c *Caisson) Stat(ctx context.Context, path string, flags ...FileFlag) (*FileInfo, error) {
	list, err := c.files(ctx, func(m *arena, r **C.csn_file_list, e **C.csn_error) C.csn_status {
		return C.csn_stat(c.handle, m.str(path), flagsOf(flags), r, e)
	})
	if err != nil {
		return nil, err
	}
	return &list.Items[0], nil
}

// ListDirectory returns the sorted names in a directory.
func (c *Caisson) ListDirectory(ctx context.Context, path string) ([]string, error) {
	list, err := c.List(ctx, path)
	if err != nil {
		return nil, err
	}
	if list.Truncated { // names without a word that some are missing would mislead
		return nil, fail(ErrTooLarge, "%s: more than %d entries; List returns the first ones", path,
			len(list.Items))
	}
	names := make([]string, len(list.Items))
	for i, item := range list.Items {
		names[i] = item.Path
	}
	return names, nil
}

// List describes the files of a directory, sorted by name.
func (c *Caisson) List(ctx context.Context, path string, flags ...FileFlag) (*FileList, error) {
	return c.files(ctx, func(m *arena, r **C.csn_file_list, e **C.csn_error) C.csn_status {
		return C.csn_list(c.handle, m.str(path), flagsOf(flags), r, e)
	})
}

// Glob finds files by a pattern with ** * ? [..] {a,b} below path (empty: the working directory).
func (c *Caisson) Glob(ctx context.Context, pattern, path string,
	flags ...FileFlag) (*FileList, error) {
	return c.files(ctx, func(m *arena, r **C.csn_file_list, e **C.csn_error) C.csn_status {
		return C.csn_glob(c.handle, m.str(pattern), m.optional(path), flagsOf(flags), r, e)
	})
}

func (c *Caisson) files(ctx context.Context,
	call func(m *arena, r **C.csn_file_list, e **C.csn_error) C.csn_status) (*FileList, error) {
	var r *C.csn_file_list
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status { return call(m, &r, e) })
	if err != nil {
		return nil, err
	}
	defer C.csn_file_list_free(r)
	list := toFileList(r)
	return &list, nil
}

// Grep searches file contents. The pattern is literal unless Regex is set.
func (c *Caisson) Grep(ctx context.Context, pattern string, opts *GrepOptions) (*GrepResult, error) {
	var r *C.csn_grep_result
	err := c.doCancel(ctx, func(m *arena, k *C.csn_cancel, e **C.csn_error) C.csn_status {
		o := opts.toC(m)
		o.cancel = k
		return C.csn_grep(c.handle, m.str(pattern), o, &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_grep_result_free(r)
	res := toGrepResult(r)
	return &res, nil
}
