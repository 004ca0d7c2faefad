package testbedtest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/meter"
)

// Program describes the behaviour of a fake process.
type Program struct {
	Missing bool          // the program is not installed
	Prints  string        // line of output at the start
	Wakes   time.Duration // time from the start until Prints
	Lasts   time.Duration // run time; negative: until the traffic ends
	Ends    string        // line of output at the end
	Exit    int           // exit status
	Sends   time.Duration // time in which its traffic crosses the fabric
}

// Rate is the payload that crosses the fabric while a program sends, bit/s.
const Rate = 1e9

// Generator returns the Program that behaves like the lab's traffic generator with
// these arguments.
func Generator(argv []string) Program { return generator(argv, Rate) }

// generator is Generator with another rate, bit/s.
func generator(argv []string, rate float64) Program {
	option := func(name string) time.Duration {
		i := slices.Index(argv, name)
		if i < 0 || i+1 == len(argv) {
			return 0
		}
		d, _ := time.ParseDuration(argv[i+1])
		return d
	}
	if !slices.Contains(argv, "client") {
		return Program{Prints: "ready", Lasts: -1}
	}
	measured := option("-duration")
	total := option("-warmup") + measured + option("-cooldown")
	flow := func(role string) string {
		return fmt.Sprintf(`{"seconds":%g,"flows":[{"direction":"forward","role":%q,"seconds":%g,"bps":%g}]}`, measured.Seconds(), role, measured.Seconds(), rate)
	}
	return Program{Prints: "begun", Lasts: total, Sends: total, Ends: fmt.Sprintf(
		`{"windtunnel_traffic":1,"spec":{"workload":{"kind":"tcp_stream"},"timing":{"duration_ns":%d}},"local":%s,"remote":%s}`, measured, flow("send"), flow("receive"))}
}

// traffic is the time in which payload crosses the fabric from node a to node b.
type traffic struct {
	mu         sync.Mutex
	begun, end time.Time
}

// bits returns the payload that crosses the fabric while a program sends, bit/s.
func (tb *Testbed) bits() float64 { return cmp.Or(tb.rate, Rate) }

// received returns the packets and bytes that the node has received until then.
func (a *fakeAgent) received(then time.Time) (t meter.Traffic) {
	f := &a.testbed.traffic
	f.mu.Lock()
	defer f.mu.Unlock()
	if then.After(f.end) {
		then = f.end
	}
	if a.node.index == 0 || then.Before(f.begun) {
		return t
	}
	const segment, headers = 1448, 52
	payload := a.testbed.bits() / 8 * then.Sub(f.begun).Seconds()
	t.RxPackets = uint64(payload / segment)
	t.RxBytes = uint64(payload) + headers*t.RxPackets
	return t
}

// process is a running program.
type process struct {
	Program
	began time.Time
	ended chan struct{} // closed by Signal
}

func (a *fakeAgent) Start(args agent.StartArgs, reply *agent.Started) error {
	if err := a.do("Start", args); err != nil {
		return err
	}
	program := a.testbed.executor.Program
	if program == nil {
		program = func(argv []string) Program { return generator(argv, a.testbed.bits()) }
	}
	p := &process{Program: program(args.Argv), began: time.Now(), ended: make(chan struct{})}
	if p.Missing {
		reply.Missing = "not found in PATH"
		return nil
	}
	if p.Sends > 0 {
		f := &a.testbed.traffic
		f.mu.Lock()
		f.begun, f.end = p.began, p.began.Add(p.Sends)
		f.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.processes = append(a.processes, p)
	reply.Process = len(a.processes) - 1
	return nil
}

func (a *fakeAgent) process(i int) *process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.processes[i]
}

// left returns the time until the process ends by itself.
func (a *fakeAgent) left(p *process) time.Duration {
	f := &a.testbed.traffic
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case p.Lasts >= 0:
		return time.Until(p.began.Add(p.Lasts))
	case f.end.Before(p.began):
		return time.Hour
	}
	return time.Until(f.end)
}

// next returns the time until the process prints its first line, or until it ends.
func (a *fakeAgent) next(p *process) time.Duration {
	if wakes := time.Until(p.began.Add(p.Wakes)); wakes > 0 {
		return wakes
	}
	return a.left(p)
}

// lines returns the lines that the process has printed so far. over reports whether
// the process has ended.
func (a *fakeAgent) lines(p *process) (list []agent.Line, over bool) {
	if p.Prints != "" && time.Since(p.began) >= p.Wakes {
		list = append(list, agent.Line{Text: p.Prints})
	}
	select {
	case <-p.ended:
		over = true
	default:
		over = a.left(p) <= 0
	}
	if over && p.Ends != "" {
		list = append(list, agent.Line{Text: p.Ends})
	}
	return list, over
}

func (a *fakeAgent) Follow(args agent.FollowArgs, reply *agent.Event) error {
	p := a.process(args.Process)
	if lines, over := a.lines(p); len(lines) <= args.From && !over {
		select {
		case <-p.ended:
		case <-time.After(min(max(args.Wait, 0), a.next(p))):
		}
	}
	lines, over := a.lines(p)
	*reply = agent.Event{Lines: lines[min(args.From, len(lines)):], Next: len(lines), Exited: over}
	if over {
		reply.Exit = p.Exit
	}
	return nil
}

func (a *fakeAgent) Output(process int, reply *agent.OutputReply) error {
	lines, _ := a.lines(a.process(process))
	for _, l := range lines {
		reply.Stdout += l.Text + "\n"
	}
	return nil
}

func (a *fakeAgent) Signal(args agent.SignalArgs, _ *struct{}) error {
	p := a.process(args.Process)
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-p.ended:
	default:
		close(p.ended)
	}
	return a.do("Signal", args)
}
