package ssh

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/internal/must"
)

// parsed returns a file of the named hosts. Host hN has the data address 10.0.0.N.
func parsed(t *testing.T, names ...string) *Hosts {
	t.Helper()
	text := "hosts:\n"
	for _, name := range names {
		text += fmt.Sprintf("  - {name: %s, user: lab, data: 10.0.0.%s}\n", name, name[1:])
	}
	return must.Get(parseHosts([]byte(text)))(t)
}

func TestHostsOfARunAreChosenFromTheFile(t *testing.T) {
	h := parsed(t, "h1", "h2", "h3", "h4")
	if err := h.Only([]string{"h2", "h4"}); err != nil || !slices.Equal(h.Names(), []string{"h2", "h4"}) {
		t.Errorf("the hosts are %v (%v), want h2 and h4", h.Names(), err)
	}
	must.Fail(t, h.Only([]string{"h2", "h3"}), "needs host h3")
	h = parsed(t, "h1", "h2", "h3")
	if h.First(2); !slices.Equal(h.Names(), []string{"h1", "h2"}) {
		t.Errorf("the first hosts are %v, want h1 and h2", h.Names())
	}
	if h.First(3); len(h.Hosts) != 2 {
		t.Errorf("the first 3 of 2 hosts are %v", h.Names())
	}
}

func TestAResumedRunHasItsHostsInTheirOrder(t *testing.T) {
	recorded := parsed(t, "h1", "h2", "h3").Record()
	h := parsed(t, "h4", "h3", "h1")
	missing, err := h.Resume(recorded)
	if err != nil || !slices.Equal(h.Names(), []string{"h1", "h3"}) || !slices.Equal(missing, []string{"h2"}) {
		t.Errorf("the hosts are %v without %v (%v), want h1 and h3 without h2", h.Names(), missing, err)
	}
	for name, change := range map[string]func(*Host){
		"address": func(b *Host) { b.Address = "192.0.2.9" },
		"port":    func(b *Host) { b.Port = 23 },
		"data":    func(b *Host) { b.data[0] = netip.MustParseAddr("10.0.0.9") },
		"data6":   func(b *Host) { b.data = append(b.data, netip.MustParseAddr("fd00::9")) },
	} {
		t.Run(name, func(t *testing.T) {
			h := parsed(t, "h1", "h2", "h3")
			change(&h.Hosts[1])
			_, err := h.Resume(recorded)
			must.Fail(t, err, "and the run used address h2:22 with data 10.0.0.2; restore")
		})
	}
	h = parsed(t, "h1", "h2", "h3")
	h.Hosts[1].Address = "[h2]"
	if missing, err := h.Resume(recorded); err != nil || len(missing) > 0 {
		t.Errorf("another spelling of an address: %v, without %v", err, missing)
	}
}

func TestNamespacesOfManyHostsHaveDifferentNames(t *testing.T) {
	first, last := (&machine{number: 25}).suffix(), (&machine{number: 26}).suffix()
	if first != "z" || last != "0026" {
		t.Errorf("the namespaces of the hosts end with %q and %q, want z and 0026", first, last)
	}
}
