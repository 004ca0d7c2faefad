package bgp

import (
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// senderTime is the maximum time from the start of a session until GoBGP has sent the paths of this node. If the speaker
// started with stale paths, deferTime is added.
const senderTime = 5 * time.Second

// sender says which messages were sent in one session of a neighbour. If a session ends while messages wait in GoBGP's queue, the message
// that stops the session's sender can remain in the queue. It then stops the sender of the next session at once
// (fsmHandler.established and sendMessageloop), and the neighbour gets neither paths nor KEEPALIVE messages.
type sender struct {
	update   bool // an UPDATE message was sent
	endOfRIB bool // the marker after the first paths was sent (RFC 4724), which GoBGP owes to a neighbour with graceful restart
}

// noteUp records that a session begins, and lets checkSender run later. It does not for the first session of a neighbour:
// GoBGP's queue is empty then.
func (s *Speaker) noteUp(neighbor netip.Addr) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	o, again := &sender{}, s.senders[neighbor] != nil
	if s.senders[neighbor] = o; again {
		time.AfterFunc(s.pause, func() { s.checkSender(neighbor, o) })
	}
}

// noteSent records that GoBGP has sent an UPDATE message with these attributes to a neighbour.
func (s *Speaker) noteSent(neighbor netip.Addr, attributes any) {
	all, _ := attributes.([]bgp.PathAttributeInterface)
	end, _ := (&bgp.BGPUpdate{PathAttributes: all}).IsEndOfRib()
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if o := s.senders[neighbor]; o != nil {
		o.update, o.endOfRIB = true, o.endOfRIB || end
	}
}

// checkSender restarts a neighbour if GoBGP has not sent the messages that it must send in a session. o has what was sent in
// this session. If the session is no longer the present one, checkSender does nothing.
func (s *Speaker) checkSender(neighbor netip.Addr, o *sender) {
	if s.ctx.Err() != nil {
		return
	}
	var established, graceful, paths bool
	err := s.server.ListPeer(s.ctx, &api.ListPeerRequest{Address: neighbor.String(), EnableAdvertised: true}, func(p *api.Peer) {
		established = p.GetState().GetSessionState() == api.PeerState_SESSION_STATE_ESTABLISHED
		for _, f := range p.GetAfiSafis() {
			graceful = graceful || f.GetMpGracefulRestart().GetState().GetReceived()
			paths = paths || f.GetState().GetAdvertised() > 0
		}
	})
	s.sessions.Lock()
	works := o.endOfRIB || o.update && !graceful || !graceful && !paths
	current := s.senders[neighbor] == o
	s.sessions.Unlock()
	if err == nil && established && current && !works {
		s.log.Warn("GoBGP sends nothing in the BGP session; the session starts again", "neighbor", neighbor)
		s.restart(neighbor)
	}
}
