package host

import (
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// nic is a device that segments plain TCP and tunnels. GRE is fixed to off.
func nic() Device {
	on, off := space.Feature{On: true, Wanted: true}, space.Feature{}
	return Device{Name: "eth0", Features: map[string]space.Feature{
		"tx-tcp-segmentation": on, "tx-tcp6-segmentation": on, "tx-tcp-ecn-segmentation": {Fixed: true},
		"tx-udp_tnl-segmentation": on, "tx-gre-segmentation": {Fixed: true}, "tx-udp-segmentation": off, "rx-gro": on,
		"tx-generic-segmentation": on, "tx-gso-partial": on, "tx-tcp-accecn-segmentation": {Fixed: true},
	}}
}

func TestAProfileIsSetByTheFeaturesThatChange(t *testing.T) {
	d := nic()
	d.Features["tx-tcp-accecn-segmentation"] = space.Feature{On: true, Wanted: true}
	for profile, want := range map[suite.Offload]map[string]bool{
		suite.OffloadNone:   {"tx-tcp-accecn-segmentation": false, "tx-tcp-segmentation": false, "tx-tcp6-segmentation": false, "tx-udp_tnl-segmentation": false, "tx-udp-segmentation": false},
		suite.OffloadTCP:    {"tx-tcp-accecn-segmentation": true, "tx-tcp-segmentation": true, "tx-tcp6-segmentation": true, "tx-udp_tnl-segmentation": false, "tx-udp-segmentation": false},
		suite.OffloadKept:   {"tx-tcp-accecn-segmentation": true, "tx-tcp-segmentation": true, "tx-tcp6-segmentation": true, "tx-udp_tnl-segmentation": true, "tx-udp-segmentation": false},
		suite.OffloadTunnel: {"tx-tcp-accecn-segmentation": true, "tx-tcp-segmentation": true, "tx-tcp6-segmentation": true, "tx-udp_tnl-segmentation": true, "tx-udp-segmentation": false},
	} {
		got := d.Offloads(profile)
		if len(got) != len(want) {
			t.Errorf("profile %q sets %v, want %v", profile, got, want)
		}
		for name, on := range want {
			if got[name] != on {
				t.Errorf("profile %q sets %s to %t", profile, name, got[name])
			}
		}
	}
}

// A device can keep a feature off that is requested, such as TCP segmentation without checksums.
func TestARequestedFeatureThatStaysOffIsNotSet(t *testing.T) {
	stuck := space.Feature{Wanted: true}
	d := nic()
	d.Features["tx-tcp-accecn-segmentation"], d.Features["tx-tcp-ecn-segmentation"] = stuck, stuck
	must.Succeed(t, d.CanOffload(suite.OffloadTCP, 6))
	for profile, want := range map[suite.Offload]string{
		suite.OffloadNone: "accecn false true, ecn false true", suite.OffloadTCP: "accecn false false, ecn false false", suite.OffloadKept: "accecn true true, ecn true true",
	} {
		states := d.Offloads(profile)
		accecn, has := states["tx-tcp-accecn-segmentation"]
		ecn, hasECN := states["tx-tcp-ecn-segmentation"]
		if got := fmt.Sprintf("accecn %t %t, ecn %t %t", accecn, has, ecn, hasECN); got != want {
			t.Errorf("profile %q: %s, want %s", profile, got, want)
		}
	}
	d.Features["tx-tcp-segmentation"] = stuck
	must.Fail(t, d.CanOffload(suite.OffloadTCP, 4), "does not set tx-tcp-segmentation on, which")
	for _, profile := range []suite.Offload{suite.OffloadNone, suite.OffloadKept} {
		if err := d.CanOffload(profile, 4); err != nil {
			t.Errorf("profile %q: %v", profile, err)
		}
	}
}

// Some NICs segment TCP over IPv4 only.
func TestOnlyOffloadsOfTheTrafficsIPVersionAreNeeded(t *testing.T) {
	d := nic()
	d.Features["tx-tcp6-segmentation"] = space.Feature{Fixed: true}
	for version, want := range map[int]string{4: "", 6: "does not set tx-tcp6-segmentation on"} {
		if err := d.CanOffload(suite.OffloadTCP, version); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("IPv%d: error %v, want %q", version, err, want)
		}
	}
}

func TestAProfileThatADeviceLacksIsRefused(t *testing.T) {
	fixedOn := nic()
	fixedOn.Features["tx-tcp-segmentation"] = space.Feature{On: true, Wanted: true, Fixed: true}
	slow := nic()
	slow.Features["tx-tcp-segmentation"] = space.Feature{}
	plain := nic()
	plain.Features["tx-udp_tnl-segmentation"] = space.Feature{}
	plain.Features["tx-tcp-accecn-segmentation"] = space.Feature{On: true, Wanted: true}
	accECN := nic()
	accECN.Features["tx-tcp-accecn-segmentation"] = space.Feature{On: true, Wanted: true}
	old := nic()
	delete(old.Features, "tx-tcp6-segmentation")
	for name, c := range map[string]struct {
		device  Device
		profile suite.Offload
		can     string // part of CanOffload's error; "" for no error
		has     string // of HasOffload's, with tunnels
		plain   string // of HasOffload's, without tunnels
	}{
		"nothing is asked":        {nic(), suite.OffloadKept, "", "", ""},
		"tunnels are segmented":   {nic(), suite.OffloadTCP, "", "`ethtool -K eth0 tx-udp_tnl-segmentation off`", ""},
		"AccECN is segmented":     {accECN, suite.OffloadNone, "", "tx-tcp-accecn-segmentation off", "tx-tcp-accecn-segmentation off"},
		"plain TCP is segmented":  {plain, suite.OffloadTCP, "", "", ""},
		"GRE is not":              {nic(), suite.OffloadTunnel, "does not set tx-gre-segmentation on, which", "tx-gre-segmentation on`", "tx-gre-segmentation on`"},
		"TCP is segmented":        {nic(), suite.OffloadNone, "", "`ethtool -K eth0 tx-tcp-segmentation off tx-tcp6-segmentation off tx-udp_tnl-segmentation off`", "tx-tcp-segmentation off"},
		"TCP is always segmented": {fixedOn, suite.OffloadNone, "does not set tx-tcp-segmentation off, which", "tx-tcp-segmentation off", "tx-tcp-segmentation off"},
		"TCP is not segmented":    {slow, suite.OffloadTCP, "", "tx-tcp-segmentation on", "`ethtool -K eth0 tx-tcp-segmentation on`"},
		"the kernel lacks TCP6":   {old, suite.OffloadTCP, "tx-tcp6-segmentation on", "tx-tcp6-segmentation on", "tx-tcp6-segmentation on"},
	} {
		for method, r := range map[string]struct {
			err  error
			want string
		}{
			"CanOffload": {c.device.CanOffload(c.profile, 6), c.can}, "HasOffload": {c.device.HasOffload(c.profile, 6, true), c.has},
			"HasOffload without tunnels": {c.device.HasOffload(c.profile, 6, false), c.plain},
		} {
			if (r.err == nil) != (r.want == "") || r.err != nil && !strings.Contains(r.err.Error(), r.want) {
				t.Errorf("%s: %s: error %v, want %q", name, method, r.err, r.want)
			}
		}
	}
}
