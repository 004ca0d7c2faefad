package traffic

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// options has the flags of an NTttcp command line.
type options struct {
	sender   bool
	mappings []mapping
	length   int   // -l: bytes of a buffer or datagram
	buffers  int64 // -n: buffers of each thread; with timed, the number that NTttcp prints
	timed    bool  // -t without -n
	runTime  time.Duration
	limit    time.Duration // longest duration of a run with -n
	warmup   time.Duration
	cooldown time.Duration
	send     int // -sb; −1 = the kernel's autotuning
	receive  int // -rb; −1 likewise
	port     int
	async    int // -a; 0 where it is not given
	noDelay  bool
	udp      bool
	noSync   bool
	waitAll  bool
	verbose  bool
	ipv6     bool
	hidden   bool          // -hpt: no lines for threads
	wait     time.Duration // -to; 0 = for ever
	nic      string        // -nic: the sender's own address
	pace     int64         // -thr: KB/s of each thread; 0 = none
	xml      string        // file; empty where text is printed
	json     bool          // -json
	notes    []string      // notes about flags without effect here
}

// mapping is one "threads,processor,receiver" of -m.
type mapping struct {
	threads  int
	cpu      int // −1 for *
	receiver string
}

const (
	defaultPort     = 5001
	defaultBuffers  = 20 << 10
	defaultLength   = 64 << 10
	defaultDatagram = 128
	defaultNLimit   = 3 * time.Hour
	defaultWait     = 600 * time.Second
	defaultXML      = "xml.txt"
	maxMappings     = 512
	// endless is the buffer count that NTttcp prints for a timed run.
	endless = math.MaxInt64
)

// noMeaning lists NTttcp's flags that select a Windows interface for the same work. Blocking
// sockets on Linux have only one, so these flags are accepted without effect.
var noMeaning = map[string]string{
	"-w":   "WSARecv/WSASend: send and recv are used",
	"-nsb": "no stdio buffer: output is not buffered anyway",
	"-cfi": "CPU from idle cycles: /proc/stat is read",
}

// notOffered lists NTttcp's flags that would change the traffic and are not available here,
// with their numbers of arguments.
var notOffered = map[string]string{
	"-sp": "data ports told over a connection", "-rt": "round trips (use windtunnel's tcp_rr workload)", "-d": "verification of the data",
	"-na": "NUMA nodes (pin with -m threads,cpu,ip)", "-uso": "UDP segmentation offload", "-uro": "UDP receive coalescing",
	"-uc": "unconnected UDP sockets", "-x": "TransmitPackets", "-hv": "Hyper-V sockets", "-brn": "CPU burning",
	"-lm": "latency of calls (use windtunnel's tcp_rr workload)", "-icp": "I/O completion ports", "-es": "EStats", "-sam": "sampling",
	"-qos": "QOS", "-jm": "a jitter file", "-ps": "packet spacing (use -thr)",
}

// parseNTttcp reads NTttcp's flags, in upper or lower case. If a flag is given twice, the
// last one is used.
func parseNTttcp(args []string) (options, error) {
	o := options{
		port: defaultPort, send: -1, receive: -1, buffers: defaultBuffers,
		limit: defaultNLimit, wait: defaultWait,
	}
	p := &ntttcpParser{options: &o, rest: args}
	for len(p.rest) > 0 {
		if err := p.flag(); err != nil {
			return o, err
		}
	}
	return o, p.complete()
}

type ntttcpParser struct {
	*options
	rest      []string
	role, byN bool
	lengthSet bool
	time      time.Duration
}

// flag reads one flag and its arguments.
func (p *ntttcpParser) flag() error {
	given := p.rest[0]
	p.rest = p.rest[1:]
	name := strings.ToLower(given)
	if note, ok := noMeaning[name]; ok {
		p.notes = append(p.notes, name+" is "+note)
		return nil
	}
	if what, ok := notOffered[name]; ok {
		return fmt.Errorf("%s (%s) is NTttcp's, but not offered here", given, what)
	}
	if set, ok := p.switches()[name]; ok {
		set()
		return nil
	}
	if read, ok := p.values()[name]; ok {
		return read(given)
	}
	switch name {
	case "-m":
		return p.mapping()
	case "-xml":
		p.xml = p.optional(defaultXML)
		return nil
	case "-a":
		return p.outstanding(given)
	}
	return fmt.Errorf("%q is not a flag of NTttcp", given)
}

func (p *ntttcpParser) switches() map[string]func() {
	return map[string]func(){
		"-s":    func() { p.sender, p.role = true, true },
		"-r":    func() { p.sender, p.role = false, true },
		"-u":    func() { p.udp = true },
		"-ndl":  func() { p.noDelay = true },
		"-ns":   func() { p.noSync = true },
		"-wa":   func() { p.waitAll = true },
		"-v":    func() { p.verbose = true },
		"-hpt":  func() { p.hidden = true },
		"-6":    func() { p.ipv6 = true },
		"-4":    func() { p.ipv6 = false },
		"-json": func() { p.json = true },
	}
}

func (p *ntttcpParser) values() map[string]func(flag string) error {
	return map[string]func(string) error{
		"-l": func(f string) error {
			p.lengthSet = true
			return p.whole(f, 1, maxBuffer, func(v int64) { p.length = int(v) })
		},
		"-n": func(f string) error {
			p.byN = true
			return p.whole(f, 1, math.MaxInt64/maxBuffer, func(v int64) { p.buffers = v })
		},
		"-sb":  func(f string) error { return p.whole(f, -1, maxSocket, func(v int64) { p.send = int(v) }) },
		"-rb":  func(f string) error { return p.whole(f, -1, maxSocket, func(v int64) { p.receive = int(v) }) },
		"-p":   func(f string) error { return p.whole(f, 2, 65535, func(v int64) { p.port = int(v) }) },
		"-t":   func(f string) error { return p.seconds(f, 1, &p.time) },
		"-wu":  func(f string) error { return p.seconds(f, 0, &p.warmup) },
		"-cd":  func(f string) error { return p.seconds(f, 0, &p.cooldown) },
		"-thr": func(f string) error { return p.whole(f, 1, maxRate/8192, func(v int64) { p.pace = v }) },
		"-to": func(f string) error {
			return p.whole(f, 0, math.MaxInt32, func(v int64) { p.wait = time.Duration(v) * time.Millisecond })
		},
		"-nic": func(f string) (err error) { p.nic, err = p.argument(f); return err },
	}
}

func (p *ntttcpParser) argument(flag string) (string, error) {
	if len(p.rest) == 0 {
		return "", fmt.Errorf("%s needs an argument", flag)
	}
	a := p.rest[0]
	p.rest = p.rest[1:]
	return a, nil
}

// optional returns the next argument unless it is a flag.
func (p *ntttcpParser) optional(otherwise string) string {
	if len(p.rest) == 0 || strings.HasPrefix(p.rest[0], "-") {
		return otherwise
	}
	a, _ := p.argument("")
	return a
}

// whole reads a number with NTttcp's units: k and M are 2^10 and 2^20. A
// negative size of a socket buffer means the kernel's autotuning.
func (p *ntttcpParser) whole(flag string, low, high int64, set func(int64)) error {
	text, err := p.argument(flag)
	if err != nil {
		return err
	}
	v, err := memoryUnit(text)
	if err == nil && low == -1 {
		v = max(v, -1)
	}
	if err != nil || v < low || v > high {
		return fmt.Errorf("%s %q is not a whole number from %d to %d (k and M are 1024 and 1048576)", flag, text, low, high)
	}
	set(v)
	return nil
}

func memoryUnit(text string) (int64, error) {
	unit := int64(1)
	digits := text
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 'k', 'K':
			unit, digits = 1<<10, text[:n-1]
		case 'm', 'M':
			unit, digits = 1<<20, text[:n-1]
		}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, err
	}
	if v > math.MaxInt64/unit || v < math.MinInt64/unit {
		return 0, strconv.ErrRange
	}
	return v * unit, nil
}

func (p *ntttcpParser) seconds(flag string, low int64, to *time.Duration) error {
	return p.whole(flag, low, int64(maxTime/time.Second), func(v int64) { *to = time.Duration(v) * time.Second })
}

// outstanding reads -a, whose number is optional. With -a NTttcp sets the send buffer to 0,
// so Windows does not copy into the kernel. Linux has no such mode, so the kernel's
// autotuning stays on.
func (p *ntttcpParser) outstanding(flag string) error {
	p.async = 2
	p.notes = append(p.notes, "-a (outstanding I/O) has no equal with blocking sockets: each thread has one call in flight")
	if len(p.rest) == 0 || strings.HasPrefix(p.rest[0], "-") {
		return nil
	}
	return p.whole(flag, 1, 1<<16, func(v int64) { p.async = int(v) })
}

// mapping reads -m and every mapping that follows it.
func (p *ntttcpParser) mapping() error {
	if len(p.mappings) > 0 {
		return fmt.Errorf("-m is there twice; give all mappings after one -m")
	}
	for len(p.rest) > 0 && !strings.HasPrefix(p.rest[0], "-") {
		text, _ := p.argument("-m")
		m, err := parseMapping(text)
		if err != nil {
			return err
		}
		if p.mappings = append(p.mappings, m); len(p.mappings) > maxMappings {
			return fmt.Errorf("-m has more than %d mappings", maxMappings)
		}
	}
	if len(p.mappings) == 0 {
		return fmt.Errorf("-m needs a mapping such as 1,*,10.0.1.4")
	}
	return nil
}

func parseMapping(text string) (mapping, error) {
	wrong := func(what string) (mapping, error) {
		return mapping{}, fmt.Errorf("-m %q: %s; a mapping is THREADS,PROCESSOR,RECEIVER such as 4,*,10.0.1.4", text, what)
	}
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return wrong("it has not three parts")
	}
	m := mapping{cpu: -1, receiver: parts[2]}
	var err error
	if m.threads, err = strconv.Atoi(parts[0]); err != nil || m.threads < 1 || m.threads > maxStreams {
		return wrong(fmt.Sprintf("the number of threads must lie between 1 and %d", maxStreams))
	}
	if parts[1] != "*" {
		if m.cpu, err = strconv.Atoi(parts[1]); err != nil || m.cpu < 0 || m.cpu >= 1024 {
			return wrong("the processor is neither a number nor *")
		}
	}
	if m.receiver == "" {
		return wrong("the receiver's address is missing")
	}
	return m, nil
}

// complete sets the options that depend on several flags.
func (p *ntttcpParser) complete() error {
	if !p.role {
		return fmt.Errorf("neither -s (sender) nor -r (receiver) is given")
	}
	if len(p.mappings) == 0 {
		return fmt.Errorf("-m THREADS,PROCESSOR,RECEIVER is missing")
	}
	if p.nic != "" && !p.sender {
		return fmt.Errorf("-nic chooses the sender's address; a receiver has it in -m")
	}
	if p.pace > 0 && !p.sender {
		return fmt.Errorf("-thr paces a sender, not a receiver")
	}
	if !p.lengthSet {
		p.length = defaultLength
		if p.udp {
			p.length = defaultDatagram
		}
	}
	if p.udp && p.length > maxDatagram {
		return fmt.Errorf("-l %d: a datagram holds at most %d bytes", p.length, maxDatagram)
	}
	if last := p.port + p.threads() - 1; last > 65535 {
		return fmt.Errorf("-p %d: %d threads need ports up to %d, and there are 65535", p.port, p.threads(), last)
	}
	p.duration()
	return nil
}

// duration combines -t and -n. With -n, -t is the longest duration of the run, and the run
// has no warm-up and no cool-down.
func (p *ntttcpParser) duration() {
	if p.byN || p.time == 0 {
		p.warmup, p.cooldown = 0, 0
		if p.time > 0 {
			p.limit = p.time
		}
		return
	}
	p.timed, p.runTime, p.buffers = true, p.time, endless
}

func (o *options) threads() (n int) {
	for _, m := range o.mappings {
		n += m.threads
	}
	return n
}
