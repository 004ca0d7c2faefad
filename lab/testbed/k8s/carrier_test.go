package k8s

import "testing"

func TestTheCarrierIsThatOfTheNexthopsWithPaths(t *testing.T) {
	const path = `"paths": [{"source": "10.0.0.1", "destination": "10.0.0.2", "gateway": "10.0.0.2", "device": "eth0"}]`
	for nexthops, want := range map[string]string{
		`[{"id": 1, "type": "receive"}, {"id": 2, "type": "encap", "device": "vif1"}]`:                                                                                 "",
		`[{"id": 1, "type": "tunnel", "encapsulation": "direct", ` + path + `}, {"id": 2, "encapsulation": "direct", ` + path + `}]`:                                   "direct",
		`[{"id": 1, "encapsulation": "vxlan", ` + path + `}, {"id": 2, "encapsulation": "direct", ` + path + `}, {"id": 3, "encapsulation": "mpls-udp", "paths": []}]`: "direct, vxlan",
	} {
		if got, err := carriers([]byte(nexthops)); got != want || err != nil {
			t.Errorf("%s: %q (%v), want %q", nexthops, got, err, want)
		}
	}
	if got, err := carriers([]byte("none")); err == nil {
		t.Errorf("no JSON: %q, want an error", got)
	}
}
