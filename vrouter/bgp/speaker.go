package bgp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
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
	"golang.org/x/time/rate"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/model"
)

// Times and limits of the protocol.
const (
	retryTime = 5 * time.Second // between two attempts to connect
	// deferTime is the maximum time for which a restarted speaker waits for the paths of all neighbours
	// before it announces paths.
	deferTime     = 10 * time.Second
	longLivedTime = time.Hour // RFC 9494
	multihop      = 255
	logPause      = 10 * time.Second // between two log entries about a neighbour, after logBurst entries
	logBurst      = 20
	bfdMultiplier = 3 // intervals without a packet after which a neighbour has failed (RFC 5880)
)

// restartTime is the maximum time for which the neighbours and this node keep each other's routes
// while the agent restarts (RFC 4724).
var restartTime = 120 * time.Second

// limitPause is the time from the end of a session because of too many paths until the next session.
var limitPause = 5 * time.Minute

// Speaker exchanges paths with a node's neighbours by BGP.
type Speaker struct {
	node    model.Node // with BGP
	log     *slog.Logger
	server  *server.BgpServer
	ctx     context.Context // ends with the speaker
	end     context.CancelFunc
	bfd     bfdSessions        // nil: no neighbour has BFD
	limits  map[netip.Addr]int // of paths in a family
	changed func(lost bool)
	pause   time.Duration // from the start of a session until checkSender runs
	version atomic.Uint64 // of the paths in table

	restarts sync.Mutex // held during restart

	mu        sync.Mutex
	table     *table
	announced map[Key]*Path

	// sessions guards the fields below. GoBGP's goroutines lock it when they log, so it must not be held
	// during a call of server. The same is true of mu.
	sessions  sync.Mutex
	reasons   map[netip.Addr]reason // why a neighbour has no session
	malformed map[netip.Addr]malformed
	silent    map[netip.Addr]silence   // neighbours without a TCP connection since their reason was set
	refused   map[netip.Addr]time.Time // when a connection of an address without a neighbour was refused last
	senders   map[netip.Addr]*sender   // of the latest session of each neighbour
	bfdState  map[netip.Addr]string    // of neighbours with BFD
	bfdWhy    map[netip.Addr]string    // why BFD failed last
	logs      sync.Map                 // a *rate.Limiter by neighbour
}

// mayLog reports whether the speaker logs another entry about a neighbour. A neighbour can send very many invalid messages.
func (s *Speaker) mayLog(neighbor string) bool {
	l, _ := s.logs.LoadOrStore(neighbor, rate.NewLimiter(rate.Every(logPause), logBurst))
	return l.(*rate.Limiter).Allow()
}

// Start starts a speaker of a node that has BGP, and announces paths. stale are the paths that an
// earlier speaker of the node received; nil if there was none. If there was one, the speaker tells the
// neighbours that it restarts, so that they keep the routes to this node. The speaker calls changed after
// the paths or the sessions of the neighbours have changed; changed must not block. lost says that a session has ended,
// and that the paths of its neighbour are gone.
func Start(n model.Node, log *slog.Logger, stale, announce []Path, changed func(lost bool)) (*Speaker, error) {
	ctx, end := context.WithCancel(context.Background())
	s := &Speaker{
		node: n, log: log, ctx: ctx, end: end, changed: changed, pause: senderTime, limits: map[netip.Addr]int{}, table: newTable(stale), announced: map[Key]*Path{},
		reasons: map[netip.Addr]reason{}, malformed: map[netip.Addr]malformed{}, silent: map[netip.Addr]silence{}, refused: map[netip.Addr]time.Time{},
		senders: map[netip.Addr]*sender{}, bfdState: map[netip.Addr]string{}, bfdWhy: map[netip.Addr]string{},
	}
	for _, o := range n.BGP.Neighbors {
		s.limits[o.Address] = int(cmp.Or(o.MaximumPrefix, model.DefaultMaximumPrefix))
	}
	if stale != nil {
		s.pause += deferTime
	}
	s.server = server.NewBgpServer(server.LoggerOption(slog.New(&gobgpLog{Handler: log.Handler(), speaker: s}), new(slog.LevelVar)))
	s.table.Keep(n.BGP)
	go s.server.Serve()
	err := s.start(ctx, stale != nil, announce)
	if err != nil {
		s.Close(false)
		return nil, err
	}
	time.AfterFunc(restartTime, func() {
		if ctx.Err() == nil {
			s.settle(netip.Addr{}, "")
		}
	})
	return s, nil
}

func (s *Speaker) start(ctx context.Context, restarting bool, announce []Path) error {
	listen := lists.Map(s.node.Underlay, netip.Addr.String)
	port := cmp.Or(s.node.BGP.Port, model.DefaultBGPPort)
	err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
		Asn: s.node.BGP.ASN, RouterId: s.node.BGP.RouterID.String(), ListenPort: int32(port), ListenAddresses: listen,
	}})
	if err != nil {
		return fmt.Errorf("listen for BGP on port %d of %s: %w; stop the program that uses the port, or set another bgp port", port, strings.Join(listen, ", "), err)
	}
	if err := s.keepToItself(ctx); err != nil {
		return fmt.Errorf("limit the announced paths to those of this node: %w", err)
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
		return fmt.Errorf("watch the BGP sessions: %w", err)
	}
	for _, n := range s.node.BGP.Neighbors {
		if err := s.server.AddPeer(ctx, &api.AddPeerRequest{Peer: s.peer(n, restarting)}); err != nil {
			return fmt.Errorf("add BGP neighbour %s: %w", n.Address, err)
		}
	}
	return s.startBFD(ctx)
}

// keepToItself makes GoBGP announce only the paths of this node. By default GoBGP announces the paths of an external neighbour
// to other neighbours with this node as next hop. This node would drop the packets, because it does not know the labels.
func (s *Speaker) keepToItself(ctx context.Context) error {
	own := &api.Policy{Name: "own", Statements: []*api.Statement{{
		Name: "own", Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL}, Actions: &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT},
	}}}
	if err := s.server.AddPolicy(ctx, &api.AddPolicyRequest{Policy: own}); err != nil {
		return err
	}
	return s.server.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
		Name: "global", Direction: api.PolicyDirection_POLICY_DIRECTION_EXPORT, Policies: []*api.Policy{{Name: own.Name}}, DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT,
	}})
}

// peer returns the configuration of a session.
func (s *Speaker) peer(n model.Neighbor, restarting bool) *api.Peer {
	p := &api.Peer{
		// By default GoBGP 4.8 silently drops a path that contains the node's AS, so an earlier path to the same
		// destination would remain. With AllowOwnAsn it reports the path, and receive withdraws the earlier one.
		Conf:      &api.PeerConf{NeighborAddress: n.Address.String(), PeerAsn: cmp.Or(n.ASN, s.node.BGP.ASN), AuthPassword: n.Password, AllowOwnAsn: math.MaxUint8},
		Transport: &api.Transport{RemotePort: uint32(cmp.Or(n.Port, model.DefaultBGPPort))},
		Timers:    &api.Timers{Config: &api.TimersConfig{ConnectRetry: uint64(retryTime.Seconds()), IdleHoldTimeAfterReset: uint64(retryTime.Seconds())}},
		// Neighbours are often not on a link of the node.
		EbgpMultihop: &api.EbgpMultihop{Enabled: true, MultihopTtl: multihop},
		GracefulRestart: &api.GracefulRestart{
			Enabled: true, RestartTime: uint32(restartTime.Seconds()), DeferralTime: uint32(deferTime.Seconds()), NotificationEnabled: true, LonglivedEnabled: true, LocalRestarting: restarting,
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

// Announce replaces the announced paths. It sends only the paths that have changed. Only one goroutine may call it.
func (s *Speaker) Announce(paths []Path) error {
	next := make(map[Key]*Path, len(paths))
	var changed []*apiutil.Path
	for _, p := range paths {
		next[p.Key()] = &p
		if was, has := s.announced[p.Key()]; has && p.equal(was) {
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
			if w, err := p.toWire(); err == nil { // succeeds, because the path was announced
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
	s.mu.Lock()
	s.announced = next
	s.mu.Unlock()
	return nil
}

// equal reports whether two announced paths are the same.
func (p *Path) equal(o *Path) bool {
	return p.Key() == o.Key() && p.NextHop == o.NextHop && p.Label == o.Label && p.RoutedLabel == o.RoutedLabel && p.RouterMAC == o.RouterMAC &&
		slices.Equal(p.Targets, o.Targets) && slices.Equal(p.Tunnels, o.Tunnels)
}

// receive adds the paths that neighbours announce to the table, and removes those that they withdraw.
// A session ends if the neighbour announces more paths than its limit. GoBGP's own limit would walk all paths of the
// neighbour for each message.
func (s *Speaker) receive(paths []*apiutil.Path) {
	tooMany, differs := map[netip.Addr]bool{}, false
	s.mu.Lock()
	for _, w := range paths {
		switch p, ok := fromWire(w); {
		case !ok:
		case w.Withdrawal || isLooped(w, s.node.BGP.ASN):
			differs = s.table.Withdraw(p.Key()) || differs
		default:
			differs = true
			p.External = w.PeerASN != s.node.BGP.ASN
			if s.table.Put(p) > s.limits[p.Neighbor] {
				tooMany[p.Neighbor] = true
			}
		}
	}
	s.mu.Unlock()
	for n := range tooMany {
		if s.setReason(n, tooManyPaths) {
			go s.disable(n) // GoBGP waits until receive returns, so disable must not run here
		}
	}
	if differs {
		s.version.Add(1)
		s.changed(false)
	}
}

// isLooped reports whether the AS path of a route contains an AS.
func isLooped(w *apiutil.Path, asn uint32) bool {
	return slices.ContainsFunc(w.Attrs, func(a bgp.PathAttributeInterface) bool {
		path, is := a.(*bgp.PathAttributeAsPath)
		return is && slices.ContainsFunc(path.Value, func(s bgp.AsPathParamInterface) bool { return slices.Contains(s.GetAS(), asn) })
	})
}

// lose removes the paths of a neighbour whose session has ended, all at once. GoBGP withdraws them one after another.
func (s *Speaker) lose(neighbor netip.Addr) {
	s.mu.Lock()
	s.table.drop(func(a *attributes) bool { return a.neighbor == neighbor })
	s.mu.Unlock()
	s.version.Add(1)
	s.changed(true)
}

// Reaches reports whether a neighbour announces a path with a next hop.
func (s *Speaker) Reaches(nextHop netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.hops[nextHop] > 0
}

// disable ends the session with a neighbour for limitPause.
func (s *Speaker) disable(neighbor netip.Addr) {
	if err := s.server.DisablePeer(context.Background(), &api.DisablePeerRequest{Address: neighbor.String()}); err != nil {
		s.log.Warn("cannot end the BGP session", "neighbor", neighbor, "error", err)
	}
	time.AfterFunc(limitPause, func() { s.restart(neighbor) })
}

// settle removes the paths that a neighbour has not announced again after a restart of the agent.
func (s *Speaker) settle(neighbor netip.Addr, f model.BGPFamily) {
	s.mu.Lock()
	s.table.Settle(neighbor, f)
	s.mu.Unlock()
	s.version.Add(1)
	s.changed(false)
}

// notePeer logs a change of a session, and keeps the reason why a session ended.
func (s *Speaker) notePeer(e *apiutil.WatchEventMessage_PeerEvent) {
	if e.Type != apiutil.PEER_EVENT_STATE {
		return
	}
	address, state := e.Peer.Conf.NeighborAddress.Unmap(), e.Peer.State
	switch {
	case state.SessionState == bgp.BGP_FSM_ESTABLISHED:
		s.setReason(address, "")
		if s.mayLog(address.String()) {
			s.log.Info("BGP session established", "neighbor", address, "asn", state.PeerASN)
		}
	case state.DisconnectReason == api.PeerState_DISCONNECT_REASON_BAD_PEER_AS:
		s.setReason(address, wrongASN)
	case state.DisconnectReason == api.PeerState_DISCONNECT_REASON_INVALID_MSG:
		s.openRejected(address)
	case state.DisconnectReason != api.PeerState_DISCONNECT_REASON_UNSPECIFIED && state.DisconnectReason != api.PeerState_DISCONNECT_REASON_IDLE_TIMER_EXPIRED:
		s.setReason(address, state.DisconnectMessage)
	}
	s.changed(false)
}

const wrongASN = "the neighbour has another AS number; correct its asn here, or the AS number that it has"

// rejects begins the reason of a session whose OPEN message this node rejects.
const rejects = "this node rejects the neighbour's OPEN message"

// openRejected records that a neighbour rejects this node's OPEN message: its answer was neither OPEN nor KEEPALIVE. If this
// node has just rejected the neighbour's OPEN message, that reason stays. GoBGP 4.8 does not report the error code that the
// neighbour sent.
func (s *Speaker) openRejected(neighbor netip.Addr) {
	s.sessions.Lock()
	was := s.reasons[neighbor]
	s.sessions.Unlock()
	if own := was.text == wrongASN || strings.HasPrefix(was.text, rejects); !own || time.Since(was.last) > retryTime {
		s.setReason(neighbor, fmt.Sprintf("the neighbour rejects this node's OPEN message; it must have this node as a neighbour with AS number %d, and another router id than %s; its log has the cause", s.node.BGP.ASN, s.node.BGP.RouterID))
	}
}

// silence is why and since when this node cannot open a TCP connection to a neighbour.
type silence struct {
	why   string
	since time.Time
}

const closesConnections = "closes each TCP connection of this node without a message"

// noteSilence records why this node cannot open a TCP connection to a neighbour. If there is no other reason, it logs this once.
func (s *Speaker) noteSilence(neighbor netip.Addr, failure string) {
	why := strings.TrimSpace(failure[strings.LastIndex(failure, ": ")+1:])
	switch {
	case strings.Contains(failure, "timeout"):
		why = "nothing answers there, or the passwords differ or only one side has one"
	case strings.Contains(failure, "refused"):
		why = "no program accepts BGP connections there"
	}
	s.sessions.Lock()
	defer s.sessions.Unlock()
	was, has := s.silent[neighbor]
	if !has {
		was.since = time.Now()
	}
	s.silent[neighbor] = silence{why, was.since}
	if !has && s.reasons[neighbor].text == "" && s.mayLog(neighbor.String()) {
		s.log.Warn("no TCP connection for BGP", "neighbor", neighbor, "reason", why)
	}
}

// reason returns why a neighbour has no session. The caller holds s.sessions.
func (s *Speaker) reason(n *Neighbor, now time.Time) string {
	why, silent := s.reasons[n.Address].text, s.silent[n.Address]
	if silent.why == "" || n.State == "established" {
		return why
	}
	port := uint16(model.DefaultBGPPort)
	for _, o := range s.node.BGP.Neighbors {
		if o.Address == n.Address {
			port = cmp.Or(o.Port, port)
		}
	}
	at, long := netip.AddrPortFrom(n.Address, port), now.Sub(silent.since).Round(time.Second)
	text := fmt.Sprintf("no TCP connection to %s for %s: %s", at, long, silent.why)
	if silent.why == closesConnections {
		text = fmt.Sprintf("%s %s, for %s", at, silent.why, long)
	}
	switch {
	case why != "": // many routers refuse connections for some time after an error
		return why + "; since then " + text
	case silent.why == closesConnections:
		return text + "; it must have this node as a neighbour"
	}
	return text
}

const tooManyPaths = "the neighbour announces more paths of a family than its maximum_prefix; let it filter them, or raise the limit; the next session starts 5 minutes after the last"

// reason is why a neighbour has no session.
type reason struct {
	text string
	last time.Time // when it was set last
}

// setReason sets the reason why a neighbour has no session, and logs it if it is new. It reports whether it is new. An empty
// reason means that the session is established. Until then, tooManyPaths and the reasons of BFD are not replaced.
func (s *Speaker) setReason(neighbor netip.Addr, why string) bool {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	was := s.reasons[neighbor].text
	if why != "" && (was == tooManyPaths || was == bfdExpired || was == bfdDown) {
		return false
	}
	s.reasons[neighbor] = reason{why, time.Now()}
	delete(s.silent, neighbor)
	if why != "" && why != was && s.mayLog(neighbor.String()) {
		s.log.Warn("no BGP session", "neighbor", neighbor, "reason", why)
	}
	return why != was
}

// Version returns a number that changes when the result of Received changes.
func (s *Speaker) Version() uint64 { return s.version.Load() }

// Received returns the paths that the neighbours announce, sorted.
func (s *Speaker) Received() []Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Paths()
}

// ReceivedFor returns the paths that one of the networks imports, sorted. A reflector can announce many others. It also
// returns the changes since the last call; nil if the networks imported other targets then, or for the first call.
func (s *Speaker) ReceivedFor(networks []model.Network) ([]Path, Changes) {
	targets := map[model.RouteTarget]bool{}
	for _, n := range networks {
		for _, t := range n.Import {
			targets[t] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.PathsTo(targets)
}

// Announced returns the paths that the node announces, sorted, with the label or VNI of each.
func (s *Speaker) Announced() []Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Verdict{}
	for _, p := range slices.SortedFunc(maps.Values(s.announced), compare) {
		v := Verdict{Path: *p, State: Announced, Encapsulation: encapsulationOf(p.Tunnels[0])}
		v.Value, _ = v.value(destination{})
		v.Encapsulation = "" // the neighbour chooses one of Tunnels
		all = append(all, v)
	}
	return all
}

// Neighbor is the state of a session.
type Neighbor struct {
	Address  netip.Addr `json:"address"`
	ASN      uint32     `json:"asn"`
	State    string     `json:"state"`            // established, or idle, connect, active, opensent, openconfirm; refused: this node refuses its connections, because it is not a neighbour
	Since    time.Time  `json:"since,omitzero"`   // of an established session
	BFD      string     `json:"bfd,omitempty"`    // up, init, down; empty: not configured
	Received int        `json:"received"`         // paths
	Stale    int        `json:"stale,omitempty"`  // received paths with LLGR_STALE, and those that the neighbour has not announced again since it or the agent restarted
	Sent     int        `json:"sent"`             // paths
	Reason   string     `json:"reason,omitempty"` // why there is no session
	// Malformed is the error of the last malformed UPDATE message that did not end the session (RFC 7606).
	Malformed string `json:"malformed,omitempty"`
	// MalformedCount is the number of such messages since the agent started the session's speaker.
	MalformedCount int `json:"malformed_count,omitempty"`
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
		s.sessions.Lock()
		n.BFD, n.Reason, n.Malformed, n.MalformedCount = s.bfdState[n.Address], s.reason(&n, time.Now()), s.malformed[n.Address].why, s.malformed[n.Address].count
		s.sessions.Unlock()
		all = append(all, n)
	})
	for _, a := range s.Refused() {
		all = append(all, Neighbor{Address: a, State: "refused", Reason: "it connects to this node, but it is not a neighbour; add it with `vrouter bgp enable`, or remove this node from its configuration"})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		all[i].Received, all[i].Stale = s.table.Count(all[i].Address)
	}
	slices.SortFunc(all, func(a, b Neighbor) int { return a.Address.Compare(b.Address) })
	return all, err
}

// Close ends all sessions. If graceful, the neighbours keep this node's routes for restartTime.
func (s *Speaker) Close(graceful bool) {
	s.end()
	if s.bfd != nil {
		s.bfd.Stop()
	}
	if err := s.server.StopBgp(context.Background(), &api.StopBgpRequest{AllowGracefulRestart: graceful}); err != nil {
		s.log.Debug("cannot end the BGP sessions", "error", err)
	}
}

// gobgpLog is the log handler of GoBGP. It passes warnings on. It also handles events that GoBGP
// reports only by its log.
type gobgpLog struct {
	slog.Handler
	speaker  *Speaker
	neighbor netip.Addr // attribute Key of the logger of a session
}

// Messages of GoBGP's log.
const (
	unknownNeighbor  = "Can't find configuration for a new passive connection" // BgpServer.passConnToPeer
	sentNotification = "sent notification"                                     // fsm.sendNotification
	cannotConnect    = "failed to connect"                                     // fsm.connectLoop
	closed           = "outgoing connection IO error"                          // outgoingConnManager
	withdrawn        = "the received Update message was treated as withdraw"   // fsmHandler.handlingError
	discarded        = "Some attributes were discarded"                        // fsmHandler.handlingError
	peerUp           = "Peer Up"                                               // fsmHandler.loop
	sentUpdate       = "sent update"                                           // fsmHandler.sendMessageloop
	peerDown         = "Peer Down"                                             // fsmHandler.loop
	keepsRoutes      = "graceful-restart"                                      // its reason if the paths stay (fsmStateReason.String)
)

func (l *gobgpLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || l.neighbor.IsValid()
}

func (l *gobgpLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &gobgpLog{l.Handler.WithAttrs(attrs), l.speaker, l.neighbor}
	for _, a := range attrs {
		if a.Key == "Key" {
			address, _ := netip.ParseAddr(a.Value.String())
			with.neighbor = address.Unmap()
		}
	}
	return with
}

func (l *gobgpLog) WithGroup(string) slog.Handler { return l }

func (l *gobgpLog) Handle(ctx context.Context, record slog.Record) error {
	value := func(key string) (v slog.Value) {
		record.Attrs(func(a slog.Attr) bool {
			if a.Key == key {
				v = a.Value
			}
			return a.Key != key
		})
		return v
	}
	switch s, message := l.speaker, record.Message; {
	case message == unknownNeighbor:
		s.refuse(value("Key").String())
	case message == sentNotification && value("Code").Equal(slog.IntValue(bgp.BGP_ERROR_OPEN_MESSAGE_ERROR)):
		s.rejectOpen(l.neighbor, value("Subcode"))
	case message == sentNotification && value("Code").Equal(slog.IntValue(bgp.BGP_ERROR_FSM_ERROR)):
		s.openRejected(l.neighbor)
	case message == cannotConnect:
		s.noteSilence(l.neighbor, value("Error").String())
	case message == closed:
		s.noteSilence(l.neighbor, closesConnections)
	case message == withdrawn || message == discarded:
		s.noteMalformed(l.neighbor, message == withdrawn, value("Error").String())
	case message == peerUp:
		s.noteUp(l.neighbor)
	case message == sentUpdate:
		s.noteSent(l.neighbor, value("attributes").Any())
	case message == peerDown && value("Reason").String() != keepsRoutes:
		s.lose(l.neighbor)
	case record.Level >= slog.LevelWarn && l.Handler.Enabled(ctx, record.Level) && s.mayLog(l.neighbor.String()):
		return l.Handler.Handle(ctx, record)
	}
	return nil
}

// The speaker lists at most maxRefused addresses whose connections it refused, each for refusedFor after the last connection.
const refusedFor, maxRefused = 5 * time.Minute, 16

// refuse records that the connection of an address without a configured neighbour is refused, and logs it. It logs each address
// once in refusedFor or less often.
func (s *Speaker) refuse(address string) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return
	}
	a = a.Unmap()
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if _, again := s.refused[a]; !again {
		maps.DeleteFunc(s.refused, func(_ netip.Addr, at time.Time) bool { return time.Since(at) > refusedFor })
		if len(s.refused) == maxRefused {
			return
		}
		if s.mayLog("refused") {
			s.log.Warn("refused a BGP connection: the address is not a neighbour; add it with `vrouter bgp enable`", "address", a)
		}
	}
	s.refused[a] = time.Now()
}

// Refused returns the addresses without a configured neighbour whose connections the speaker has refused lately, sorted.
func (s *Speaker) Refused() (all []netip.Addr) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	for a, at := range s.refused {
		if time.Since(at) < refusedFor {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// rejectOpen records why the speaker rejects the OPEN message of a neighbour. On a connection that the
// speaker made, no peer event has this reason.
func (s *Speaker) rejectOpen(neighbor netip.Addr, subcode slog.Value) {
	why := wrongASN
	if !subcode.Equal(slog.IntValue(bgp.BGP_ERROR_SUB_BAD_PEER_AS)) {
		why = fmt.Sprintf(rejects+" with subcode %s (RFC 4271 section 6.2)", subcode)
		if subcode.Equal(slog.IntValue(bgp.BGP_ERROR_SUB_BAD_BGP_IDENTIFIER)) {
			why = fmt.Sprintf(rejects+": its router id is invalid or this node's, %s; correct one of them", s.node.BGP.RouterID)
		}
	}
	s.setReason(neighbor, why)
	s.changed(false)
}

// malformed has the UPDATE messages of a neighbour with errors that did not end the session.
type malformed struct {
	why   string // error of the last one
	count int
}

// noteMalformed records the error of a malformed UPDATE message, and logs it if it differs from the last one. If withdraws is
// true, GoBGP treats the routes in the message as withdrawn. Otherwise it only ignores an attribute.
func (s *Speaker) noteMalformed(neighbor netip.Addr, withdraws bool, why string) {
	why = "a malformed UPDATE message: " + why + map[bool]string{true: "; its routes are withdrawn", false: "; the attribute is ignored"}[withdraws]
	s.sessions.Lock()
	was := s.malformed[neighbor]
	s.malformed[neighbor] = malformed{why, was.count + 1}
	s.sessions.Unlock()
	if why != was.why && s.mayLog(neighbor.String()) {
		s.log.Warn("a BGP neighbour sends an invalid message", "neighbor", neighbor, "error", why)
	}
}
