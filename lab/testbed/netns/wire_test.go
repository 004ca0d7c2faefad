package netns

import (
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/meter"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

var profiles = []suite.Offload{suite.OffloadNone, suite.OffloadTCP, suite.OffloadTunnel}

// counters are what the signs of faithfulness are read from.
type counters struct {
	frames   uint64 // that the wire delivered to the receiver
	buffers  uint64 // that its IP layer was handed
	segments uint64 // that the sender sent, each counted once
	again    uint64 // that it sent once more
}

func countersOf(t *testing.T, tb *Testbed) counters {
	t.Helper()
	sender, receiver := snmp(t, tb.nodes[0].space), snmp(t, tb.nodes[1].space)
	var frames uint64
	for l := range tb.spec.Fabric.Links {
		frames += receivedBy(t, tb, 1, l).RxPackets
	}
	return counters{
		frames: frames, buffers: receiver[meter.IPInReceives],
		segments: sender[meter.TCPOutSegs], again: sender[meter.TCPRetransSegs],
	}
}

func snmp(t *testing.T, s *space.Space) meter.Counters {
	t.Helper()
	c := meter.Counters{}
	err := s.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		return meter.ParseSNMP(text, c)
	})
	must.Succeed(t, err)
	return c
}

func (c counters) since(b counters) counters {
	return counters{c.frames - b.frames, c.buffers - b.buffers, c.segments - b.segments, c.again - b.again}
}

// lost is how many frames did not arrive of all that the sender sent. What TCP
// sends again says less: it does so too where an acknowledgement is late.
func (c counters) lost() uint64 {
	if sent := c.segments + c.again; sent > c.frames {
		return sent - c.frames
	}
	return 0
}

// arrived returns the counters since before, once the last frames that are on
// their way have been delivered; after a second they count as lost.
func arrived(t *testing.T, tb *Testbed, before counters) counters {
	t.Helper()
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c := countersOf(t, tb).since(before); c.lost() == 0 || time.Now().After(deadline) {
			return c
		}
	}
}

// The signs of a faithful wire, in every profile: no frame above the MTU
// reaches the receiver; plain TCP comes up merged; hardly a frame is lost when
// the wire is full and none when the sender is paced.
func TestTheWireKeepsTheMTUMergesTCPAndLosesFewFrames(t *testing.T) {
	x := executor(t)
	for _, profile := range profiles {
		t.Run(string(profile), func(t *testing.T) {
			tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.Offload = profile }))
			prove(t, tb, "", 0, 1, 4, 1500)
			largest := watchFrames(t, tb)
			before := countersOf(t, tb)
			bytes := flow{network: "tcp", duration: time.Second}.run(t, tb, "")
			full := arrived(t, tb, before)
			t.Logf("full: %d bytes in %d frames in %d buffers, %d of %d segments again, largest frame %d",
				bytes, full.frames, full.buffers, full.again, full.segments, largest())
			if n := largest(); n < 1000 || n > 1500+meter.EthernetHeader {
				t.Errorf("the largest frame at the receiver has %d bytes; the MTU allows 1514", n)
			}
			if merged := float64(full.frames) / float64(full.buffers); merged < 10 {
				t.Errorf("%.1f segments a buffer on a full wire; GRO shall merge 10 or more", merged)
			}
			if full.frames < uint64(bytes)/1500 {
				t.Errorf("%d frames cannot have carried %d bytes", full.frames, bytes)
			}
			if full.lost() > full.frames/10_000 {
				t.Errorf("%d of %d frames were lost, more than 1 in 10,000", full.lost(), full.frames)
			}
			before = countersOf(t, tb)
			flow{network: "tcp", pace: 1e9, duration: 500 * time.Millisecond}.run(t, tb, "")
			if paced := arrived(t, tb, before); paced.lost() != 0 || paced.segments == 0 {
				t.Errorf("%d of %d segments were lost at 1 Gbit/s; none must be", paced.lost(), paced.segments)
			}
		})
	}
}

// watchFrames watches what the port sends to the second node, after it was
// cut, and returns how long the longest frame was.
func watchFrames(t *testing.T, tb *Testbed) func() int {
	t.Helper()
	most, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	must.Succeed(t, err)
	t.Cleanup(func() { most.Close() })
	// A socket filter that keeps the largest length and takes no packet.
	filter, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 0, asm.Word), // skb->len
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, most.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.JGE.Reg(asm.R1, asm.R6, "out"),
		asm.StoreMem(asm.R0, 0, asm.R6, asm.Word),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	}})
	must.Succeed(t, err)
	t.Cleanup(func() { filter.Close() })
	port := must.Get(tb.wire.space.Link(portDevice(1, 0)))(t)
	err = tb.wire.space.Do(func() error {
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, filter.FD()); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: port.Attrs().Index})
	})
	must.Succeed(t, err)
	return func() int {
		var n uint32
		must.Succeed(t, most.Lookup(uint32(0), &n))
		return int(n)
	}
}

// What is not the wire's is not timed, and what is, is.
func TestTheClockRunsWithTheTraffic(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(nil))
	if tb.wire.unmetred != "" {
		t.Skip("the wire cannot be timed here: " + tb.wire.unmetred)
	}
	seconds := func() (sum float64) {
		used := must.Get(tb.Clock())(t)
		for _, s := range used {
			sum += s
		}
		return sum
	}
	used := func(during func()) float64 {
		before := seconds()
		during()
		return seconds() - before
	}
	idle := used(func() { time.Sleep(300 * time.Millisecond) })
	before := countersOf(t, tb)
	full := used(func() { flow{network: "tcp", duration: 300 * time.Millisecond}.run(t, tb, "") })
	frames := countersOf(t, tb).since(before).frames
	// Cutting, queueing and delivering a frame takes 50 ns or more.
	if least := 50e-9 * float64(frames); frames == 0 || full < least || full < 10*idle {
		t.Errorf("the idle wire used %.6f CPU seconds in 0.3 s, and %.6f for %d frames; want a tenth of that at most, and %.6f or more", idle, full, frames, least)
	}
}

// All receive work of a node, and of its containers, is done by its own CPUs;
// so is the sender's transmit work.
func TestEachNodesPacketsAreProcessedOnItsOwnCPUs(t *testing.T) {
	must.Long(t)
	x := executor(t)
	x.countPlaces = true
	for _, profile := range profiles {
		for _, system := range []string{"raw", "bridge", "vxlan"} {
			t.Run(string(profile)+"/"+system, func(t *testing.T) {
				tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.Offload = profile }))
				if tb.wire.unmetred != "" {
					t.Skip("places cannot be counted here: " + tb.wire.unmetred)
				}
				endpoint := attach(t, tb, system)
				mtu := 1500
				if system == "vxlan" {
					mtu = 1450
				}
				prove(t, tb, endpoint, 0, 1, 4, mtu)
				checkPlaces(t, tb, tb.wire, endpoint)
			})
		}
	}
}

// checkPlaces runs a flow and asserts that every namespace's packets climbed
// the stack on its node's CPUs.
func checkPlaces(t *testing.T, tb *Testbed, w *wire, endpoint string) {
	t.Helper()
	before := places(t, tb, w, endpoint)
	after := before
	few := func() bool {
		for i, n := range tb.nodes {
			for where := range after[i] {
				own, _ := sum(after[i][where], n.cpus)
				if own0, _ := sum(before[i][where], n.cpus); own-own0 < 100 {
					return true
				}
			}
		}
		return false
	}
	for attempts := 0; few() && attempts < 20; attempts++ { // on a busy machine a flow has few packets
		flow{network: "tcp", duration: 300 * time.Millisecond}.run(t, tb, endpoint)
		after = places(t, tb, w, endpoint)
	}
	for i, n := range tb.nodes {
		for where := range after[i] {
			own, foreign := sum(after[i][where], n.cpus)
			own0, foreign0 := sum(before[i][where], n.cpus)
			own, foreign = own-own0, foreign-foreign0
			t.Logf("node %s %s: %d packets on its CPUs, %d elsewhere", n.Name(), where, own, foreign)
			if own < 100 || float64(foreign) > max(10, 0.001*float64(own)) {
				t.Errorf("node %s %s: %d packets on its own CPUs %v and %d elsewhere", n.Name(), where, own, n.cpus, foreign)
			}
		}
	}
}

// places says, for each node and its container, how many packets each CPU has
// handed to the stack there.
func places(t *testing.T, tb *Testbed, w *wire, endpoint string) []map[string]map[int]uint64 {
	t.Helper()
	var all []map[string]map[int]uint64
	for _, n := range tb.nodes {
		at := map[string]map[int]uint64{"itself": placesIn(t, w, n.space)}
		if endpoint != "" {
			c := must.Get(space.Open(n.space.Name + "-" + endpoint))(t)
			at["container"] = placesIn(t, w, c)
			c.Close()
		}
		all = append(all, at)
	}
	return all
}

func placesIn(t *testing.T, w *wire, s *space.Space) map[int]uint64 {
	t.Helper()
	inode := must.Get(s.Inode())(t)
	var perCPU []uint64
	if err := w.objects.Places.Lookup(inode, &perCPU); err != nil {
		return nil // nothing yet
	}
	m := map[int]uint64{}
	for cpu, n := range perCPU {
		m[cpu] = n
	}
	return m
}

// On a plain veth pair, too, each side's work is on its own CPUs.
func TestEachSideOfAPlainVethPairUsesItsOwnCPUs(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.Kind = suite.Veth }))
	counter := &wire{space: tb.nodes[0].space} // for its programs only
	must.Succeed(t, counter.load(fabric(nil), true))
	defer counter.objects.Close()
	counter.startClock(suite.Fabric{Offload: suite.OffloadTCP})
	defer counter.stopClock()
	if counter.unmetred != "" {
		t.Skip("places cannot be counted here: " + counter.unmetred)
	}
	prove(t, tb, "", 0, 1, 4, 1500)
	checkPlaces(t, tb, counter, "")
}
