package agent

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// The doctor lists the locators that cannot be reached with their lengths.
func TestTheDoctorListsLocatorsThatCannotBeReached(t *testing.T) {
	v := &snapshot{want: &reconcile.Desired{Node: "a"}, links: map[netip.Addr]direct.State{}}
	for name, text := range map[string]string{"b": "fd77:0:0:2::/64", "c": "fd77:0:0:3:5::/80", "d": "fd77:0:0:3:6::/80"} {
		n := model.Node{Name: name, Locator: netip.MustParsePrefix(text)}
		v.want.Nodes = append(v.want.Nodes, n)
		v.links[n.LocatorAddress()] = map[bool]direct.State{false: direct.Fails, true: direct.Works}[name == "d"]
	}
	found := ""
	for _, f := range directFindings(v) {
		found += f.Text + "\n"
	}
	for _, want := range []string{"the locators of 1 of 3 other nodes can be reached", "fd77:0:0:2::/64, fd77:0:0:3:5::/80;"} {
		if !strings.Contains(found, want) {
			t.Errorf("the findings lack %q:\n%s", want, found)
		}
	}
}

// If a link worked before, the workloads keep an MTU that is too large for the tunnel. So the
// doctor reports it with another text than a link that never worked. Both findings are notes,
// because the node may be down.
func TestTheDoctorDistinguishesLinksThatWorkedBefore(t *testing.T) {
	v := &snapshot{want: &reconcile.Desired{Node: "a"}, links: map[netip.Addr]direct.State{
		netip.MustParseAddr("192.0.2.1"): direct.Works, netip.MustParseAddr("192.0.2.2"): direct.Bridges,
		netip.MustParseAddr("192.0.2.3"): direct.Fails, netip.MustParseAddr("192.0.2.4"): direct.Stopped,
		netip.MustParseAddr("192.0.2.5"): direct.Stopped,
	}}
	byLevel := map[string]string{}
	for _, f := range directFindings(v) {
		byLevel[f.Level] += f.Text + "\n"
	}
	for want, level := range map[string]string{
		"2 of 5 underlay addresses":                                    api.LevelOK,
		"no reply from 192.0.2.3;":                                     api.LevelNote,
		"got replies from 192.0.2.4, 192.0.2.5, but now they get none": api.LevelNote,
	} {
		if !strings.Contains(byLevel[level], want) {
			t.Errorf("the findings of level %s lack %q:\n%s", level, want, byLevel[level])
		}
	}
}

// A missing underlay is listed once: as the problem, which has the addresses and the remedy.
func TestTheDoctorListsAMissingUnderlayOnce(t *testing.T) {
	t.Parallel()
	if got := attachFindings(&snapshot{}); len(got) != 1 || got[0].Topic != "attach" {
		t.Errorf("without a state: %+v, want one note", got)
	}
	v := &snapshot{problems: []api.Problem{{Kind: "node", Name: "underlay", Text: "no device has this node's underlay address 192.0.2.1"}}}
	if got := attachFindings(v); len(got) != 0 {
		t.Errorf("the problem is listed again: %+v", got)
	}
}

func TestTheDoctorReportsTablesThatAreNearlyFull(t *testing.T) {
	sizes := []reconcile.TableSize{{Name: "identities", Entries: 79, Limit: 100}, {Name: "allows", Entries: 79, Limit: 100}}
	if f := sizeFinding(sizes); f.Level != api.LevelOK || f.Remedy != "" {
		t.Errorf("79 of 100 entries: %+v", f)
	}
	sizes[1].Entries++
	if f := sizeFinding(sizes); f.Level != api.LevelNote || f.Text != "allows has 80 of at most 100 entries" || f.Remedy == "" {
		t.Errorf("80 of 100 entries: %+v", f)
	}
}

func TestMTUFindings(t *testing.T) {
	for v6, levels := range map[bool]map[int]string{
		false: {9000: api.LevelOK, 1550: api.LevelOK, 1549: api.LevelNote, 1330: api.LevelNote, 1329: api.LevelProblem},
		true:  {9000: api.LevelOK, 1570: api.LevelOK, 1569: api.LevelNote, 1350: api.LevelNote, 1349: api.LevelProblem, 576: api.LevelProblem},
	} {
		for mtu, want := range levels {
			f := MTUFinding("eth1", mtu, model.DefaultEncapsulations, v6)
			if f.Level != want || (f.Remedy == "") != (want == api.LevelOK) {
				t.Errorf("MTU %d, IPv6 %t: %+v, want %s", mtu, v6, f, want)
			}
		}
	}
}
