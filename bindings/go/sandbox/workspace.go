package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"unsafe"
)

// Snapshot saves the present files.
func (c *Caisson) Snapshot(ctx context.Context) (*SnapshotResult, error) {
	return c.snapshot(ctx, func(_ *arena, r **C.csn_snapshot_result, e **C.csn_error) C.csn_status {
		return C.csn_snapshot(c.handle, r, e)
	})
}

// SnapshotAs saves the present files of a copy-on-write workspace under a name (empty: one is made
// up). ErrExists: the name is taken.
func (c *Caisson) SnapshotAs(ctx context.Context, name string) (*SnapshotResult, error) {
	return c.snapshot(ctx, func(m *arena, r **C.csn_snapshot_result, e **C.csn_error) C.csn_status {
		return C.csn_snapshot_as(c.handle, m.optional(name), r, e)
	})
}

func (c *Caisson) snapshot(ctx context.Context, call func(m *arena, r **C.csn_snapshot_result,
	e **C.csn_error) C.csn_status) (*SnapshotResult, error) {
	var r *C.csn_snapshot_result
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status { return call(m, &r, e) })
	if err != nil {
		return nil, err
	}
	defer C.csn_snapshot_result_free(r)
	res := toSnapshotResult(r)
	return &res, nil
}

// Snapshots lists the snapshots, the oldest first.
func (c *Caisson) Snapshots(ctx context.Context) ([]SnapshotEntry, error) {
	var r *C.csn_snapshot_list
	err := c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_snapshots(c.handle, &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_snapshot_list_free(r)
	return toSnapshotEntrys(r.items, r.count), nil
}

// Rollback replaces the files with those of a snapshot. On a copy-on-write workspace empty means
// the newest one, or the host's files if there is none.
func (c *Caisson) Rollback(ctx context.Context, snapshot string) error {
	return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_rollback(c.handle, m.optional(snapshot), e)
	})
}

// Fork opens another sandbox with the same files and configuration; name may be empty.
func (c *Caisson) Fork(ctx context.Context, name string) (*Caisson, error) {
	var sb *C.csn_sandbox
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_fork(c.handle, m.optional(name), &sb, e)
	})
	if err != nil {
		return nil, err
	}
	return newCaisson(sb, c.detached), nil
}

// Undo goes back to the snapshot before the last command (WithUndo), and removes it.
func (c *Caisson) Undo(ctx context.Context) error {
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status { return C.csn_undo(c.handle, e) })
}

// Discard throws all changes and snapshots away: the workspace is the host's directory again.
func (c *Caisson) Discard(ctx context.Context) error {
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status { return C.csn_discard(c.handle, e) })
}

// Diff compares a copy-on-write workspace with the host's directory.
func (c *Caisson) Diff(ctx context.Context, opts *DiffOptions) (*DiffResult, error) {
	var r *C.csn_diff_result
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_diff(c.handle, opts.toC(m), &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_diff_result_free(r)
	res := toDiffResult(r)
	return &res, nil
}

// Commit writes changes of a copy-on-write workspace to the host's directory. If there are
// conflicts nothing is written and Written is false.
func (c *Caisson) Commit(ctx context.Context, opts *CommitOptions) (*CommitResult, error) {
	var r *C.csn_commit_result
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		o := opts.toC(m)
		opts.resolve(m, o)
		return C.csn_commit(c.handle, o, &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_commit_result_free(r)
	res := toCommitResult(r)
	return &res, nil
}

func (o *CommitOptions) resolve(m *arena, r *C.csn_commit_opts) {
	if o == nil || len(o.Resolved) == 0 {
		return
	}
	at := (*C.csn_resolution)(m.alloc(len(o.Resolved) * C.sizeof_csn_resolution))
	i := 0
	for path, data := range o.Resolved {
		item := &unsafe.Slice(at, len(o.Resolved))[i]
		item.path, item.size = m.str(path), C.size_t(len(data))
		item.data = unsafe.Pointer(m.str(""))
		if len(data) > 0 {
			item.data = m.pin(data)
		}
		i++
	}
	r.resolved, r.resolved_count = at, C.size_t(len(o.Resolved))
}
