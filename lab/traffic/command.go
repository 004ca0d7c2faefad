package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"strings"
	"sync"
	"time"

	"windtunnel/internal/stopsignal"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

const workerUsage = `usage: windtunnel traffic server -listen ADDRESS:PORT [-once] [-wait TIME]
       windtunnel traffic client -connect ADDRESS:PORT [flags]
`

// Worker is the lab's interface to the generator. args are the arguments after
// "windtunnel traffic". It returns the exit code.
//
// The server prints a line "ready" when it listens, and for each run one line
// of JSON (a Result). The client prints one line of JSON with the figures of both ends.
// All other output goes to stderr.
func Worker(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, workerUsage)
		return 2
	}
	var err error
	switch args[0] {
	case "server":
		err = serverCommand(args[1:], stdout, stderr)
	case "client":
		err = clientCommand(args[1:], stdout, stderr)
	default:
		err = usageError{fmt.Errorf("%q is neither server nor client", args[0])}
	}
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "windtunnel traffic: %v\n%s", err, workerUsage)
		return 2
	}
	fmt.Fprintf(stderr, "windtunnel traffic %s: %v\n", args[0], err)
	return 1
}

// usageError is an error of the command line.
type usageError struct{ error }

func serverCommand(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.SetOutput(stderr)
	at := flags.String("listen", "", "`address:port` of the control connection; data uses the 15 ports after it")
	once := flags.Bool("once", false, "end after one run")
	wait := flags.Duration("wait", 0, "how long to wait for a client; 0 = for ever")
	if err := parse(flags, args); err != nil {
		return err
	}
	addr, err := endpoint("-listen", *at)
	if err != nil {
		return err
	}
	if addr.Port() > 65535-15 {
		return usageError{fmt.Errorf("-listen %v: the 15 ports after it are needed too; choose a port up to %d", addr, 65535-15)}
	}
	stop, release := onInterrupt()
	defer release()
	return (&server{at: addr, wait: *wait, once: *once, stdout: stdout, stderr: stderr, stop: stop}).run()
}

func clientCommand(args []string, stdout, stderr io.Writer) error {
	to, spec, err := parseClient(args, stderr)
	if err != nil {
		return err
	}
	stop, release := onInterrupt()
	defer release()
	result, err := (&client{to: to, spec: spec, stop: stop, stderr: stderr}).run()
	if err != nil {
		return err
	}
	return printLine(stdout, result)
}

// parseClient reads the client's flags.
func parseClient(args []string, stderr io.Writer) (to netip.AddrPort, s Spec, err error) {
	w := &s.Workload
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(stderr)
	connect := flags.String("connect", "", "`address:port` of the server")
	kind := flags.String("kind", string(suite.TCPStream), "tcp_stream, tcp_rr, tcp_crr, udp_stream or udp_rr")
	direction := flags.String("direction", string(suite.Forward), "of streams, and of the load beside tcp_rr: forward, reverse or both")
	flags.IntVar(&w.Load, "load", 0, "TCP streams in each direction beside tcp_rr")
	flags.IntVar(&w.Streams, "streams", 1, "connections in each direction, each on its own thread")
	w.Buffer = 128 << 10
	size(flags, &w.Buffer, "buffer", "`bytes` of a send call, or of a datagram")
	flags.BoolVar(&w.IMIX, "imix", false, "send datagrams of three sizes: of 12, 7 have 18 bytes, 4 have 548 and 1 has 1400")
	size(flags, &w.SendBuffer, "sndbuf", "SO_SNDBUF in `bytes`; 0 = the kernel's autotuning")
	size(flags, &w.ReceiveBuffer, "rcvbuf", "SO_RCVBUF in `bytes`; 0 = the kernel's autotuning")
	flags.BoolVar(&w.NoDelay, "nodelay", false, "set TCP_NODELAY")
	flags.BoolVar(&w.PacketPerSend, "packet-per-send", false, "end a TCP segment with each send call of a stream")
	flags.Func("dscp", "DSCP of the packets that both ends send: a `name` such as EF, or a number", func(text string) (err error) {
		w.DSCP, err = suite.ParseDSCP(text)
		return err
	})
	flags.BoolVar(&w.Sendfile, "sendfile", false, "send from the page cache")
	w.Request, w.Response = 1, 1
	size(flags, &w.Request, "request", "`bytes` of a request")
	size(flags, &w.Response, "response", "`bytes` of a response")
	flags.Func("rate", "payload `bits/s` of all streams in one direction; 0 = as fast as possible", func(text string) (err error) {
		w.Rate, err = units.ParseRate(text)
		return err
	})
	flags.Float64Var(&w.Loss, "loss", 0, "find the highest rate at which at most this `fraction` of the datagrams is lost; 0 = send at -rate")
	flags.Float64Var(&w.Pace, "pace", 0, "send this `number` of requests per second, whether or not responses are late; 0 = one after another")
	flags.Float64Var(&w.OfCapacity, "of-capacity", 0, "send this `fraction` of the requests per second that go through one after another")
	flags.Float64Var(&w.ReceiverWork, "work", 0, "CPU time that the receiver of a TCP stream spends on each byte, `ns`")
	flags.DurationVar(&s.Timing.Warmup, "warmup", 0, "`time` before the window")
	flags.DurationVar(&s.Timing.Duration, "duration", 10*time.Second, "length of the window")
	flags.DurationVar(&s.Timing.Cooldown, "cooldown", 0, "`time` after the window")
	if err := parse(flags, args); err != nil {
		return to, s, err
	}
	w.Kind, w.Direction = suite.Kind(*kind), suite.Direction(*direction)
	if to, err = endpoint("-connect", *connect); err != nil {
		return to, s, err
	}
	w.IPVersion = 6
	if to.Addr().Is4() {
		w.IPVersion = 4
	}
	if err := s.Check(); err != nil {
		return to, s, usageError{err}
	}
	if w.Loss > 0 && w.Rate > 0 || w.OfCapacity > 0 && w.Pace > 0 {
		return to, s, usageError{errors.New("-loss finds the -rate, and -of-capacity the -pace: give one of the two")}
	}
	return to, s, nil
}

// size defines a flag of bytes with the field's suffixes (128k, 2M).
func size(flags *flag.FlagSet, to *int64, name, usage string) {
	flags.Func(name, usage, func(text string) (err error) {
		*to, err = units.ParseBytes(text)
		return err
	})
}

func parse(flags *flag.FlagSet, args []string) error {
	out := flags.Output()
	flags.SetOutput(io.Discard) // Worker prints the error, once
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(out)
			fmt.Fprint(out, workerUsage)
			flags.PrintDefaults()
			return err
		}
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("unknown argument %q; use flags, for example -connect 10.0.0.2:5001", strings.Join(flags.Args(), " "))}
	}
	return nil
}

func endpoint(flag, text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, usageError{fmt.Errorf("%s ADDRESS:PORT is missing", flag)}
	}
	a, err := netip.ParseAddrPort(text)
	if err != nil || a.Port() == 0 {
		return netip.AddrPort{}, usageError{fmt.Errorf("%s %q is not an address and a port; write for example 10.0.0.2:5001 or [fd00::2]:5001", flag, text)}
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

// printLine prints a result as one line of JSON.
func printLine(out io.Writer, result any) error {
	line, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// onInterrupt returns a channel that is closed at the first SIGINT, SIGTERM or SIGHUP. The
// run then ends and prints its figures. The second signal ends the program at once.
func onInterrupt() (stop <-chan struct{}, release func()) {
	ctx, release := signal.NotifyContext(context.Background(), stopsignal.List()...)
	context.AfterFunc(ctx, release)
	return ctx.Done(), release
}

// first returns a channel that is closed when one of the given channels is closed. release
// ends the wait.
func first(others ...<-chan struct{}) (any <-chan struct{}, release func()) {
	out, released := make(chan struct{}), make(chan struct{})
	var once sync.Once
	for _, ch := range others {
		go func() {
			select {
			case <-ch:
				once.Do(func() { close(out) })
			case <-released:
			}
		}()
	}
	return out, func() { close(released) }
}
