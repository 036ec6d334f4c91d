package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"io"
	"path/filepath"
)

// ExportDirectory copies a directory of the sandbox to a directory of the host, which is made if it
// is missing, and returns the absolute path of that.
func (c *Caisson) ExportDirectory(ctx context.Context, containerPath, hostPath string) (string, error) {
	host, err := filepath.Abs(hostPath)
	if err != nil {
		return "", err
	}
	if err := c.Export(ctx, containerPath, host, nil); err != nil {
		return "", err
	}
	return host, nil
}

// RefreshFromHost copies a directory of the host into the sandbox.
func (c *Caisson) RefreshFromHost(ctx context.Context, hostPath, containerPath string) error {
	return c.Import(ctx, hostPath, containerPath, nil)
}

// transfer makes a call with the hooks of the options. h has the hooks of the stream.
func (c *Caisson) transfer(ctx context.Context, opts *TransferOptions, h *hooks, call func(m *arena,
	o *C.csn_transfer_opts, handle C.uintptr_t, e **C.csn_error) C.csn_status) error {
	if opts != nil {
		h.progress, h.protected = opts.OnProgress, opts.OnProtected
	}
	return h.use(func(handle C.uintptr_t) error {
		return c.doCancel(ctx, func(m *arena, k *C.csn_cancel, e **C.csn_error) C.csn_status {
			o := opts.toC(m)
			o.cancel = k
			C.caisson_go_transfer_hooks(o, handle, cBool(h.progress != nil), cBool(h.protected != nil))
			return call(m, o, handle, e)
		})
	})
}

// Export copies a directory of the sandbox to a directory of the host, which is made if it is
// missing. Symlinks are copied as links; set-id bits, devices, sockets and fifos are left out.
func (c *Caisson) Export(ctx context.Context, path, hostDir string, opts *TransferOptions) error {
	return c.transfer(ctx, opts, &hooks{}, func(m *arena, o *C.csn_transfer_opts, _ C.uintptr_t,
		e **C.csn_error) C.csn_status {
		return C.csn_export(c.handle, m.str(path), m.str(hostDir), o, e)
	})
}

// Import copies a directory of the host into the sandbox.
func (c *Caisson) Import(ctx context.Context, hostDir, path string, opts *TransferOptions) error {
	return c.transfer(ctx, opts, &hooks{}, func(m *arena, o *C.csn_transfer_opts, _ C.uintptr_t,
		e **C.csn_error) C.csn_status {
		return C.csn_import(c.handle, m.str(hostDir), m.str(path), o, e)
	})
}

// ExportTar writes a directory of the sandbox to w as a tar stream.
func (c *Caisson) ExportTar(ctx context.Context, path string, w io.Writer,
	opts *TransferOptions) error {
	sink := func(data []byte) error {
		_, err := w.Write(data)
		return err
	}
	return c.transfer(ctx, opts, &hooks{write: sink}, func(m *arena, o *C.csn_transfer_opts,
		handle C.uintptr_t, e **C.csn_error) C.csn_status {
		return C.caisson_go_export_tar(c.handle, m.str(path), handle, o, e)
	})
}

// ImportTar copies the files of a tar stream into a directory of the sandbox.
func (c *Caisson) ImportTar(ctx context.Context, path string, r io.Reader,
	opts *TransferOptions) error {
	return c.transfer(ctx, opts, &hooks{read: readWith(ctx, r)}, func(m *arena,
		o *C.csn_transfer_opts, handle C.uintptr_t, e **C.csn_error) C.csn_status {
		return C.caisson_go_import_tar(c.handle, m.str(path), handle, o, e)
	})
}
