package bgp

import (
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// senderTime is the time from the start of a session until GoBGP must have sent the paths of this node. A speaker that began
// with stale paths has deferTime in addition.
const senderTime = 5 * time.Second

// sender says which messages were sent in one session of a neighbour. If a session ends while messages wait in GoBGP's queue, the message
// that stops the session's sender can remain in the queue. It then stops the sender of the next session at once
// (fsmHandler.established and sendMessageloop), and the neighbour gets neither paths nor KEEPALIVE messages.
type sender struct {
	update   bool // an UPDATE message was sent
	endOfRIB bool // the marker after the first paths was sent (RFC 4724), which GoBGP owes to a neighbour with graceful restart
}

// noteUp notes that a session begins. GoBGP's sender starts later. In the first session after GoBGP got the neighbour, the
// queue is empty.
func (s *Speaker) noteUp(neighbor netip.Addr) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	o, again := &sender{}, s.senders[neighbor] != nil
	if s.senders[neighbor] = o; again {
		time.AfterFunc(s.pause, func() { s.checkSender(neighbor, o) })
	}
}

// noteSent notes that an UPDATE message with some attributes was sent.
func (s *Speaker) noteSent(neighbor netip.Addr, attributes any) {
	all, _ := attributes.([]bgp.PathAttributeInterface)
	end, _ := (&bgp.BGPUpdate{PathAttributes: all}).IsEndOfRib()
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if o := s.senders[neighbor]; o != nil {
		o.update, o.endOfRIB = true, o.endOfRIB || end
	}
}

// checkSender restarts a neighbour if GoBGP should have sent messages in the session o but has not. It does nothing if another
// session has begun.
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
