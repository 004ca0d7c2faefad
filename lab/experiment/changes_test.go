package experiment

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
)

// Containers reach the spare container of each node after the change, and not after its reverse. The
// system is detached with the change in place, and nothing is left.
func TestASpareContainerIsReachedWhileItIsInTheNetwork(t *testing.T) {
	must.Long(t)
	var never []map[string]string
	for _, sys := range outsideClusters() {
		if _, err := system.ChangeOf(sys, suite.ChangePorts); err != nil {
			continue
		}
		t.Run(sys.Name(), func(t *testing.T) {
			ctx := context.Background()
			e := onThisMachine(t, &notebook{}, sys)
			sc := &e.Plan.Scenarios[0]
			sc.Workload.Change = suite.ChangePorts
			if never == nil {
				never = nodesWithout(t, e)
			}
			traces := lookForTraces(t, e.ID)
			b := must.Get(NewBench(ctx, inspector{e.Executor, func(tb testbed.Testbed) { assertUntouched(t, tb, e.ID, never) }}, e.ID, sc, e.Plan.Nodes))(t)
			defer func() {
				must.Succeed(t, b.Down(ctx))
				traces.assertNone()
			}()
			traces.watch(b)
			change := func(undo bool) {
				t.Helper()
				for _, n := range b.Testbed.Nodes() {
					if took, err := n.Agent().Change(ctx, undo); err != nil || took <= 0 {
						t.Fatal(b.withOutput(ctx, err), took)
					}
				}
			}
			for range 2 {
				change(false)
				assertSparesAnswer(t, b, sys.About(), true)
				change(true)
				assertSparesAnswer(t, b, sys.About(), false)
			}
			change(false)
		})
	}
}

// assertSparesAnswer asserts that each container reaches the spare containers of both nodes, or none.
func assertSparesAnswer(t *testing.T, b *Bench, about system.About, want bool) {
	t.Helper()
	for _, from := range []Endpoint{b.Pairs[0].Sender, b.Pairs[0].Receiver} {
		for node, n := range b.Testbed.Nodes() {
			spare := newContainer(node, 2)
			if about.Publishes && n != from.Node || !want && n != from.Node {
				continue // not reached, or slow to fail
			}
			inside := must.Get(space.Open(from.Node.Attachment().SpaceBase + "-" + from.Name))(t)
			defer inside.Close()
			must.EventuallyTrue(t, from.String()+" and "+spare.V4.String(), func() bool { return answers(inside, spare.V4.Addr()) == want })
		}
	}
}

// answers reports whether an address refuses a connection.
func answers(from *space.Space, to netip.Addr) bool {
	err := from.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		tv := unix.NsecToTimeval((200 * time.Millisecond).Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: to.As4()})
	})
	return errors.Is(err, unix.ECONNREFUSED)
}

// The changes of a trial are counted and timed. Here each takes far longer than the interval.
func TestATrialHasTheTimesOfItsChanges(t *testing.T) {
	sc := scenario("bridge", func(sc *suite.Scenario) {
		sc.Workload = suite.Workload{Name: "datagrams", Kind: suite.UDPStream, Direction: suite.Forward, Streams: 1, Buffer: 1000, Rate: 8e6, IPVersion: 4, Change: suite.ChangePorts, ChangeEvery: 50 * time.Millisecond}
	})
	s := runOK(t, sc)
	made, median, longest := s.Metrics[sample.Changes], s.Metrics[sample.ChangeTime], s.Metrics[sample.ChangeTimeMax]
	if most := 2 * float64(sc.Timing.Duration/sc.Workload.ChangeEvery); made < 2 || made > most || median <= 0 || longest < median {
		t.Errorf("%v changes of %v ns, the longest of %v ns; want 2 to %v changes", made, median, longest, most)
	}
	if s.Metrics[sample.Interruption] <= 0 {
		t.Error("the longest gap is not known")
	}
}
