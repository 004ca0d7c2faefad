package model

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func targets(texts ...string) (all []RouteTarget) {
	for _, text := range texts {
		t, err := ParseRouteTarget(text)
		if err != nil {
			panic(err)
		}
		all = append(all, t)
	}
	return all
}

// The bytes are those of RFC 4364 section 4.3.1 and RFC 5668.
func TestRouteTargetsHaveTheBytesOfBGP(t *testing.T) {
	for text, want := range map[string]RouteTarget{
		"64512:1":            {0, 2, 0xfc, 0, 0, 0, 0, 1},
		"65535:4294967295":   {0, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"192.0.2.1:258":      {1, 2, 192, 0, 2, 1, 1, 2},
		"65536:0":            {2, 2, 0, 1, 0, 0, 0, 0},
		"4294967295:65535":   {2, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"255.255.255.255:65": {1, 2, 0xff, 0xff, 0xff, 0xff, 0, 65},
	} {
		got, err := ParseRouteTarget(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is %x, written %s, error %v; want %x", text, got, got, err, want)
		}
		d, err := parseRouteDistinguisher(text)
		if err != nil || d.String() != text || d[0] != 0 || d[1] != want[0] || [6]byte(d[2:]) != [6]byte(want[2:]) {
			t.Errorf("the route distinguisher %s is %x, written %s, error %v", text, d, d, err)
		}
	}
	for _, text := range []string{
		"", ":", "1", "64512", "64512:", ":1", "0:1", "0.0.0.0:1", "-1:1", "+1:1", "1:-1", "1:+1", "01:1", "1:01", "64512:4294967296", "65536:65536",
		"192.0.2.1:65536", "4294967296:1", "64512:1:1", "2001:db8::1:1", "192.0.2:1", "64512 :1", "64512:1 ", "auto", "1.5:1", "a:b", "target:64512:1",
	} {
		if got, err := ParseRouteTarget(text); err == nil || !strings.HasSuffix(err.Error(), administeredForms) || got != (RouteTarget{}) {
			t.Errorf("%q is the route target %s, error %v", text, got, err)
		}
		if got, err := parseRouteDistinguisher(text); (err == nil) != (text == "auto") || got != (RouteDistinguisher{}) {
			t.Errorf("%q is the route distinguisher %s, error %v", text, got, err)
		}
	}
}

// A router can send values that an operator cannot write as an administrator and a number. They have one text each, too.
func TestOtherRouteTargetsAreHexadecimal(t *testing.T) {
	for text, want := range map[string]RouteTarget{
		"0x0002000000000005": {0, 2, 0, 0, 0, 0, 0, 5}, // AS 0
		"0x0202000000010005": {2, 2, 0, 0, 0, 1, 0, 5}, // AS 1 with 4 bytes
		"0x0102000000000000": {1, 2},                   // address 0.0.0.0
	} {
		got, err := ParseRouteTarget(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is %x, written %s, error %v; want %x", text, got, got, err, want)
		}
	}
	for text, want := range map[string]RouteDistinguisher{
		"0x0000000000000005": {7: 5},
		"0x0002000000010005": {0, 2, 0, 0, 0, 1, 0, 5},
		"0xff00000000000000": {0xff},
	} {
		got, err := parseRouteDistinguisher(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is %x, written %s, error %v; want %x", text, got, got, err, want)
		}
	}
	for _, text := range []string{"0x0002fc0000000001", "0x0302000000000000", "0x0003000000000005", "0x0000000000000000", "0x000200000000000A", "0x00020000000005", "0002000000000005", "0x+002000000000005"} {
		if got, err := ParseRouteTarget(text); err == nil {
			t.Errorf("%q is the route target %s", text, got)
		}
	}
	if got, err := parseRouteDistinguisher("0x0000fc0000000001"); err == nil {
		t.Errorf("the text of 64512:1 in another form is the route distinguisher %s", got)
	}
}

func FuzzRouteTarget(f *testing.F) {
	for _, text := range []string{"64512:1", "192.0.2.1:1", "70000:1", "0:0", "1:", "::1", "0x0002000000000005"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := ParseRouteTarget(text); err == nil && got.String() != text {
			t.Errorf("%q is written %s", text, got)
		}
	})
}

func TestTheRouteDistinguisherIsAutomaticOrConfigured(t *testing.T) {
	n := Network{ID: 4095}
	if got := n.Distinguisher(netip.MustParseAddr("10.0.0.1")); got != (RouteDistinguisher{0, 1, 10, 0, 0, 1, 0x0f, 0xff}) || got.String() != "10.0.0.1:4095" {
		t.Errorf("the automatic route distinguisher is %s (%x), want 10.0.0.1:4095", got, got)
	}
	must.Succeed(t, n.RD.UnmarshalText([]byte("64512:9")))
	must.Equal(t, "64512:9", n.Distinguisher(netip.MustParseAddr("10.0.0.1")).String())
}

func TestRouteTargetsOfANetworkAreChecked(t *testing.T) {
	var many []RouteTarget
	for i := range maxTargets + 1 {
		many = append(many, targets(fmt.Sprintf("64512:%d", i))...)
	}
	red := func(change func(*Network)) func(*State) { return func(s *State) { change(&s.Networks[0]) } }
	check(t, []refused{
		{"a target twice", red(func(n *Network) { n.Import = targets("64512:1", "64512:2", "64512:1") }), `network "red": import: 64512:1 is listed twice; remove one`},
		{"an empty target", red(func(n *Network) { n.Export = make([]RouteTarget, 1) }), `network "red": export: an empty route target; write ` + administeredForms},
		{"too many targets", red(func(n *Network) { n.Export = many }), `network "red": export: 65 route targets, at most 64 are allowed; remove some`},
	})
	must.Succeed(t, edited(red(func(n *Network) { n.Import, n.Export = many[1:], many[1:] })).Validate())
}

// A store of an earlier version has networks without these fields.
func TestANetworkWithoutRouteTargetsIsWrittenWithoutThem(t *testing.T) {
	const text = `{"name":"red","id":7}`
	var n Network
	must.Succeed(t, json.Unmarshal([]byte(text), &n))
	again, err := json.Marshal(n)
	if err != nil || string(again) != text {
		t.Errorf("%s is written %s, error %v", text, again, err)
	}
}
