package testbedtest

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/meter"
	"windtunnel/lab/system"
)

const fabricDevice = "fab0"

// PID is the process ID of node a's agent. The next nodes have the next numbers.
const PID = 1000

// pipe is the agent's end of the connection to the engine. If stopped is set, it
// discards all data that arrives.
type pipe struct {
	net.Conn
	stopped atomic.Bool
}

func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, err := p.Conn.Read(b)
		if err != nil || !p.stopped.Load() {
			return n, err
		}
	}
}

// fakeAgent is an agent without a real node. Its exported methods are the methods of
// agent.Service that the engine calls.
type fakeAgent struct {
	node    *node
	testbed *Testbed
	hello   agent.Hello
	ahead   time.Duration
	began   time.Time

	mu        sync.Mutex
	processes []*process
	metering  agent.MeterArgs
	meteredAt time.Time
}

// do records a call of the agent and calls the executor's hook.
func (a *fakeAgent) do(name string, args any) error {
	return a.testbed.executor.do(Operation{a.testbed.number, a.node.name, name, args})
}

func (a *fakeAgent) Ping(struct{}, *struct{}) error { return nil }

func (a *fakeAgent) Hello(_ struct{}, reply *agent.Hello) error {
	*reply = a.hello
	return a.do("Hello", nil)
}

func (a *fakeAgent) Clock(_ struct{}, reply *int64) (err error) {
	*reply, err = meter.Now()
	*reply += int64(a.ahead)
	return err
}

func (a *fakeAgent) Identity(_ struct{}, reply *agent.Identity) error {
	*reply = agent.Identity{PID: PID + a.node.index, Namespaces: []uint32{uint32(2000 + a.node.index)}}
	return a.do("Identity", nil)
}

func (a *fakeAgent) MachineWatch(args agent.WatchArgs, _ *agent.WatchReply) error {
	return a.do("MachineWatch", args)
}

func (a *fakeAgent) Attach(args agent.AttachArgs, reply *agent.Attached) error {
	reply.Devices = []system.Device{{Name: fabricDevice, Role: meter.RoleFabric}}
	return a.do("Attach", args)
}

func (a *fakeAgent) Detach(struct{}, *struct{}) error { return a.do("Detach", nil) }

// Change takes no time. The arguments of the operation are false for a change, and true for its reverse.
func (a *fakeAgent) Change(undo bool, took *time.Duration) error {
	*took = time.Millisecond
	return a.do("Change", undo)
}

func (a *fakeAgent) LastWords(struct{}, *string) error { return a.do("LastWords", nil) }

func (a *fakeAgent) AnswerProof(args agent.ReachArgs, _ *struct{}) error {
	return a.do("AnswerProof", args)
}

func (a *fakeAgent) Reach(args agent.ReachArgs, _ *struct{}) error { return a.do("Reach", args) }

func (a *fakeAgent) Listening(args agent.ListenArgs, reply *bool) error {
	*reply = true
	return a.do("Listening", args)
}

func (a *fakeAgent) MeterStart(args agent.MeterArgs, _ *struct{}) error {
	a.mu.Lock()
	a.metering, a.meteredAt = args, time.Now()
	a.mu.Unlock()
	return a.do("MeterStart", args)
}

func (a *fakeAgent) MeterTrack(args agent.TrackArgs, _ *struct{}) error {
	return a.do("MeterTrack", args)
}

func (a *fakeAgent) MeterGlance(_ struct{}, reply *meter.Light) error {
	*reply = a.light(time.Now())
	return a.do("MeterGlance", nil)
}

func (a *fakeAgent) MeterStop(_ struct{}, reply *[]meter.Light) error {
	for t := a.meteredAt; a.metering.Every > 0 && !t.After(time.Now()); t = t.Add(a.metering.Every) {
		*reply = append(*reply, a.light(t))
	}
	return a.do("MeterStop", nil)
}

func (a *fakeAgent) MeterRead(_ struct{}, reply *agent.NodeReading) error {
	now := time.Now()
	r := &reply.Node
	r.Node, r.Mono, r.CPUs = a.node.name, a.mono(now), map[int]meter.CPUTimes{}
	r.Wall = r.Mono
	for _, c := range a.node.cpus {
		idle := a.idle(now)
		r.CPUs[c] = meter.CPUTimes{Idle: uint64(idle / 1e7), FineIdle: idle}
	}
	d := meter.DeviceReading{Name: fabricDevice, Role: meter.RoleFabric, Traffic: a.received(now)}
	d.RxBare = d.RxPackets
	r.Namespaces = []meter.NamespaceReading{{Devices: []meter.DeviceReading{d}}}
	return a.do("MeterRead", nil)
}

// light returns the reading for the series at t.
func (a *fakeAgent) light(t time.Time) meter.Light {
	l := meter.Light{Mono: a.mono(t), Traffic: []meter.Traffic{a.received(t)}}
	for range a.node.cpus {
		l.Idle, l.Steal = append(l.Idle, a.idle(t)), append(l.Steal, 0)
	}
	return l
}

// mono returns the node's CLOCK_MONOTONIC at t, ns. It adds package time's clock to
// machineStart, because testing/synctest does not simulate CLOCK_MONOTONIC.
func (a *fakeAgent) mono(t time.Time) int64 {
	return machineStart() + int64(t.Sub(a.began)+a.ahead)
}

// machineStart returns the machine's CLOCK_MONOTONIC at the first call, ns.
var machineStart = sync.OnceValue(func() int64 {
	now, err := meter.Now()
	if err != nil {
		panic(fmt.Sprintf("testbedtest: read CLOCK_MONOTONIC: %v", err))
	}
	return now
})

// Busy is the share of time in which each CPU of a node is not idle, 0..1.
const Busy = 0.5

// idle returns the idle time of a CPU until t, ns.
func (a *fakeAgent) idle(t time.Time) int64 {
	return int64(time.Hour) + int64((1-Busy)*float64(t.Sub(a.began)))
}
