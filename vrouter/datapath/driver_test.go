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
			t.Errorf("%s with %v: %q, want attached: %v", c.driver, c.features, why, c.attach)
		}
	}
}

func TestAVethMayHaveXDP(t *testing.T) {
	devices := enterSpace(t, 1)
	if why := whyNotOn(devices[0]); why != "" {
		t.Errorf("%q", why)
	}
}
