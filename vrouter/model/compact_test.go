package model

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
)

// For each field of Port, the test makes a port with only this field and converts it to a compact port. The compact port must
// have the field's value, and a Port that is decoded from the JSON text of the compact port must have it too.
func TestACompactPortHasAllFields(t *testing.T) {
	a, prefix := netip.MustParseAddr("10.0.0.1"), netip.MustParsePrefix("10.9.0.0/16")
	all := Port{
		Name: "p", Network: "red", Node: "a", MAC: MAC{2, 0, 0, 0, 0, 1}, NATSlot: 7, IPs: []netip.Addr{a}, Floating: []netip.Addr{a}, Attach: Attachment{Device: "tap0"}, Policies: []string{"web"},
		AllowSources: []netip.Prefix{prefix}, Router: true, Bandwidth: Bandwidth{Ingress: 1e6}, Origin: CNI, Owner: "x", OfPod: &Pod{Namespace: "n", Name: "m"},
	}
	for i := range reflect.TypeFor[Port]().NumField() {
		var p Port
		field := reflect.TypeFor[Port]().Field(i).Name
		if reflect.ValueOf(all).Field(i).IsZero() {
			t.Fatalf("the test has no value for %s", field)
		}
		reflect.ValueOf(&p).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
		c := p.Compact(&Place{p.Network, p.Node})
		if got := c.Port(); !reflect.DeepEqual(got, p) {
			t.Errorf("with the field %s filled in, the compact port has %+v, want %+v", field, got, p)
		}
		text, err := json.Marshal(&c)
		var read Port
		if err == nil {
			err = json.Unmarshal(text, &read, json.RejectUnknownMembers(true))
		}
		if err != nil || !reflect.DeepEqual(read, p) {
			t.Errorf("with the field %s filled in, the JSON text of the compact port is %s, which reads as %+v (error %v); want %+v", field, text, read, err, p)
		}
	}
}
