package bgp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"windtunnel/vrouter/model"
)

// Times of the protocol.
const (
	retryTime = 5 * time.Second // between two attempts to connect
	// RestartTime is the time for which neighbours keep this node's routes when its agent restarts,
	// and this node keeps theirs (RFC 4724).
	RestartTime = 120 * time.Second
	// deferTime is the time after a restart for which a speaker waits for all neighbours before it
	// announces its own paths.
	deferTime     = 10 * time.Second
	longLivedTime = time.Hour // RFC 9494
	multihop      = 255
	mostPrefixes  = 1_000_000 // of a neighbour and family; the session ends at more
)

// Speaker speaks BGP with a node's neighbours. It keeps the paths that they announce.
type Speaker struct {
	node    model.Node // with BGP
	log     *slog.Logger
	server  *server.BgpServer
	end     context.CancelFunc
	changed func()
	version atomic.Uint64 // of the paths in table

	mu        sync.Mutex
	table     *Table
	announced map[Key]Path
	reasons   map[netip.Addr]string // why the last session of a neighbour ended
}

// Start starts a speaker of a node that has BGP, and announces paths. stale are the paths of a
// former speaker: if there was one, they are not nil, and the neighbours go on to forward to this
// node. The speaker calls changed after the paths or the state of the neighbours have changed;
// changed must not block.
func Start(n model.Node, log *slog.Logger, stale, announce []Path, changed func()) (*Speaker, error) {
	ctx, end := context.WithCancel(context.Background())
	level := new(slog.LevelVar)
	s := &Speaker{
		node: n, log: log, server: server.NewBgpServer(server.LoggerOption(slog.New(&refusals{log: log, seen: map[string]bool{}}), level)),
		end: end, changed: changed, table: NewTable(stale), announced: map[Key]Path{}, reasons: map[netip.Addr]string{},
	}
	s.table.Keep(n.BGP.Neighbors)
	go s.server.Serve()
	err := s.start(ctx, stale != nil, announce)
	if err != nil {
		s.Close(false)
		return nil, err
	}
	time.AfterFunc(RestartTime, func() {
		if ctx.Err() == nil {
			s.settle(netip.Addr{}, "")
		}
	})
	return s, nil
}

func (s *Speaker) start(ctx context.Context, restarting bool, announce []Path) error {
	var listen []string
	for _, a := range s.node.Underlay {
		listen = append(listen, a.String())
	}
	port := cmp.Or(s.node.BGP.Port, model.DefaultBGPPort)
	err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
		Asn: s.node.BGP.ASN, RouterId: s.node.BGP.RouterID.String(), ListenPort: int32(port), ListenAddresses: listen,
	}})
	if err != nil {
		return fmt.Errorf("listen for BGP on port %d of %s: %w; stop the program that uses the port, or set another bgp port", port, strings.Join(listen, ", "), err)
	}
	if err := s.Announce(announce); err != nil {
		return err
	}
	err = s.server.WatchEvent(ctx, server.WatchEventMessageCallbacks{
		OnPathUpdate: func(paths []*apiutil.Path, _ time.Time) { s.receive(paths) },
		OnPathEor:    func(p *apiutil.Path, _ time.Time) { s.settle(p.PeerAddress.Unmap(), familyOf(p.Family)) },
		OnPeerUpdate: func(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) { s.notePeer(e) },
	}, server.WatchPostUpdate(false, "", ""), server.WatchEor(false), server.WatchPeer())
	if err != nil {
		return fmt.Errorf("follow the BGP sessions: %w", err)
	}
	for _, n := range s.node.BGP.Neighbors {
		if err := s.server.AddPeer(ctx, &api.AddPeerRequest{Peer: s.peer(n, restarting)}); err != nil {
			return fmt.Errorf("add BGP neighbour %s: %w", n.Address, err)
		}
	}
	return nil
}

// peer returns the configuration of a session.
func (s *Speaker) peer(n model.Neighbor, restarting bool) *api.Peer {
	p := &api.Peer{
		Conf:      &api.PeerConf{NeighborAddress: n.Address.String(), PeerAsn: cmp.Or(n.ASN, s.node.BGP.ASN), AuthPassword: n.Password},
		Transport: &api.Transport{RemotePort: uint32(cmp.Or(n.Port, model.DefaultBGPPort))},
		Timers:    &api.Timers{Config: &api.TimersConfig{ConnectRetry: uint64(retryTime.Seconds()), IdleHoldTimeAfterReset: uint64(retryTime.Seconds())}},
		// Neighbours are often not on the link of the node.
		EbgpMultihop: &api.EbgpMultihop{Enabled: true, MultihopTtl: multihop},
		GracefulRestart: &api.GracefulRestart{
			Enabled: true, RestartTime: uint32(RestartTime.Seconds()), DeferralTime: uint32(deferTime.Seconds()), NotificationEnabled: true, LonglivedEnabled: true, LocalRestarting: restarting,
		},
	}
	if i := slices.IndexFunc(s.node.Underlay, func(a netip.Addr) bool { return a.Is4() == n.Address.Is4() }); i >= 0 {
		p.Transport.LocalAddress = s.node.Underlay[i].String()
	}
	for _, f := range s.families() {
		family := apiutil.ToApiFamily(families[f].Afi(), families[f].Safi())
		p.AfiSafis = append(p.AfiSafis, &api.AfiSafi{
			Config:                   &api.AfiSafiConfig{Family: family, Enabled: true},
			MpGracefulRestart:        &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}},
			LongLivedGracefulRestart: &api.LongLivedGracefulRestart{Config: &api.LongLivedGracefulRestartConfig{Enabled: true, RestartTime: uint32(longLivedTime.Seconds())}},
			PrefixLimits:             &api.PrefixLimit{Family: family, MaxPrefixes: mostPrefixes, ShutdownThresholdPct: 100},
		})
	}
	return p
}

func (s *Speaker) families() []model.BGPFamily {
	if len(s.node.BGP.Families) == 0 {
		return model.BGPFamilies
	}
	return s.node.BGP.Families
}

// Announce replaces the announced paths. Paths that have not changed are not announced again.
func (s *Speaker) Announce(paths []Path) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[Key]Path, len(paths))
	var changed []*apiutil.Path
	for _, p := range paths {
		next[p.Key()] = p
		if was, has := s.announced[p.Key()]; has && p.equal(&was) {
			continue
		}
		w, err := p.toWire()
		if err != nil {
			return err
		}
		changed = append(changed, w)
	}
	var gone []*apiutil.Path
	for key, p := range s.announced {
		if _, has := next[key]; !has {
			if w, err := p.toWire(); err == nil { // it was announced, so it can be written
				gone = append(gone, w)
			}
		}
	}
	var errs []error
	if len(gone) > 0 {
		errs = append(errs, s.server.DeletePath(apiutil.DeletePathRequest{Paths: gone}))
	}
	if len(changed) > 0 {
		_, err := s.server.AddPath(apiutil.AddPathRequest{Paths: changed})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("announce paths by BGP: %w", err)
	}
	s.announced = next
	return nil
}

// equal reports whether two announced paths are the same.
func (p *Path) equal(o *Path) bool {
	return p.Key() == o.Key() && p.NextHop == o.NextHop && p.Label == o.Label && p.RoutedLabel == o.RoutedLabel && p.RouterMAC == o.RouterMAC &&
		slices.Equal(p.Targets, o.Targets) && slices.Equal(p.Tunnels, o.Tunnels)
}

// receive keeps or withdraws paths of neighbours.
func (s *Speaker) receive(paths []*apiutil.Path) {
	s.mu.Lock()
	for _, w := range paths {
		switch p, ok := fromWire(w); {
		case !ok:
		case w.Withdrawal:
			s.table.Withdraw(p.Key())
		default:
			p.External = w.PeerASN != s.node.BGP.ASN
			s.table.Put(p)
		}
	}
	s.mu.Unlock()
	s.version.Add(1)
	s.changed()
}

// settle removes the paths that a neighbour has not announced again after a restart of the agent.
func (s *Speaker) settle(neighbor netip.Addr, f model.BGPFamily) {
	s.mu.Lock()
	s.table.Settle(neighbor, f)
	s.mu.Unlock()
	s.version.Add(1)
	s.changed()
}

// notePeer logs the changes of sessions, and keeps the reason why a session ended.
func (s *Speaker) notePeer(e *apiutil.WatchEventMessage_PeerEvent) {
	if e.Type != apiutil.PEER_EVENT_STATE {
		return
	}
	address, state := e.Peer.Conf.NeighborAddress.Unmap(), e.Peer.State
	s.mu.Lock()
	was, why := s.reasons[address], s.reasons[address]
	switch state.DisconnectReason {
	case api.PeerState_DISCONNECT_REASON_UNSPECIFIED, api.PeerState_DISCONNECT_REASON_IDLE_TIMER_EXPIRED: // not an end
	case api.PeerState_DISCONNECT_REASON_BAD_PEER_AS:
		why = "the neighbour has another AS number; correct its asn here, or the AS number that it has"
	default:
		why = state.DisconnectMessage
	}
	if state.SessionState == bgp.BGP_FSM_ESTABLISHED {
		why = ""
	}
	s.reasons[address] = why
	s.mu.Unlock()
	switch {
	case state.SessionState == bgp.BGP_FSM_ESTABLISHED:
		s.log.Info("BGP session established", "neighbor", address, "asn", state.PeerASN)
	case why != "" && why != was:
		s.log.Warn("BGP session ended", "neighbor", address, "reason", why)
	}
	s.changed()
}

// Version changes whenever the result of Received changes.
func (s *Speaker) Version() uint64 { return s.version.Load() }

// Received returns the paths that the neighbours announce.
func (s *Speaker) Received() []Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Paths()
}

// Announced returns the paths that the node announces, sorted.
func (s *Speaker) Announced() []Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&Table{s.announced}).Paths()
}

// Neighbor is the state of a session.
type Neighbor struct {
	Address  netip.Addr `json:"address"`
	ASN      uint32     `json:"asn"`
	State    string     `json:"state"`            // established, or idle, connect, active, opensent, openconfirm
	Since    time.Time  `json:"since,omitzero"`   // of an established session
	Received int        `json:"received"`         // paths
	Stale    int        `json:"stale,omitempty"`  // of these, paths of before a restart of the agent
	Sent     int        `json:"sent"`             // paths
	Reason   string     `json:"reason,omitempty"` // why the last session ended
}

// Neighbors returns the states of the sessions, sorted by address.
func (s *Speaker) Neighbors() (all []Neighbor, err error) {
	err = s.server.ListPeer(context.Background(), &api.ListPeerRequest{EnableAdvertised: true}, func(p *api.Peer) {
		a, err := netip.ParseAddr(p.GetConf().GetNeighborAddress())
		if err != nil {
			return
		}
		state := strings.ToLower(strings.TrimPrefix(p.GetState().GetSessionState().String(), "SESSION_STATE_"))
		n := Neighbor{Address: a.Unmap(), ASN: p.GetConf().GetPeerAsn(), State: state}
		for _, f := range p.GetAfiSafis() {
			n.Sent += int(f.GetState().GetAdvertised())
		}
		if up := p.GetTimers().GetState().GetUptime(); state == "established" && up != nil {
			n.Since = up.AsTime()
		}
		all = append(all, n)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		all[i].Reason = s.reasons[all[i].Address]
		for _, p := range s.table.paths {
			if p.Neighbor == all[i].Address {
				all[i].Received++
				all[i].Stale += number(p.Stale)
			}
		}
	}
	slices.SortFunc(all, func(a, b Neighbor) int { return a.Address.Compare(b.Address) })
	return all, err
}

// Close ends all sessions. graceful: the neighbours keep this node's routes for RestartTime, since
// its agent will start again.
func (s *Speaker) Close(graceful bool) {
	s.end()
	if err := s.server.StopBgp(context.Background(), &api.StopBgpRequest{AllowGracefulRestart: graceful}); err != nil {
		s.log.Debug("cannot stop BGP", "error", err)
	}
}

// refusals is the log of GoBGP. It passes warnings on, and says once of each address without a
// configured neighbour that its connections are refused.
type refusals struct {
	log *slog.Logger
	slog.Handler
	mu   sync.Mutex
	seen map[string]bool
}

// unknownNeighbor is GoBGP's message of a refused connection (BgpServer.passConnToPeer).
const unknownNeighbor = "Can't find configuration for a new passive connection"

func (r *refusals) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (r *refusals) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *refusals) WithGroup(string) slog.Handler { return r }

func (r *refusals) Handle(ctx context.Context, record slog.Record) error {
	if record.Message != unknownNeighbor {
		if record.Level < slog.LevelWarn {
			return nil
		}
		return r.log.Handler().Handle(ctx, record)
	}
	record.Attrs(func(a slog.Attr) bool {
		if a.Key != "Key" {
			return true
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if address := a.Value.String(); !r.seen[address] {
			r.seen[address] = true
			r.log.Warn("refused a BGP connection: the address is not a neighbour; add it with `vrouter bgp enable`", "address", address)
		}
		return false
	})
	return nil
}
