package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// bgpSessions has the node's BGP sessions. It announces the node's ports that forward packets, and returns
// the routes of the neighbours to the reconciler. Only the agent's loop calls external, follow and close.
type bgpSessions struct {
	config  config.Config
	log     *slog.Logger
	kept    follow.Kept
	changed chan struct{} // receives when the neighbours' paths have changed
	lost    chan struct{} // receives when a session has ended, and its paths are gone

	mu      sync.Mutex
	speaker *bgp.Speaker // nil: the node has no BGP, or Start failed
	why     string       // why speaker is nil although the node has BGP
	site    bgp.Site     // of last

	node      *model.BGP   // BGP configuration of the speaker
	underlay  []netip.Addr // underlay addresses of the speaker
	stale     []bgp.Path   // received by the previous speaker, until the speaker starts; nil: there was none
	last      resolved
	savedAt   time.Time
	savePause time.Duration
	saved     edition // of the paths on disk
}

// edition is a version of the paths that a speaker has received. If speaker is nil, they are those of the agent's last run.
type edition struct {
	speaker *bgp.Speaker
	version uint64
}

// resolved is a result of external, with its inputs.
type resolved struct {
	edition
	node        model.Node
	networks    []model.Network
	nodes       []model.Node
	unreachable map[netip.Addr]string
	paths       []bgp.Path
	routes      *fib.External
}

// savePause is the minimum time between two writes of the neighbours' paths to disk. The pause is also saveShare times the
// duration of a write.
const savePause, saveShare = time.Second, 50

// openBGP reads the paths that the previous run of the agent received. The node uses them until its
// neighbours have announced their paths again.
func openBGP(c config.Config, log *slog.Logger, kept follow.Kept) (*bgpSessions, error) {
	stale, err := kept.LoadPaths()
	if err != nil {
		return nil, err
	}
	return &bgpSessions{config: c, log: log, kept: kept, stale: stale, changed: make(chan struct{}, 1), lost: make(chan struct{}, 1)}, nil
}

// external returns the routes of the neighbours that the node uses; see reconcile.Reconciler.External.
func (b *bgpSessions) external(s model.Slice, unreachable func(netip.Addr) string) *fib.External {
	self, has := s.Node(b.config.Node)
	if !has || self.BGP == nil {
		b.last = resolved{}
		b.setSite(bgp.Site{})
		return nil
	}
	here := slices.DeleteFunc(slices.Clone(s.Networks), func(n model.Network) bool { return len(s.On(n.Name, self.Name)) == 0 })
	next := resolved{edition: edition{speaker: b.speaker}, node: self, networks: here, nodes: s.Nodes, paths: b.stale, unreachable: map[netip.Addr]string{}}
	var changes bgp.Changes
	if b.speaker != nil {
		if next.version = b.speaker.Version(); next.edition == b.last.edition && reflect.DeepEqual(here, b.last.networks) {
			next.paths = b.last.paths
		} else {
			if next.paths, changes = b.speaker.ReceivedFor(here); changes == nil { // the networks import other targets
				b.saved = edition{}
			}
		}
	}
	for i := range next.paths {
		hop := next.paths[i].NextHop
		if _, known := next.unreachable[hop]; !known && hop.IsValid() {
			next.unreachable[hop] = unreachable(hop)
		}
	}
	same := b.last.routes != nil && next.speaker == b.last.speaker && maps.Equal(next.unreachable, b.last.unreachable) &&
		reflect.DeepEqual(next.node, b.last.node) && reflect.DeepEqual(next.networks, b.last.networks) && reflect.DeepEqual(next.nodes, b.last.nodes)
	if same && next.version == b.last.version {
		return b.last.routes
	}
	limits := b.config.Limits.WithDefaults()
	site := bgp.Site{
		Node: self, Networks: here, Nodes: s.Nodes, MaxRoutes: maxExternal(limits),
		Unreachable: func(a netip.Addr) string { return next.unreachable[a] },
	}
	if same && changes != nil {
		next.routes = site.Update(b.last.routes, next.paths, changes)
	} else {
		next.routes, _ = site.Resolve(next.paths)
	}
	if b.last.routes != nil && next.routes.Equal(b.last.routes) {
		next.routes = b.last.routes // the same pointer: the tables are not compiled again
	}
	b.last = next
	b.setSite(site)
	return next.routes
}

// gone returns the next hops of the routes in use that no neighbour announces any more.
func (b *bgpSessions) gone() map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	if b.speaker == nil || b.last.routes == nil {
		return all
	}
	for _, s := range b.last.routes.Senders() {
		if !b.speaker.Reaches(s.Address) {
			all[s.Address] = true
		}
	}
	return all
}

// maxExternal returns the maximum number of routes of other routers that a node uses: half the size of its
// smallest table of routes. The other half stays free for the routes of the fleet.
func maxExternal(l datapath.Limits) int { return int(min(l.Routes, l.Prefixes, l.Bridge)) / 2 }

func (b *bgpSessions) setSite(s bgp.Site) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.site = s
}

// follow configures the sessions by the desired state of a pass, and announces the ports that forward
// packets. The agent calls it after each pass, so that a start that failed is tried again.
func (b *bgpSessions) follow(p *reconcile.Pass) {
	self, has := p.Want.Self()
	if !has || self.BGP == nil {
		if b.node != nil || b.stale != nil {
			b.end(false, "")
			b.node, b.stale, b.saved = nil, nil, edition{}
			b.warn(b.kept.SavePaths(nil))
		}
		return
	}
	ports := slices.DeleteFunc(slices.Clone(p.Want.Ports), func(o model.Port) bool { return p.Unfit(o.Name) != nil })
	paths := bgp.Export(self, p.Want.State.Networks, ports, p.Want.State.Routes)
	if b.speaker != nil && reflect.DeepEqual(b.node, self.BGP) && slices.Equal(b.underlay, self.Underlay) {
		b.warn(b.speaker.Announce(paths))
	} else {
		b.start(self, paths)
	}
	b.save(false)
}

// start replaces the speaker after a change of the configuration. The node keeps the routes of the neighbours.
func (b *bgpSessions) start(self model.Node, paths []bgp.Path) {
	if b.speaker != nil {
		b.stale = b.speaker.Received()
	}
	b.end(true, "")
	b.node, b.underlay = self.BGP, self.Underlay
	if b.config.Netns != "" {
		b.end(false, "BGP is enabled, but the agent does not run in the node's network namespace "+b.config.Netns+"; remove netns from its configuration and start it in the namespace, for example with `ip netns exec`")
		return
	}
	s, err := bgp.Start(self, b.log, b.stale, paths, func(lost bool) {
		to := b.changed
		if lost {
			to = b.lost
		}
		pause.Wake(to)
	})
	if err != nil {
		b.end(false, err.Error())
		return
	}
	b.mu.Lock()
	b.speaker, b.why = s, ""
	b.mu.Unlock()
	b.stale = nil
}

// end ends the sessions. why says why the node has no sessions although it has BGP; "" if it has no BGP, or
// if start or close calls end.
func (b *bgpSessions) end(graceful bool, why string) {
	b.mu.Lock()
	s, was := b.speaker, b.why
	b.speaker, b.why = nil, why
	b.mu.Unlock()
	if s != nil {
		s.Close(graceful)
	}
	if why != "" && why != was {
		b.log.Warn("no BGP sessions", "reason", why)
	}
}

// save writes the neighbours' paths of the last pass to disk if they have changed, for the next run of the agent. Unless
// now is true, it does so at most once in b.savePause.
func (b *bgpSessions) save(now bool) {
	if b.saved == b.last.edition || !now && time.Since(b.savedAt) < b.savePause {
		return
	}
	begin := time.Now()
	err := b.kept.SavePaths(b.last.paths)
	if b.savedAt = time.Now(); err == nil {
		b.saved = b.last.edition
	}
	b.savePause = max(savePause, saveShare*time.Since(begin))
	b.warn(err)
}

func (b *bgpSessions) warn(err error) {
	if err != nil {
		b.log.Warn("cannot announce or save the paths of BGP", "error", err)
	}
}

// close ends the sessions when the agent stops. again says that the agent will start again: the neighbours
// keep the routes to the node, and its data path keeps forwarding.
func (b *bgpSessions) close(again bool) {
	if again {
		b.save(true)
	}
	b.end(again, "")
}

// problem returns why the node has no sessions although it has BGP; "" if it has sessions or no BGP.
func (b *bgpSessions) problem() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// refused returns the addresses that connect to the node for BGP although they are not its neighbours.
func (b *bgpSessions) refused() []netip.Addr {
	s, err := b.running()
	if err != nil {
		return nil
	}
	return s.Refused()
}

// bgpRoutes adds the API's handlers of the node's sessions.
func (a *agent) bgpRoutes(mux *http.ServeMux) {
	mux.Handle("GET /v1/bgp/neighbors", answer(func(*http.Request) (any, error) {
		s, err := a.bgp.running()
		if err != nil {
			return nil, err
		}
		return s.Neighbors()
	}))
	mux.Handle("GET /v1/bgp/rib", answer(func(r *http.Request) (any, error) {
		s, err := a.bgp.running()
		if err != nil {
			return nil, err
		}
		if r.URL.Query().Get("announced") == "true" {
			return s.Announced(), nil
		}
		a.bgp.mu.Lock()
		site := a.bgp.site
		a.bgp.mu.Unlock()
		return site.Explain(s.Received(), a.snapshot.Load().ignored), nil
	}))
	mux.Handle("PUT /v1/bgp", change(a, nil, put(func(ctx context.Context, r api.BGPRequest) error { return a.follower.PutBGP(ctx, r.Node, r.BGP) })))
}

// running returns the speaker, or an error that says why there is none.
func (b *bgpSessions) running() (*bgp.Speaker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.speaker == nil {
		return nil, refuse(http.StatusConflict, "%s", cmp.Or(b.why, fmt.Sprintf("node %s has no BGP; enable it with `vrouter bgp enable`", b.config.Node)))
	}
	return b.speaker, nil
}
