package udptun

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"windtunnel/internal/stopsignal"
)

// Name is the name of the command in the windtunnel program.
const Name = "udp-tun"

// Ready is a part of the command's first output line. The command prints this line
// when the tunnel carries packets.
const Ready = `"event":"ready"`

const usage = `usage: windtunnel udp-tun --device NAME --listen ADDRESS:PORT --route PREFIX=ADDRESS:PORT [--route …] [--batch N]
Carries the IP packets of a TUN device to peers, in UDP datagrams. When the first
line says that the tunnel is ready, set the device up and add routes to it.
On SIGUSR1 and at its end the command prints counters as JSON.
`

// Command is the program: it carries packets until SIGINT, SIGTERM or SIGHUP and
// returns the exit status.
func Command(args []string, stdout, stderr io.Writer) int {
	c, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "windtunnel udp-tun: %v\n%s", err, usage)
		return 2
	}
	if err := carry(c, stdout); err != nil {
		fmt.Fprintln(stderr, "windtunnel udp-tun:", err)
		return 1
	}
	return 0
}

func parseFlags(args []string, stderr io.Writer) (Config, error) {
	var c Config
	flags := flag.NewFlagSet("udp-tun", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error, once
	flags.StringVar(&c.Device, "device", "", "")
	flags.IntVar(&c.Batch, "batch", 1, "")
	flags.Func("listen", "", func(text string) (err error) {
		c.Listen, err = netip.ParseAddrPort(text)
		return err
	})
	flags.Func("route", "", func(text string) error {
		r, err := ParseRoute(text)
		c.Routes = append(c.Routes, r)
		return err
	})
	// Package flag would print the usage at every error. Here only help prints it.
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, usage)
		}
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	if c.Device == "" || !c.Listen.IsValid() || len(c.Routes) == 0 {
		return c, errors.New("--device, --listen and at least one --route are required")
	}
	return c, nil
}

// carry runs the tunnel until a signal ends it.
func carry(c Config, stdout io.Writer) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append(stopsignal.List(), syscall.SIGUSR1)...)
	defer signal.Stop(signals)
	t, err := Open(c)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(stdout)
	if err := lines.Encode(map[string]any{"event": "ready", "device": c.Device, "listen": c.Listen, "batch": c.Batch}); err != nil {
		return errors.Join(fmt.Errorf("print that the tunnel is ready: %w", err), t.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- t.Run() }()
	for {
		select {
		case err := <-ended:
			return errors.Join(err, t.report(lines))
		case s := <-signals:
			if s != syscall.SIGUSR1 {
				return errors.Join(t.Close(), <-ended, t.report(lines))
			}
			if err := t.report(lines); err != nil {
				return errors.Join(err, t.Close(), <-ended)
			}
		}
	}
}

// report prints the counters as one line.
func (t *Tunnel) report(lines *json.Encoder) error {
	err := lines.Encode(struct {
		Event string `json:"event"`
		Counters
	}{"counters", t.Counters()})
	if err != nil {
		return fmt.Errorf("print the tunnel's counters: %w", err)
	}
	return nil
}
