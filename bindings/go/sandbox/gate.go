package sandbox

import "sync"

// gate counts the calls that use a handle of C, so that the handle is freed after the last of them.
// After shut no call enters. A callback may begin a call: enter never waits.
type gate struct {
	mu      sync.Mutex
	idle    sync.Cond
	running int
	closed  bool
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	g.running--
	if g.running == 0 && g.idle.L != nil {
		g.idle.Broadcast()
	}
	g.mu.Unlock()
}

// shut refuses further calls; false: it was shut before.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.closed
	g.closed = true
	return first
}

func (g *gate) closing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// drain waits for the calls that are under way.
func (g *gate) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle.L = &g.mu
	for g.running > 0 {
		g.idle.Wait()
	}
}
