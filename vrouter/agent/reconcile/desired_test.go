package reconcile

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/model/modeltest"
)

func TestPortsThatAreLeavingAreNotWanted(t *testing.T) {
	s := model.State{
		Nodes:    []model.Node{{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, {Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}},
		Networks: []model.Network{{Name: "red", ID: 1, Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}},
		Ports: []model.Port{
			{Name: "p", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 1}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.2")}, Attach: model.Attachment{Netns: "n"}},
			{Name: "q", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 2}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.3")}, Attach: model.Attachment{Netns: "n"}},
		},
	}
	d := NewDesired("a", s.Slice("a"), &fib.IDs{}, nil)
	if own := d.Ports; len(own) != 1 || own[0].Name != "p" || own[0].Attach.Interface != model.DefaultInterface {
		t.Errorf("the node's ports: %+v", own)
	}
	if same := NewDesired("a", d.given, &fib.IDs{}, d); same != d {
		t.Error("the same slice makes another desired state")
	}
	less := NewDesired("a", d.given, &fib.IDs{}, d, "p")
	if less == d || len(less.Ports) != 0 || len(less.All) != 1 || less.All[0].Name != "q" {
		t.Errorf("without p: %+v", less.All)
	}
}

// TestADesiredStateFollowsInvalidPorts makes random ports invalid and valid again. Each
// desired state that is made from the former one must be equal to one that is made without it.
func TestADesiredStateFollowsInvalidPorts(t *testing.T) {
	omitted := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 12))
		s := modeltest.Random(r, 10+r.IntN(40))
		node := s.Nodes[0].Name
		var former *Desired
		for step := range 30 {
			if r.IntN(3) == 0 {
				s = modeltest.Mutate(r, s)
			}
			given := s
			given.Ports = slices.Clone(s.Ports)
			for i := range given.Ports {
				if p := &given.Ports[i]; r.IntN(20) == 0 {
					switch r.IntN(4) {
					case 0:
						p.MAC = model.MAC{1, 0, 0, 0, byte(i >> 8), byte(i)} // a multicast address
					case 1:
						p.IPs = []netip.Addr{netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})}
					case 2:
						p.Policies = []string{"none"}
					case 3:
						p.Attach.Device = "d0" // another port of the node may have this device too
					}
				}
			}
			slice := given.Slice(node)
			made, whole := NewDesired(node, slice, nil, former), NewDesired(node, slice, nil, nil)
			if d := cmp.Diff(whole.Whole(), made.Whole(), sameAddresses); d != "" {
				t.Fatalf("seed %d, step %d: -whole +made\n%s", seed, step, d)
			}
			if d := cmp.Diff(whole.Ports, made.Ports, sameAddresses); d != "" {
				t.Fatalf("seed %d, step %d: ports of the node -whole +made\n%s", seed, step, d)
			}
			if fmt.Sprint(whole.wrong) != fmt.Sprint(made.wrong) {
				t.Fatalf("seed %d, step %d: the error is %v, want %v", seed, step, made.wrong, whole.wrong)
			}
			omitted += len(made.omitted)
			former = made
		}
	}
	if omitted < 1000 {
		t.Errorf("only %d ports were left out", omitted)
	}
}
