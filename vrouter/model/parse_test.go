package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
)

// whole has every field of a state.
const whole = `
settings: {vxlan_port: 8472, allow_fragment: true, any_source: true}
nodes:
  - name: a
    underlay: [192.0.2.1, "2001:db8::1"]
    encapsulations: [vxlan, mpls-gre]
  - {name: b, underlay: [192.0.2.2]}
networks:
  - {name: red, id: 7, subnets: [10.1.0.0/16, "fd00:1::/64"], vni: 7000, forwarding: l2l3, policies: [web], import: ["64512:1", "192.0.2.1:7"], export: ["64512:1"], rd: "70000:1"}
ports:
  - name: web1
    network: red
    node: a
    mac: 02:00:00:00:00:01
    ips: [10.1.0.5]
    attach: {netns: one, interface: eth1}
    policies: [web]
    allow_sources: [198.51.100.0/24]
  - {name: web2, network: red, node: b, mac: 02-00-00-00-00-02, attach: {device: tap0}}
routes:
  - {network: red, prefix: 192.168.0.0/16, via: [{port: web1}, {gateway: mx}]}
  - {network: red, prefix: "::/0", discard: true}
gateways:
  - name: mx
    addresses: [192.0.2.9]
    encapsulation: mpls-udp
    mac: 00:1c:73:00:00:01
    networks:
      - {network: red, label: 100, ethernet_label: 101, vni: 9, prefixes: [0.0.0.0/0], macs: ["06:00:00:00:00:01"], flood: true}
policies:
  - name: web
    rules:
      - {direction: ingress, action: allow, protocol: tcp, remote: 10.0.0.0/8, ports: 80, log: true}
      - {direction: egress, action: deny}
`

func wholeState() State {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	return State{
		Settings: Settings{VXLANPort: 8472, AllowFragment: true, AnySource: true},
		Nodes: []Node{
			{Name: "a", Underlay: []netip.Addr{addr("192.0.2.1"), addr("2001:db8::1")}, Encapsulations: []Encapsulation{VXLAN, MPLSoGRE}},
			{Name: "b", Underlay: []netip.Addr{addr("192.0.2.2")}},
		},
		Networks: []Network{{Name: "red", ID: 7, Subnets: []netip.Prefix{prefix("10.1.0.0/16"), prefix("fd00:1::/64")}, VNI: 7000, Forwarding: L2L3, Policies: []string{"web"},
			Import: targets("64512:1", "192.0.2.1:7"), Export: targets("64512:1"), RD: RouteDistinguisher{0, 2, 0, 1, 0x11, 0x70, 0, 1}}},
		Ports: []Port{
			{
				Name: "web1", Network: "red", Node: "a", MAC: MAC{2, 0, 0, 0, 0, 1}, IPs: []netip.Addr{addr("10.1.0.5")},
				Attach: Attachment{Netns: "one", Interface: "eth1"}, Policies: []string{"web"}, AllowSources: []netip.Prefix{prefix("198.51.100.0/24")},
			},
			{Name: "web2", Network: "red", Node: "b", MAC: MAC{2, 0, 0, 0, 0, 2}, Attach: Attachment{Device: "tap0"}},
		},
		Routes: []Route{
			{Network: "red", Prefix: prefix("192.168.0.0/16"), Via: []Via{{Port: "web1"}, {Gateway: "mx"}}},
			{Network: "red", Prefix: prefix("::/0"), Discard: true},
		},
		Gateways: []Gateway{{
			Name: "mx", Addresses: []netip.Addr{addr("192.0.2.9")}, Encapsulation: MPLSoUDP, MAC: MAC{0x00, 0x1c, 0x73, 0, 0, 1},
			Networks: []GatewayNetwork{{
				Network: "red", Label: 100, EthernetLabel: 101, VNI: 9,
				Prefixes: []netip.Prefix{prefix("0.0.0.0/0")}, MACs: []MAC{{6, 0, 0, 0, 0, 1}}, Flood: true,
			}},
		}},
		Policies: []Policy{{Name: "web", Rules: []Rule{
			{Direction: Ingress, Action: Allow, Protocol: "tcp", Remote: prefix("10.0.0.0/8"), Ports: "80", Log: true},
			{Direction: Egress, Action: Deny},
		}}},
	}
}

// same compares states. An empty list equals nil.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
}

func TestEveryFieldIsRead(t *testing.T) {
	got := must.Get(Parse("state.yaml", []byte(whole)))(t)
	must.Equal(t, wholeState(), got, same)
	must.Succeed(t, got.Validate())
}

func TestIPv6AddressesNeedNoQuotesInLists(t *testing.T) {
	s := must.Get(Parse("f", []byte("nodes:\n  - underlay: [2001:db8::1, fd00::, fd00::1:2]\nnetworks:\n  - subnets: [fd00::/64]\n")))(t)
	must.Equal(t, "[2001:db8::1 fd00:: fd00::1:2] [fd00::/64]", fmt.Sprint(s.Nodes[0].Underlay, s.Networks[0].Subnets))
}

// Names, protocols and ports that look like numbers are read as text.
func TestTextThatLooksLikeANumberStaysAsItIsWritten(t *testing.T) {
	for _, text := range []string{"007", "0x10", "1_000", "1.50", "1e3", ".inf", ".nan", "0o17", "0b11", "-0", "2020-01-01", "true", "no", "80", "8000-8080"} {
		s, err := Parse("f", []byte("policies: [{name: "+text+", rules: [{ports: "+text+"}]}]\nports:\n- policies:\n  - "+text+"\n"))
		if err != nil {
			t.Errorf("parse the text %s: %v", text, err)
			continue
		}
		if got := [3]string{s.Policies[0].Name, s.Policies[0].Rules[0].Ports, s.Ports[0].Policies[0]}; got != [3]string{text, text, text} {
			t.Errorf("%s is read as %q", text, got)
		}
	}
}

func TestAWrittenStateIsReadUnchanged(t *testing.T) {
	for name, write := range map[string]func(any) ([]byte, error){
		"JSON": json.Marshal, "YAML": func(v any) ([]byte, error) { return yaml.Marshal(v) },
		"indented JSON": func(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") },
	} {
		text, err := write(wholeState())
		if err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
		got, err := Parse(name, text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(wholeState(), got, same); diff != "" {
			t.Errorf("the state differs after %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestErrorsOfParseHaveThePlaceAndTheRemedy(t *testing.T) {
	const syntax = "; check indentation, quotes and brackets; an address with colons may need quotes"
	for _, c := range []struct{ what, text, want string }{
		{"an unknown field", "networks:\n  - name: red\n    subnet: [10.1.0.0/16]\n", `f:3:5: unknown field "subnet"; did you mean "subnets"?`},
		{"an unknown field of JSON", "{\"ports\": [],\n \"portz\": []}", `f:2:2: unknown field "portz"; did you mean "ports"?`},
		{"a field in capitals", "settings: {VXLAN_PORT: 4789}\n", `f:1:12: unknown field "VXLAN_PORT"; did you mean "vxlan_port"?`},
		{"an unknown field like none", "networks:\n  - {name: red, colour: blue}\n", `f:2:17: unknown field "colour"`},
		{"a field of another object", "nodes:\n  - {name: a, vni: 7}\n", `f:2:15: unknown field "vni"`},
		{"an unknown field with fields", "ports:\n  - {name: a, atach: {netns: b}}\n", `f:2:15: unknown field "atach"; did you mean "attach"?`},
		{"a field that is there twice", "networks:\n  - name: red\n    id: 1\n    id: 2\n", `f:4:5: "id" is already defined in line 3; keep one`},
		{"a list that is there twice", "nodes: []\nports: []\nnodes: []\n", `f:3:1: "nodes" is already defined in line 1; keep one`},
		{"a word for a number", "networks:\n  - {name: red, id: seven}\n", `f:2:21: a number belongs here, not "seven"`},
		{"a collector without a port", "settings: {flow_export: {collector: 192.0.2.9}}\n", `f:1:37: "192.0.2.9" is not an address with a port; write one such as 192.0.2.9:4739 or [2001:db8::9]:4739`},
		{"a time without a unit", "settings: {flow_export: {collector: 192.0.2.9:4739, idle: 15}}\n", `f:1:59: "15" is not a duration; write a number and a unit, such as 15s or 1m`},
		{"a fraction for a whole number", "settings: {vxlan_port: 4789.5}\n", `f:1:24: a whole number belongs here, not "4789.5"`},
		{"infinity for a whole number", "networks: [{id: .inf}]\n", `f:1:17: a whole number belongs here, not ".inf"`},
		{"a number below 0", "networks:\n  - {id: -1}\n", `f:2:10: -1 is too small; the smallest number is 0`},
		{"a number that does not fit", "settings: {vxlan_port: 65536}\n", `f:1:24: 65536 is too large`},
		{"a word for true or false", "routes:\n  - {discard: always}\n", `f:2:15: true or false belongs here, not "always"`},
		{"a value for a list", "ports:\n  - {name: a, ips: 10.0.0.1}\n", `f:2:20: a list belongs here, such as [a, b]`},
		{"fields for a list", "nodes:\n  name: a\n", `f:2:7: a list belongs here, such as [a, b]`},
		{"a value for fields", "nodes:\n  - a\n", `f:2:5: fields belong here, such as name: a`},
		{"a list for a word", "networks:\n  - {name: [a]}\n", `f:2:12: one word belongs here, not a list`},
		{"a list for an address", "ports:\n  - {mac: [02:00:00:00:00:01]}\n", `f:2:11: one word belongs here, not a list; write one such as 02:00:00:00:00:01`},
		{"fields for a prefix", "routes:\n  - prefix: {a: 1}\n", `f:2:13: one word belongs here, not fields; write one such as "10.1.0.0/16", in quotes where it has colons`},
		{"fields for an address", "nodes:\n  - underlay: [{a: 1}]\n", `f:2:16: one word belongs here, not fields; write one such as "192.0.2.1", in quotes where it has colons`},
		{"a MAC that looks like fields", "gateways: [{networks: [{macs: [06:00:00:00:00:01]}]}]\n", `f:1:34: one word belongs here, not fields; write one such as "02:00:00:00:00:01", in quotes where it has colons`},
		{"a short MAC", "ports:\n  - {name: a, mac: 02:00:01}\n", `f:2:20: "02:00:01" is not a MAC address; write six bytes such as 02:00:00:00:00:01`},
		{"a MAC of eight bytes", "ports:\n  - mac: 02:00:00:00:00:00:00:01\n", `f:2:10: "02:00:00:00:00:00:00:01" is not a MAC address; write six bytes such as 02:00:00:00:00:01`},
		{"a MAC in dots", "ports: [{mac: 0200.0000.0001}]\n", `f:1:15: "0200.0000.0001" is not a MAC address; write six bytes such as 02:00:00:00:00:01`},
		{"a locator from a pool in a file", "nodes:\n  - {name: a, locator: auto}\n", `f:2:24: auto is only for a node that adds itself to a shared store; write a prefix such as fd00:0:0:17::/64, or settings.locators with 32 bits`},
		{"a prefix without length", "networks:\n  - subnets: [10.1.0.0]\n", `f:2:15: "10.1.0.0" is not a prefix: no '/'; write one such as 10.1.0.0/16`},
		{"a prefix too long", "networks:\n  - subnets:\n      - 10.1.0.0/33\n", `f:3:9: "10.1.0.0/33" is not a prefix: prefix length out of range; write one such as 10.1.0.0/16`},
		{"an address that is none", "nodes:\n  - underlay: [192.0.2.1, 192.0.2.300]\n", `f:2:27: "192.0.2.300" is not an IP address: IPv4 field has value >255`},
		{"a bracket that stays open", "ports: [\n", `f:1:8: sequence end token ']' not found: "["` + syntax},
		{"a quote that stays open", "nodes:\n  - name: \"x\n", `f:2:11: could not find end character of double-quoted text: "\"x"` + syntax},
		{"a route target without a number", "networks:\n  - {name: red, import: [64512]}\n", `f:2:26: "64512" is not a route target; write ` + administeredForms},
		{"a route target without an administrator", "networks:\n  - {name: red, export: ['7:']}\n", `f:2:26: "7:" is not a route target; write ` + administeredForms},
		{"a route target that looks like fields", "networks: [{import: [64512:1]}]\n", `f:1:27: one word belongs here, not fields; write one such as "64512:1", in quotes where it has colons`},
		{"a route target for a list", "networks: [{name: red, import: 64512:1}]\n", `f:1:32: a list belongs here, such as [a, b]`},
		{"a route distinguisher with a blank", "networks: [{name: red, rd: 64512 1}]\n", `f:1:28: "64512 1" is not a route distinguisher; write auto, or ` + administeredForms},
		{"two documents", "nodes: []\n---\nports: []\n", `f:2:1: a second document in the file; remove what follows the line "---"`},
		{"nothing", " \n\t\n", `f: the file is empty; it needs nodes, networks and ports`},
		{"a comment alone", "# to be done\n", `f: the file is empty; it needs nodes, networks and ports`},
		{"an anchor", "nodes:\n  - &a {name: a}\n", `f:2:5: anchors, aliases and merge keys are not allowed; write the value out`},
		{"a tag", "nodes: !!set []\n", `f:1:8: tags are not allowed; remove the tag; a value that starts with ! needs quotes`},
		{"bytes that are no text", "nodes:\n  - name: caf\xe9\n", `f:2:14: byte 0xe9 is not UTF-8; save the file as UTF-8 text`},
		{"lists without end", strings.Repeat("[", 100), `f:1:33: nested more than 32 deep; a state needs three levels`},
		{"entries without end", "nodes:\n  " + strings.Repeat("- ", 100), `f:2:67: nested more than 32 deep; a state needs three levels`},
	} {
		_, err := Parse("f", []byte(c.text))
		if err == nil {
			t.Errorf("%s is taken", c.what)
		} else if err.Error() != c.want {
			t.Errorf("%s:\n     %s\nwant %s", c.what, err, c.want)
		}
	}
}

// A bad address that occurs twice has no position.
func TestTheErrorOfABadAddressThatOccursTwiceHasNoPosition(t *testing.T) {
	_, err := Parse("f", []byte("ports:\n  - {name: a, mac: xx}\n  - {name: b, mac: xx}\n"))
	const want = `f: "xx" is not a MAC address; write six bytes such as 02:00:00:00:00:01`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestAFileThatIsTooLongIsNotRead(t *testing.T) {
	_, err := Parse("f", bytes.Repeat([]byte(" "), MaxFileBytes+1))
	const want = "f: the file has 33554433 bytes, at most 33554432 are allowed; split the fleet"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// A small file can have so many parts that they use much memory.
func TestAFileWithTooManyPartsIsNotRead(t *testing.T) {
	many := func(part string) string { return strings.Repeat(part, MaxValues) }
	for _, text := range []string{
		`{"ports": [` + many("{},") + "{}]}", `{"ports": [{"ips": [` + many(`"",`) + `""]}]}`, // JSON
		"a: [" + many("*a,") + "]", "ports:\n" + many("- {}\n"), "a: " + many("[")[:maxTokens], many("a\n"), many(`""`), many("- "), "#" + many("\n#"),
		`{"x": [` + strings.Repeat("1,", maxTokens) + "1]}", // JSON with a mistake
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("f", []byte(text))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(MaxValues)) && !strings.Contains(err.Error(), fmt.Sprint(maxTokens)) && !strings.Contains(err.Error(), "not a state") {
			t.Errorf("%.30q gives the error %v, want one that names the limit", text, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 4*uint64(len(text)) {
			t.Errorf("%.30q of %d bytes uses %d bytes of memory", text, len(text), used)
		}
	}
}

func TestAFailedParseLeavesNothingBehind(t *testing.T) {
	for _, text := range []string{`{"nodes": [{"name": "a"}], "x": 1}`, "nodes:\n  - name: a\nx: 1\n", "nodes:\n  - {name: a, underlay: [x]}\n"} {
		s, err := Parse("f", []byte(text))
		if err == nil {
			t.Fatalf("%q is taken", text)
		}
		if diff := cmp.Diff(State{}, s, same); diff != "" {
			t.Errorf("%q leaves\n%s", text, diff)
		}
	}
}

func TestMACsAreReadAndWrittenAsText(t *testing.T) {
	for text, want := range map[string]MAC{
		"02:00:5e:00:01:ff": {0x02, 0x00, 0x5e, 0x00, 0x01, 0xff}, "02-AB-cd-00-01-02": {0x02, 0xab, 0xcd, 0, 1, 2}, "": {},
	} {
		var got MAC
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is read as %s, %v; want %s", text, got, err, want)
		}
	}
	text, err := MAC{0x02, 0xab, 0xcd, 0, 1, 2}.MarshalText()
	if err != nil || string(text) != "02:ab:cd:00:01:02" {
		t.Errorf("it is written %q, %v", text, err)
	}
	if text, err := (MAC{}).MarshalText(); err != nil || len(text) != 0 {
		t.Errorf("none is written %q, %v", text, err)
	}
}

func TestDamagedFilesAreErrorsOrStates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 3000 {
		text := []byte(whole)
		for range 1 + r.IntN(3) {
			if len(text) < 2 {
				break
			}
			switch at := r.IntN(len(text) - 1); r.IntN(3) {
			case 0:
				text = append(text[:at:at], text[at+1:]...)
			case 1:
				text[at] = "{}[]:-,\"'#&*!|> \n\tx0"[r.IntN(20)]
			default:
				text = text[:at+1]
			}
		}
		if readsAgain(t, text) {
			taken++
		}
	}
	if taken < 100 || taken > 2900 {
		t.Errorf("of 3000 damaged files %d are taken; too few or too many to prove anything", taken)
	}
}

// readsAgain checks that a parsed state can be written and parsed again. It
// reports whether the input is a state.
func readsAgain(t *testing.T, text []byte) bool {
	t.Helper()
	s, err := Parse("f", text)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "f:") {
			t.Fatalf("%q: error %q does not begin with the file's name", text, err)
		}
		return false
	}
	first := fmt.Sprint(s.Validate())
	written, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("write the state of %q: %v", text, err)
	}
	again, err := Parse("f", written)
	if err != nil {
		t.Fatalf("%q was read, and written as %s is not: %v", text, written, err)
	}
	if diff := cmp.Diff(s, again, same); diff != "" {
		t.Fatalf("%q differs after being written and read again:\n%s", text, diff)
	}
	if second := fmt.Sprint(again.Validate()); first != second {
		t.Fatalf("%q is judged\n%s\nand after being written and read\n%s", text, first, second)
	}
	if diff := cmp.Diff(s.WithDefaults(), s.WithDefaults().WithDefaults(), same); diff != "" {
		t.Fatalf("%q: defaults twice differ from once:\n%s", text, diff)
	}
	return true
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		whole, "{}", "nodes: []", `{"nodes": null, "settings": {"vxlan_port": 1}}`, "ports:\n  - {name: 007, mac: 02:00:00:00:00:01, ips: [\"::\"]}",
		"policies: [{name: p, rules: [{ports: 80, remote: ''}]}]", "? a\n: b", "a: [", "\xff", "nodes:\n  - name: |\n      a\n", "networks: [{id: 0x10, vni: 1_000}]",
		"routes: [{prefix: \"::ffff:1.2.3.4/100\", network: .nan}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { readsAgain(t, text) })
}

// Large states as JSON and as YAML.
func BenchmarkParse(b *testing.B) {
	s := State{Networks: []Network{{Name: "red", ID: 7, Subnets: prefixes("10.0.0.0/8")}}}
	for i := range 10_000 {
		s.Ports = append(s.Ports, Port{
			Name: fmt.Sprint("port", i), Network: "red", Node: "a", MAC: MAC{2, 0, 0, 1, byte(i >> 8), byte(i)}, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})},
		})
	}
	for name, write := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": func(v any) ([]byte, error) { return yaml.Marshal(v) }} {
		text := must.Get(write(s))(b)
		b.Run(fmt.Sprintf("ports=%d/%s", len(s.Ports), name), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if got, err := Parse("f", text); err != nil || len(got.Ports) != len(s.Ports) {
					b.Fatalf("%d ports, %v", len(got.Ports), err)
				}
			}
		})
	}
}

// The limit of a file's tokens is checked before the file is read.
func TestTheTokensOfAFileAreNotUnderestimated(t *testing.T) {
	const n = 100
	var parts []string
	signs := "`@*&!|>%?-:,[]{}#\"'~=<.\\/+a1 \n\t\r"
	for _, a := range signs {
		for _, b := range signs {
			parts = append(parts, string(a)+string(b))
			for _, c := range "a \n" {
				parts = append(parts, string(a)+string(b)+string(c))
			}
		}
	}
	for _, part := range parts {
		for _, before := range []string{"", "a: ", "- "} {
			text := before + strings.Repeat(part, n)
			if is, about := len(lexer.Tokenize(text)), aboutTokens([]byte(text)); is > 3*about+10 {
				t.Errorf("%q and %d times %q has %d tokens, counted as %d", before, n, part, is, about)
			}
		}
	}
}
