package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/parallel"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/testbedtest"
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
			if n != from.Node && (about.Publishes || about.Gateway || !want) {
				continue // no tunnel leads to that node, or the attempt fails only after a long timeout
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

func changesPorts(e *Experiment) {
	sc := &e.Plan.Scenarios[0]
	sc.System, sc.Workload.Change, sc.Workload.ChangeEvery = "bridge", suite.ChangePorts, 100*time.Millisecond
}

// Both nodes change at each multiple of the interval inside the measured part of 2 s. The last change is undone.
func TestBothNodesChangeAndUndoInTurns(t *testing.T) {
	x := &testbedtest.Executor{}
	s := runFake(t, x, changesPorts)[0]
	turns := map[string][]any{}
	for _, o := range x.Operations() {
		switch args := o.Args.(type) {
		case bool:
			turns[o.Node] = append(turns[o.Node], args)
		case agent.AttachArgs:
			must.Equal(t, suite.ChangePorts, args.Change)
			must.Equal(t, "c2 10.31.0.3/16, c2 10.31.16.3/16", fmt.Sprintf("%s %s, %s %s", args.Spares[0].Name, args.Spares[0].V4, args.Spares[1].Name, args.Spares[1].V4))
		}
	}
	var want []any
	for range 10 {
		want = append(want, false, true)
	}
	must.Equal(t, map[string][]any{"a": want, "b": want}, turns)
	must.Equal(t, "38 1e+06 1e+06", fmt.Sprint(s.Metrics[sample.Changes], s.Metrics[sample.ChangeTime], s.Metrics[sample.ChangeTimeMax]))
}

func TestAFailedChangeFailsTheTrial(t *testing.T) {
	x := &testbedtest.Executor{Hook: func(o testbedtest.Operation) error {
		if o.String() == "b.Change" {
			return errors.New("broken")
		}
		return nil
	}}
	f := runFake(t, x, changesPorts)[0].Failure
	if f == nil || f.Kind != sample.ChangeFailed || !strings.Contains(f.Message, "change the ports of the network: node b: broken") {
		t.Errorf("the failure is %v", f)
	}
}

func TestScenariosWhoseNetworkCannotChangeAreSkipped(t *testing.T) {
	for say, change := range map[string]func(*suite.Scenario){
		"cannot change the network of raw":        func(sc *suite.Scenario) { sc.System = "raw" },
		"cannot change the policies of bridge":    func(sc *suite.Scenario) { sc.Workload.Change = suite.ChangePolicies },
		"changes networks of containers only":     func(sc *suite.Scenario) { sc.Endpoint.Kind = suite.VM },
		"changes every 1s, and the measured part": func(sc *suite.Scenario) { sc.Workload.ChangeEvery = time.Second },
		"joins on an emulated fabric of one link o": func(sc *suite.Scenario) {
			sc.System, sc.Workload.Change, sc.Fabric.Links = "vrouter-direct", suite.ChangeNodes, 2
		},
	} {
		sc := scenario("bridge", func(sc *suite.Scenario) {
			sc.Workload.Change, sc.Workload.ChangeEvery = suite.ChangePorts, 100*time.Millisecond
			change(sc)
		})
		if why := skipsOn(planOf(sc), machine(4))[sc.ID]; !strings.Contains(why, say) {
			t.Errorf("%q is not in the reason: %s", say, why)
		}
	}
}

// A change that is in place when a run is interrupted is removed with the system.
func TestAnInterruptedRunLeavesNoChange(t *testing.T) {
	n := &notebook{}
	e := lab(t, n, scenario("bridge", func(sc *suite.Scenario) {
		sc.Workload.Change, sc.Workload.ChangeEvery, sc.Timing.Duration = suite.ChangePorts, 300*time.Millisecond, time.Minute
	}))
	traces := lookForTraces(t, e.ID)
	ctx, interrupt := context.WithCancel(t.Context())
	n.up = func(b *Bench) {
		traces.watch(b)
		go func() {
			defer interrupt()
			node, err := space.Open(b.Testbed.Nodes()[0].Attachment().SpaceBase)
			for err == nil {
				if _, missing := node.Link("vifc2"); missing == nil {
					node.Close()
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	must.Fail(t, e.Run(ctx), "canceled")
	traces.assertNone()
}

// The changes of a trial are counted and timed.
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

// Each row is a change of a system, a command on the first node that shows the system's tables, and a text that is
// in them only with the change.
func TestTheTablesHaveWhatAChangeAdds(t *testing.T) {
	must.Long(t)
	for _, c := range []struct {
		system string
		change suite.Change
		show   string
		text   string
	}{
		{"bridge", suite.ChangeRoutes, "bridge fdb show", "02:77:74:ff:ff:fe dev faba0 master br0 static"},
		{"vxlan", suite.ChangeNodes, "bridge fdb show dev vxlan0", "00:00:00:00:00:00 dst 172.31.0.250"},
		{"vxlan", suite.ChangeRoutes, "bridge fdb show dev vxlan0", "02:77:74:ff:ff:fe dst 172.31.0.250"},
		{"bridge-nat", suite.ChangeRoutes, "ip route", "198.51.100.0/24 dev br0"},
		{"bridge-nat", suite.ChangePolicies, "iptables -w 2 -S FORWARD", "-d 198.51.100.9/32 -j DROP"},
		{"docker-bridge", suite.ChangeRoutes, "ip route", "198.51.100.0/24 dev br0"},
		{"docker-bridge", suite.ChangePolicies, "iptables -w 2 -S FORWARD", "-d 198.51.100.9/32 -j DROP"},
		{"ovs-vxlan", suite.ChangeNodes, "ovs-appctl -t $home/ovs-vswitchd.ctl dpif/show", "tunnel2"},
		{"flannel-vxlan", suite.ChangeNodes, "bridge fdb show dev flannel.1", "02:77:74:00:ff:fe dst 172.31.0.250"},
		{"flannel-host-gw", suite.ChangeNodes, "ip route", "10.31.240.0/20 via 172.31.0.250"},
		{"wireguard", suite.ChangeRoutes, "ip route", "198.51.100.0/24 dev br0"},
		{"wireguard", suite.ChangeNodes, "unshare --mount sh -c 'cd $home; mount --bind run $(readlink -f /var/run); wg show wg0 allowed-ips'", "198.51.100.0/24"},
		{"vrouter-direct", suite.ChangeNodes, "vrouter --socket $home/vrouter.sock nh list", "172.31.0.1 → 172.31.0.250"},
		{"vrouter-vxlan", suite.ChangeNodes, "vrouter --socket $home/vrouter.sock rt list", "10.31.255.254/32"},
		{"vrouter-direct", suite.ChangeRoutes, "vrouter --socket $home/vrouter.sock rt list", "198.51.100.0/24"},
		{"vrouter-direct-policy", suite.ChangePolicies, "vrouter --socket $home/vrouter.sock trace --from n0c1 --to 198.18.99.1", "denied by policy"},
	} {
		t.Run(c.system+" "+string(c.change), func(t *testing.T) {
			program, _, _ := strings.Cut(c.show, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			ctx := t.Context()
			e := onThisMachine(t, &notebook{}, must.Get(system.ByName(c.system))(t))
			e.Plan.Scenarios[0].Workload.Change = c.change
			traces := lookForTraces(t, e.ID)
			b := must.Get(NewBench(ctx, e.Executor, e.ID, &e.Plan.Scenarios[0], e.Plan.Nodes))(t)
			defer func() {
				must.Succeed(t, b.Down(context.Background()))
				traces.assertNone()
			}()
			traces.watch(b)
			n := b.Testbed.Nodes()[0]
			for _, undo := range []bool{false, true, false, true, false} {
				err := parallel.Each(b.Testbed.Nodes(), func(_ int, n testbed.Node) error {
					_, err := n.Agent().Change(ctx, undo)
					return err
				})
				if err != nil {
					t.Fatal(b.withOutput(ctx, err))
				}
				p := must.Get(n.Agent().Start(ctx, agent.StartArgs{Argv: []string{"sh", "-c", c.show}, Env: []string{"home=" + space.Home(n.Attachment().SpaceBase)}}))(t)
				var out agent.OutputReply
				must.EventuallyTrue(t, c.show+" ends", func() bool {
					ended := must.Get(p.Next(ctx, time.Second))(t).Exited
					out = must.Get(p.Output(ctx))(t)
					return ended
				})
				if strings.Contains(out.Stdout, c.text) == undo {
					t.Errorf("undone: %v; %s prints\n%s%s", undo, c.show, out.Stdout, out.Stderr)
				}
			}
		})
	}
}
