package datapath

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// whole fails unless the maps equal the tables, both devices run the programs
// of d, and no other generation is left.
func whole(t *testing.T, d *Datapath, want fib.Tables, vif, fabric int) {
	t.Helper()
	got, err := d.Dump()
	if diff := cmp.Diff(want, got, sameAddr, samePrefix); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if modes := attached(t, d); modes[vif] != "vif tcx" || modes[fabric] != "fabric xdp+tcx" || len(modes) != 2 {
		t.Errorf("attached: %v", modes)
	}
	if left, err := d.others(); err != nil || len(left) != 0 {
		t.Errorf("older generations left: %v, %v", left, err)
	}
}

// An agent may be killed between any two of its calls, and the pins may have
// lost what it made: the next one completes the work.
func TestTheNextOpenCompletesAnInterruptedChange(t *testing.T) {
	must.Long(t)
	larger := small
	larger.Routes *= 2
	for _, c := range []struct {
		name   string
		limits Limits
		crash  func(t *testing.T, dir string, d *Datapath, want fib.Tables, vif, fabric int)
	}{
		{"before the tables were applied", larger, func(*testing.T, string, *Datapath, fib.Tables, int, int) {}},
		{"in the midst of applying", larger, func(t *testing.T, _ string, d *Datapath, want fib.Tables, _, _ int) {
			steps := must.Get(d.plan(want, nil))(t)
			for _, s := range steps[:len(steps)/2] {
				must.Get(s.update())(t)
			}
		}},
		{"between two swaps", larger, func(t *testing.T, _ string, d *Datapath, want fib.Tables, vif, _ int) {
			must.Get(d.Apply(want))(t)
			must.Succeed(t, d.AttachVif(vif))
		}},
		{"before the old generation was retired", larger, func(t *testing.T, _ string, d *Datapath, want fib.Tables, vif, fabric int) {
			must.Get(d.Apply(want))(t)
			must.Succeed(t, d.AttachVif(vif))
			must.Succeed(t, d.GuardFabric(fabric))
			must.Get(d.AttachFabric(fabric, ""))(t)
		}},
		{"while maps were being pinned", larger, func(t *testing.T, _ string, d *Datapath, _ fib.Tables, _, _ int) {
			for _, name := range []string{"hosts4", "flows", "vif_stats", "drop_log"} {
				must.Succeed(t, os.Remove(filepath.Join(d.generation, name)))
			}
		}},
		{"and then a map's pin was deleted", small, func(t *testing.T, _ string, d *Datapath, _ fib.Tables, _, _ int) {
			must.Succeed(t, os.Remove(filepath.Join(d.generation, "hosts4")))
		}},
		{"and then every link's pin was deleted", small, func(t *testing.T, dir string, _ *Datapath, _ fib.Tables, _, _ int) {
			must.Succeed(t, os.RemoveAll(filepath.Join(dir, linksName)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := pins(t)
			devices := enterSpace(t, 3)
			vif, fabric := devices[0], devices[2]
			want := scene(vif, devices[1], fabric, model.MPLSoUDP, false)
			set := func(d *Datapath) {
				t.Helper()
				must.Get(d.Apply(want))(t)
				must.Succeed(t, d.AttachVif(vif))
				if f, err := d.AttachFabric(fabric, ""); err != nil || f.Mode != "xdp+tcx" {
					t.Fatalf("%+v, %v", f, err)
				}
				must.Succeed(t, d.GuardFabric(fabric))
			}
			first := open(t, Options{Pins: dir})
			set(first)
			key := layout.FlowKey{Vif: 1, Protocol: 6, LocalPort: 80}
			must.Succeed(t, first.maps.Flows.Put(&key, &layout.Flow{SeenNs: 1, Packets: [2]uint64{3, 4}}))
			first.Close()

			second := open(t, Options{Pins: dir, Limits: c.limits})
			c.crash(t, dir, second, want, vif, fabric)
			second.Close()

			third := open(t, Options{Pins: dir, Limits: c.limits})
			set(third)
			must.Succeed(t, third.Retire())
			whole(t, third, want, vif, fabric)
			var flow layout.Flow
			if err := third.maps.Flows.Lookup(&key, &flow); err != nil || flow.Packets != [2]uint64{3, 4} {
				t.Errorf("the flow is lost: %+v, %v", flow, err)
			}
			must.Succeed(t, third.Remove())
			if left, err := os.ReadDir(dir); err != nil || directories(left) != 0 {
				t.Errorf("left after Remove: %v, %v", left, err)
			}
		})
	}
}

// directories counts directories: the kernel's own files of a bpffs stay.
func directories(entries []os.DirEntry) (n int) {
	for _, e := range entries {
		if e.IsDir() {
			n++
		}
	}
	return n
}

func TestAHookWhoseMakerCrashedIsStillRemoved(t *testing.T) {
	for _, c := range []struct {
		name string
		made bool // the hook was made before the crash
	}{{"before it was made", false}, {"before its filter was added", true}} {
		t.Run(c.name, func(t *testing.T) {
			devices := enterSpace(t, 1)
			l := must.Get(netlink.LinkByIndex(devices[0]))(t)
			d := attaching(t, true, true)
			must.Succeed(t, os.Mkdir(d.hookNote(devices[0]), 0o700))
			if c.made {
				must.Succeed(t, netlink.QdiscAdd(clsact(devices[0])))
			}
			must.Succeed(t, d.AttachVif(devices[0]))
			if got := attached(t, d); got[devices[0]] != "vif clsact" {
				t.Errorf("attached: %v", got)
			}
			must.Succeed(t, d.Detach(devices[0]))
			if _, err := os.Stat(d.hookNote(devices[0])); hasClsact(l) || !os.IsNotExist(err) {
				t.Errorf("the hook is there: %v, its note: %v", hasClsact(l), err)
			}
		})
	}
}
