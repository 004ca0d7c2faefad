package ssh

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/experiment"
)

// otherMachine runs each program of a host as on another machine: with another boot ID, with a
// monotonic clock that is 1,000 s ahead for each unit of the last byte of the host's address, and
// with another /run, which has the lock.
const otherMachine = `ForceCommand n=$(echo "$SSH_CONNECTION" | cut -d' ' -f3 | cut -d. -f4); export n; ` +
	`exec unshare --time --monotonic ${n}000 --mount sh -c 'mount -t tmpfs none /run && mkdir /run/netns && echo boot-$n >/run/boot && ` +
	`mount --bind /run/boot /proc/sys/kernel/random/boot_id && eval "$SSH_ORIGINAL_COMMAND"'`

func TestTheClocksOfHostsNeedNotAgree(t *testing.T) {
	must.Long(t)
	if out, err := exec.Command("unshare", "--time", "--monotonic", "1", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("there are no time namespaces: %v: %s", err, out)
	}
	s := newSite(t, otherMachine)
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	n.up = func(b *experiment.Bench) {
		for i, node := range b.Testbed.Nodes() {
			last := 4*i + 2 // byte of the address
			if boot := node.Hello().Boot; boot != fmt.Sprintf("boot-%d", last) {
				t.Errorf("host %s has the boot ID %s: the test does not test", node.Name(), boot)
			}
			offset, err := node.Agent().ClockOffset(context.Background())
			if diff := offset - time.Duration(last)*1000*time.Second; err != nil || diff.Abs() > 50*time.Millisecond {
				t.Errorf("the clock of host %s is %v ahead (%v), want %d000 s", node.Name(), offset, err, last)
			}
			if b.Settings().Others[node.Name()+" kernel"] == "" {
				t.Errorf("the engine did not compare the clock of host %s", node.Name())
			}
		}
	}
	s.Must(runTrials(x, n, 1, scenario("raw", time.Second)))
	if len(n.samples) == 0 {
		t.Fatal("there are no samples")
	}
	assertFigures(t, n.samples[0])
	// With a wrong offset, all points in the window have the same rate.
	steps := map[float64]bool{}
	for _, p := range n.samples[0].Series {
		if p.At > 0 && p.At < 1 && p.Bits > 100e6 && p.Bits < 300e6 {
			steps[p.Bits] = true
		}
	}
	if len(steps) < 4 {
		t.Errorf("the points in the window have %d steps of the receiver, want 4 or more: %+v", len(steps), n.samples[0].Series)
	}
}
