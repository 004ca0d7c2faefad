package netns

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/delayline"
	"windtunnel/lab/suite"
)

// delayDevices names the pair of devices before a port whose link has a delay. The wire sends
// frames out of the first device, where a delay line takes a copy of them, and sends it on when it
// is due. The second device drops the frames.
func delayDevices(port string) (hold, sink string) { return "hold" + port, "sink" + port }

// configureDelay adds the pair of devices before a port whose link has a delay.
func (w *wire) configureDelay(port string, f suite.Fabric) error {
	hold, sink := delayDevices(port)
	// Packet sockets cannot describe superframes of tunnels, and before Linux 6.2 those of UDP.
	_, toSink, err := w.addPair(hold, sink, f.MTU, suite.OffloadTCP)
	if err != nil {
		return err
	}
	return errors.Join(
		attachProgram(w.space, toSink, netlink.HANDLE_MIN_INGRESS, w.objects.Wire, wireProgWire), // this device is no port of the wire, so the program drops the frames
		w.space.Up(hold), w.space.Up(sink),
	)
}

// startLines starts a delay line on each CPU that gets frames. The line of a link and a node runs
// on a CPU that does the wire's work for frames to this node: see wireCPUs.
func (tb *Testbed) startLines(argv []string) error {
	hops := map[int][]delayline.Hop{}
	for i, hop := range tb.wire.hops {
		link, to := i/len(tb.nodes), i%len(tb.nodes)
		cpus := tb.wireCPUs((to + 1) % len(tb.nodes)) // of the sender, if there are two nodes
		cpu := cpus[len(cpus)-1-link%len(cpus)]       // the first receive queue is on the first CPU
		hops[cpu] = append(hops[cpu], hop)
	}
	for cpu, hops := range hops {
		by := func(cmd *exec.Cmd) error { return startOn(tb.wire.space, []int{cpu}, cmd) }
		p, err := delayline.Start(argv, tb.spec.Fabric.Delay, cpu, hops, tb.wire.space.Do, by)
		if err != nil {
			return fmt.Errorf("delay frames by %v: %w", tb.spec.Fabric.Delay, err)
		}
		tb.wire.lines = append(tb.wire.lines, p)
	}
	return nil
}

// stopLines ends the delay lines, or keeps them running after the end of this program.
func (w *wire) stopLines(how func(*delayline.Process) error) (err error) {
	for _, p := range w.lines {
		err = errors.Join(err, how(p))
	}
	w.lines = nil
	return err
}

// LinePIDs implements testbed.Delaying.
func (tb *Testbed) LinePIDs() (pids []int) {
	if tb.wire != nil {
		for _, p := range tb.wire.lines {
			pids = append(pids, p.PID())
		}
	}
	return pids
}

// Delays implements testbed.Delaying.
func (tb *Testbed) Delays() (r delayline.Reading) {
	if tb.wire != nil {
		for _, p := range tb.wire.lines {
			p.Add(&r)
		}
	}
	return r
}
