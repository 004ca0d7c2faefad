package reconcile

import (
	"slices"
	"testing"
	"time"

	"windtunnel/vrouter/direct"
)

// Of more networks than the limit, those with the lowest ids keep their labels. A label that
// other nodes may still use is received until they have learned the new limit.
func TestLabelsAboveTheLimitAreReceivedUntilOtherNodesKnow(t *testing.T) {
	start := time.Unix(1e9, 0)
	var last *Labels
	for _, c := range []struct {
		what             string
		after            time.Duration
		networks         []uint32
		limit            uint32
		last             uint32
		received, beyond []uint32
		spared           bool
	}{
		{"the agent starts above the limit", 0, []uint32{3, 5, 9}, 2, 5, []uint32{3, 5}, []uint32{9}, true},
		{"the labels of the former agent are forgotten", remembers, []uint32{3, 5, 9}, 2, 5, []uint32{3, 5}, []uint32{9}, false},
		{"a higher network is added", time.Minute, []uint32{3, 5, 7, 9}, 2, 5, []uint32{3, 5}, []uint32{7, 9}, false},
		{"a lower network is added", time.Minute, []uint32{2, 3, 5, 7}, 2, 3, []uint32{2, 3, 5}, []uint32{5, 7}, false},
		{"before other nodes know", time.Minute + remembers - 1, []uint32{2, 3, 5, 7}, 2, 3, []uint32{2, 3, 5}, []uint32{5, 7}, false},
		{"when all other nodes know", time.Minute + remembers, []uint32{2, 3, 5, 7}, 2, 3, []uint32{2, 3}, []uint32{5, 7}, false},
		{"networks are removed", 2 * time.Minute, []uint32{3}, 2, direct.AllLabels, []uint32{3}, nil, false},
		{"more networks than the limit are added at once", 3 * time.Minute, []uint32{3, 5, 7}, 2, 5, []uint32{3, 5, 7}, []uint32{7}, false},
		{"the limit is reached", 4 * time.Minute, []uint32{3, 5}, 2, 5, []uint32{3, 5}, nil, false},
		{"there is no network", 5 * time.Minute, nil, 2, direct.AllLabels, nil, nil, false},
	} {
		l := labelsOf(c.networks, c.limit, last, start.Add(c.after))
		if l.Last != c.last || !slices.Equal(l.Received(), c.received) || !slices.Equal(l.Beyond(), c.beyond) || c.spared != (len(l.spared()) > 0) {
			t.Errorf("%s: last %d, received %v, beyond %v, spared %v; want %d, %v, %v, %v", c.what, l.Last, l.Received(), l.Beyond(), l.spared(), c.last, c.received, c.beyond, c.spared)
		}
		last = &l
	}
}
