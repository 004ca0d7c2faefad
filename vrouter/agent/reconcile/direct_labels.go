package reconcile

import (
	"maps"
	"slices"
	"time"

	"windtunnel/vrouter/direct"
)

// Labels says of which networks this node receives labels: the MAC addresses of packets with
// the encapsulation direct. If the node has more networks than limits.link_labels, these are
// the networks with the lowest ids. Other nodes learn the last of them from replies to their
// tests of links. They send packets of higher networks by the next encapsulation.
type Labels struct {
	Networks []uint32 // ids of the networks that have ports on this node, sorted
	Last     uint32   // highest network whose label other nodes may use; AllLabels: the limit is not reached
	Limit    uint32   // limits.link_labels

	former    uint32 // until the time forgotten, other nodes may still use labels up to this network
	started   bool   // until then, former is unknown, because the agent has just started
	forgotten time.Time
}

// remembers is the time for which labels that other nodes may use are received after they are
// beyond the limit. A node learns Last within 5.5 s if its test gets a reply at once. Without a
// reply, it does not use labels after 7.1 s.
const remembers = 15 * time.Second

// labelsOf returns the labels of a node with these networks. last is an earlier result; nil: the
// agent has just started.
func labelsOf(networks []uint32, limit uint32, last *Labels, now time.Time) Labels {
	l := Labels{Networks: networks, Last: direct.AllLabels, Limit: limit}
	if limit > 0 && len(networks) >= int(limit) {
		l.Last = networks[limit-1]
	}
	switch {
	case last == nil:
		l.started, l.forgotten = true, now.Add(remembers)
	case last.Last > l.Last:
		l.former, l.forgotten, l.started = max(last.former, last.Last), now.Add(remembers), last.started
	case now.Before(last.forgotten):
		l.former, l.forgotten, l.started = last.former, last.forgotten, last.started
	}
	return l
}

// Received returns the networks whose labels the node receives.
func (l Labels) Received() []uint32 { return l.upTo(max(l.Last, l.former)) }

// Beyond returns the networks whose labels other nodes must not use.
func (l Labels) Beyond() []uint32 { return l.Networks[len(l.upTo(l.Last)):] }

// spared returns the networks whose labels stay if the devices have them.
func (l Labels) spared() []uint32 {
	if l.started {
		return l.Networks
	}
	return nil
}

func (l Labels) upTo(last uint32) []uint32 {
	n, found := slices.BinarySearch(l.Networks, last)
	if found {
		n++
	}
	return l.Networks[:n]
}

// findLabels decides of which networks this node receives labels.
func (p *Pass) findLabels() {
	ids := map[uint32]bool{}
	if len(p.ethernet) > 0 {
		for _, port := range p.Want.Ports {
			if n, ok := p.Want.Network(port.Network); ok {
				ids[n.ID] = true
			}
		}
	}
	var before *Labels
	if last := p.r.Last; last != nil && len(last.ethernet) > 0 {
		before = &last.Labels
	}
	p.Labels = labelsOf(slices.Sorted(maps.Keys(ids)), p.r.config.Limits.LinkLabels, before, time.Now())
}

// receiveLabels lets the fabric devices receive frames to this node's labels.
func (p *Pass) receiveLabels() {
	self, _ := p.Want.Self()
	if err := p.r.labels.Keep(p.fabricLinks(), self.Underlay, p.ethernet, p.Labels.Received(), p.Labels.spared(), !p.isPartial()); err != nil {
		p.fail(theLabels, err)
	}
}
