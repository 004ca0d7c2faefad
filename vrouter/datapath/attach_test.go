package datapath

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// attached is the devices' modes by ifindex.
func attached(t *testing.T, d *Datapath) map[int]string {
	t.Helper()
	all := must.Get(d.Attached())(t)
	modes := map[int]string{}
	for _, a := range all {
		modes[a.Ifindex] = a.Kind + " " + a.Mode
		if !a.Current {
			modes[a.Ifindex] += " old"
		}
	}
	return modes
}

func TestProgramsAreAttachedSwappedRepairedAndRemoved(t *testing.T) {
	for _, c := range []struct {
		name        string
		options     Options
		vif, fabric string
	}{
		{"tcx and XDP", Options{}, "vif tcx", "fabric xdp+tcx"},
		{"tcx alone", Options{NoXDP: true}, "vif tcx", "fabric tcx"},
		{"clsact and XDP", Options{NoTCX: true}, "vif clsact", "fabric xdp+clsact"},
		{"clsact alone", Options{NoTCX: true, NoXDP: true}, "vif clsact", "fabric clsact"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Pins = pins(t)
			devices := enterSpace(t, 2)
			vif, fabric := devices[0], devices[1]
			d := open(t, c.options)
			attach := func(d *Datapath) {
				t.Helper()
				must.Succeed(t, d.AttachVif(vif))
				f, err := d.AttachFabric(fabric, "")
				if err != nil || "fabric "+f.Mode != c.fabric || (f.Why == "") != strings.Contains(c.fabric, "xdp") {
					t.Fatalf("%+v, %v", f, err)
				}
				must.Succeed(t, d.GuardFabric(fabric))
				if all, err := d.Attached(); err != nil || !slices.ContainsFunc(all, func(a Attachment) bool { return a.Ifindex == fabric && a.Guarded }) {
					t.Errorf("the fabric device is not guarded: %+v, %v", all, err)
				}
			}
			want := func(d *Datapath, suffix string) {
				t.Helper()
				if got := attached(t, d); got[vif] != c.vif+suffix || got[fabric] != c.fabric+suffix || len(got) != 2 {
					t.Errorf("attached: %v", got)
				}
			}
			attach(d)
			want(d, "")
			attach(d) // again: nothing to do
			want(d, "")
			d.Close()

			next := open(t, c.options) // another process of the program
			want(next, " old")
			attach(next)
			want(next, "")
			must.Succeed(t, errors.Join(next.dropLink(hookLoop, loopback), next.removeFilter(hookLoop, loopback)))
			if all, err := next.Attached(); err != nil || slices.ContainsFunc(all, func(a Attachment) bool { return a.Ifindex == fabric && a.Current }) {
				t.Errorf("without the program of the loopback device the fabric device counts as served: %+v, %v", all, err)
			}
			attach(next)
			want(next, "")

			l := must.Get(netlink.LinkByIndex(vif))(t)
			must.Succeed(t, netlink.LinkDel(l))
			if got := attached(t, next); len(got) != 1 || got[fabric] != c.fabric {
				t.Errorf("after the vif's device went: %v", got)
			}
			must.Succeed(t, next.Detach(fabric))
			if got := attached(t, next); len(got) != 0 {
				t.Errorf("after Detach: %v", got)
			}
			must.Succeed(t, next.Remove()) // also from the loopback device
			if q, err := exec.Command("tc", "qdisc", "show").Output(); err == nil && strings.Contains(string(q), "clsact") {
				t.Errorf("the clsact hook is left: %s", q)
			}
		})
	}
}

func TestForeignAttachmentsStay(t *testing.T) {
	devices := enterSpace(t, 1)
	d := attaching(t, true, false)
	must.Succeed(t, netlink.QdiscAdd(clsact(devices[0])))
	foreign := &netlink.MatchAll{FilterAttrs: netlink.FilterAttrs{
		LinkIndex: devices[0], Parent: netlink.HANDLE_MIN_EGRESS, Priority: 1, Handle: 1, Protocol: unix.ETH_P_ALL,
	}}
	if err := netlink.FilterAdd(foreign); err != nil {
		t.Skip("adding a foreign filter: " + err.Error())
	}
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	must.Succeed(t, err)
	defer pass.Close()
	theirs, err := link.AttachXDP(link.XDPOptions{Interface: devices[0], Program: pass, Flags: link.XDPDriverMode})
	if err != nil {
		t.Skip("attaching a foreign XDP program: " + err.Error())
	}
	defer theirs.Close()
	f, err := d.AttachFabric(devices[0], "")
	if err != nil || f.Mode != "clsact" || f.Why != "another XDP program is there already" {
		t.Errorf("%+v, %v", f, err)
	}
	must.Succeed(t, d.Detach(devices[0]))
	ours, others, err := d.ourFilters(devices[0])
	if err != nil || len(ours) != 0 || others != 1 {
		t.Errorf("%d of ours, %d others, %v", len(ours), others, err)
	}
	if info, err := theirs.Info(); err != nil || info.XDP().Ifindex != uint32(devices[0]) {
		t.Errorf("the foreign XDP program: %+v, %v", info, err)
	}
}

func TestANewGenerationRetiresTheOldOnceItsProgramsRun(t *testing.T) {
	dir := pins(t)
	devices := enterSpace(t, 3)
	want := scene(devices[0], devices[1], devices[2], model.MPLSoUDP, false)
	first := open(t, Options{Pins: dir})
	must.Get(first.Apply(want))(t)
	must.Succeed(t, first.AttachVif(devices[0]))
	first.Close()
	larger := small
	larger.Routes *= 2
	second := open(t, Options{Pins: dir, Limits: larger})
	apply := func() {
		t.Helper()
		_, err := second.Apply(want)
		must.Succeed(t, errors.Join(err, second.Retire()))
	}
	apply()
	if left, _ := second.others(); len(left) != 1 {
		t.Errorf("while the old programs run, their maps are kept: %v", left)
	}
	must.Succeed(t, second.AttachVif(devices[0]))
	apply()
	if left, _ := second.others(); len(left) != 0 {
		t.Errorf("the old maps are left: %v", left)
	}
}
