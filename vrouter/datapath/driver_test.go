package datapath

import "testing"

func TestXDPIsNotAttachedWhereItHarmsTheDriver(t *testing.T) {
	for _, c := range []struct {
		driver   string
		features map[string]bool
		attach   bool
	}{
		{"virtio_net", map[string]bool{"rx-gro-hw": true, "rx-lro": false}, false},
		{"virtio_net", map[string]bool{"rx-lro": true}, false},
		{"virtio_net", map[string]bool{"rx-gro-hw": false, "rx-lro": false}, true},
		{"mlx5_core", map[string]bool{"rx-gro-hw": true, "rx-lro": true}, true},
		{"veth", nil, true},
	} {
		if why := whyNotWith(c.driver, c.features); (why == "") != c.attach {
			t.Errorf("driver %s with features %v: the reason against XDP is %q, want XDP allowed: %v", c.driver, c.features, why, c.attach)
		}
	}
}

func TestAVethMayHaveXDP(t *testing.T) {
	devices := enterSpace(t, 1)
	if why := whyNotOn(devices[0]); why != "" {
		t.Errorf("a veth device has the reason %q against XDP, want none", why)
	}
}
