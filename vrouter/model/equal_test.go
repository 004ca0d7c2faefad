package model

import (
	"net/netip"
	"reflect"
	"testing"
)

// Ports that differ in any field are not equal. The test fails for a field that
// it does not set.
func TestPortsThatDifferInAFieldAreNotEqual(t *testing.T) {
	full := Port{
		Name: "p", Network: "red", Node: "a", MAC: MAC{2, 1}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Floating: []netip.Addr{netip.MustParseAddr("203.0.113.1")}, NATSlot: 1,
		Attach: Attachment{Netns: "w", Interface: "eth0", Device: "d", Host: true}, Policies: []string{"web"},
		AllowSources: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, Bandwidth: Bandwidth{Ingress: 1, Egress: 2}, Router: true,
		Origin: CNI, Owner: "c1", OfPod: &Pod{Namespace: "web", Name: "web-0", UID: "5c1b"},
	}
	if !full.Equal(full) || !(Port{}).Equal(Port{}) {
		t.Error("a port is not its equal")
	}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() {
			t.Errorf("the test has no value for %s", name)
		}
		other := full
		reflect.ValueOf(&other).Elem().Field(i).SetZero()
		if full.Equal(other) || other.Equal(full) {
			t.Errorf("ports that differ in %s are equal", name)
		}
	}
}
