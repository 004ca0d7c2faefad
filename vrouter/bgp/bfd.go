package bgp

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/config/oc"
	"github.com/osrg/gobgp/v4/pkg/server"
)

// bfdSessions is GoBGP's implementation of BFD (RFC 5880). The Speaker runs it apart from GoBGP's BGP server, because GoBGP's
// own combination of the two has two faults:
//   - If BFD fails while there is no BGP session, GoBGP ends the next BGP session. BIRD then ends BFD, and so on.
//   - If BFD fails during a graceful restart, GoBGP keeps the paths of the neighbour.
type bfdSessions interface {
	Start(context.Context, oc.BfdConfig) error
	AddPeer(ctx context.Context, neighbor netip.Addr, config oc.BfdConfig, device string) error
	Stop()
}

// bfdPort is the UDP port of BFD (RFC 5881).
var bfdPort uint16 = server.BfdServerPort

// GoBGP's BFD reports its state only by these log messages.
const (
	expired    = "Expired"                       // bfdPeer.expiry
	remoteDown = "Remote peer signaled BFD down" // bfdPeer.remoteDown
)

// bfdStates maps each of these messages to the state after it.
var bfdStates = map[string]string{"Set state to DOWN": "down", "Set state to INIT": "init", "Set state to UP": "up"}

// Reasons for the end of a session by BFD, as users see them.
const (
	bfdExpired = "the neighbour has failed: no BFD packet of it has arrived in time"
	bfdDown    = "the neighbour says that BFD with this node is down"
)

// startBFD starts the BFD sessions with the neighbours for which it is configured.
func (s *Speaker) startBFD(ctx context.Context) error {
	for _, n := range s.node.BGP.Neighbors {
		interval := uint32(time.Duration(n.BFD).Microseconds())
		if interval == 0 {
			continue
		}
		if s.bfd == nil {
			s.bfd = server.NewBfdServer(resetPeer(s.bfdFails), slog.New(&bfdLog{s.log.Handler(), s}))
			if err := s.bfd.Start(ctx, oc.BfdConfig{Port: bfdPort}); err != nil {
				return fmt.Errorf("start BFD: %w", err)
			}
		}
		s.sessions.Lock()
		s.bfdState[n.Address] = "down"
		s.sessions.Unlock()
		err := s.bfd.AddPeer(ctx, n.Address, oc.BfdConfig{
			Enabled: true, Port: bfdPort, DesiredMinimumTxInterval: interval, RequiredMinimumReceive: interval, DetectionMultiplier: bfdMultiplier,
		}, "")
		if err != nil {
			return fmt.Errorf("start BFD with %s: %w", n.Address, err)
		}
	}
	return nil
}

// resetPeer ends the session with a neighbour. GoBGP's BFD calls it when its own session with the neighbour fails.
type resetPeer func(netip.Addr)

func (f resetPeer) ResetPeer(_ context.Context, r *api.ResetPeerRequest) error {
	a, err := netip.ParseAddr(r.Address)
	if err == nil {
		f(a.Unmap())
	}
	return err
}

// bfdFails ends the BGP session with a neighbour whose BFD session has failed. It deletes the neighbour's paths at once, also
// those that a graceful restart keeps (RFC 5882, section 4.3). It does nothing if the BFD session was not up.
func (s *Speaker) bfdFails(neighbor netip.Addr) {
	s.sessions.Lock()
	up, why := s.bfdState[neighbor] == "up", s.bfdWhy[neighbor]
	s.sessions.Unlock()
	if !up {
		return
	}
	s.setReason(neighbor, why)
	s.lose(neighbor)
	go s.restart(neighbor)
}

// restart deletes a neighbour and its paths from GoBGP, and adds the neighbour again.
func (s *Speaker) restart(neighbor netip.Addr) {
	s.restarts.Lock()
	defer s.restarts.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	for _, n := range s.node.BGP.Neighbors {
		if n.Address != neighbor {
			continue
		}
		s.sessions.Lock()
		delete(s.senders, neighbor)
		s.sessions.Unlock()
		err := s.server.DeletePeer(s.ctx, &api.DeletePeerRequest{Address: neighbor.String()})
		if err == nil {
			err = s.server.AddPeer(s.ctx, &api.AddPeerRequest{Peer: s.peer(n, false)})
		}
		if err != nil && s.ctx.Err() == nil {
			s.log.Warn("cannot start the BGP session again; restart the agent", "neighbor", neighbor, "error", err)
		}
	}
}

// bfdLog is the log handler of GoBGP's BFD. It records the states of the sessions, and forwards other warnings.
type bfdLog struct {
	slog.Handler
	speaker *Speaker
}

func (l *bfdLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *bfdLog) Handle(ctx context.Context, record slog.Record) error {
	var peer netip.Addr
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "Peer" {
			peer, _ = netip.ParseAddr(a.Value.String())
			peer = peer.Unmap()
		}
		return true
	})
	state, s := bfdStates[record.Message], l.speaker
	s.sessions.Lock()
	switch {
	case state != "":
		s.bfdState[peer] = state
	case record.Message == expired:
		s.bfdWhy[peer] = bfdExpired
	case record.Message == remoteDown:
		s.bfdWhy[peer] = bfdDown
	}
	s.sessions.Unlock()
	if record.Message != expired && record.Message != remoteDown && record.Level >= slog.LevelWarn && l.Handler.Enabled(ctx, record.Level) && s.mayLog(peer.String()) {
		return l.Handler.Handle(ctx, record)
	}
	return nil
}
