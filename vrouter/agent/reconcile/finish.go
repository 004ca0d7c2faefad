package reconcile

import (
	"time"

	"windtunnel/vrouter/datapath"
)

// changed logs a change of a port's devices. If the change repairs drift, changed also
// records it in mended.
func (p *Pass) changed(port, what string) {
	p.r.log.Info("port changed", "port", port, "change", what)
	last := p.r.Last
	was := last != nil && last.gen == p.gen && last.whole[port]
	if was && p.cause != asked && p.cause != Starting && p.sameWays() && (p.Small == "") == (last.Small == "") {
		p.mended = append(p.mended, "port "+port+": "+what)
	}
}

// sameWays reports whether the underlay is the same as in the last pass. A change of the
// underlay can change the MTU of ports. Before compile no step uses the underlay, so
// sameWays returns true.
func (p *Pass) sameWays() bool { return p.facts.ways == nil || p.facts.sameWays(p.r.Last.facts) }

// noteWhole records the ports whose devices are as desired. A later difference on such a
// port is drift. A port stays recorded if a later pass finds a difference and fails.
func (p *Pass) noteWhole() {
	p.whole = make(map[string]bool, len(p.Devices))
	if last := p.r.Last; last != nil && last.gen == p.gen {
		p.whole = last.whole
	}
	if !p.compiled {
		return
	}
	for port := range p.Devices {
		if !p.whole[port] && !p.failed(portObject(port)) {
			p.whole[port] = true
		}
	}
}

// finish stores, logs and publishes the results of a pass.
func (r *Reconciler) finish(p *Pass) {
	p.noteWhole()
	r.tell(p)
	r.Repairs += uint64(len(p.mended))
	r.Passes[p.cause]++
	if p.cause == asked {
		r.Written.Updated += p.changes.Updated
		r.Written.Deleted += p.changes.Deleted
	}
	if r.InSync = p.inSync(); r.InSync {
		r.Synced = time.Now()
	}
	r.Last = p
	p.wire, p.under, p.tried = nil, nil, nil
	r.publish()
}

// inSync reports whether all objects are applied, except those without which the node still forwards
// correctly (isMild).
func (p *Pass) inSync() bool {
	for o := range p.Failures {
		if !o.isMild() {
			return false
		}
	}
	return true
}

// tell logs new problems, solved problems, repaired drift and written tables, each in one
// line.
func (r *Reconciler) tell(p *Pass) {
	before := map[string]bool{}
	if r.Last != nil {
		for _, f := range r.Last.Failures {
			before[f.Text] = true
		}
	}
	for _, f := range p.Failures {
		if !before[f.Text] {
			r.log.Warn("problem", "what", f.Text)
		}
		delete(before, f.Text)
	}
	for text := range before {
		r.log.Info("problem solved", "what", text)
	}
	for _, m := range p.mended {
		r.log.Warn("drift repaired", "what", m)
	}
	if p.changes != (datapath.Changes{}) {
		r.log.Info("tables written", "updated", p.changes.Updated, "deleted", p.changes.Deleted, "cause", string(p.cause))
	}
}
