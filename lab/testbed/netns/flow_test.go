package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
)

// flow is one-way traffic between two endpoints of a testbed.
type flow struct {
	network  string // tcp or udp
	pace     int    // bits per second; 0 = as fast as possible
	duration time.Duration
}

// playTraffic is what the test binary does at an endpoint: it takes the
// flow's parameters from its environment.
func playTraffic(role string) error {
	network, addr := os.Getenv("WT_TEST_NETWORK"), os.Getenv("WT_TEST_ADDRESS")
	pace, err := strconv.Atoi(os.Getenv("WT_TEST_PACE"))
	if err != nil {
		return err
	}
	duration, err := time.ParseDuration(os.Getenv("WT_TEST_DURATION"))
	if err != nil {
		return err
	}
	if role == "sink" {
		return sink(network, addr)
	}
	return source(network, addr, pace, duration)
}

func sink(network, addr string) error {
	var c io.Reader
	if network == "udp" {
		p, err := net.ListenPacket("udp", addr)
		if err != nil {
			return err
		}
		p.SetReadDeadline(time.Now().Add(2 * time.Minute))
		c = p.(*net.UDPConn)
	} else {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		if c, err = l.Accept(); err != nil {
			return err
		}
	}
	buf := make([]byte, 128<<10)
	total := 0
	for {
		n, err := c.Read(buf)
		total += n
		if errors.Is(err, io.EOF) {
			fmt.Println(total)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func source(network, addr string, pace int, duration time.Duration) error {
	c, err := net.Dial(network, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	size := 128 << 10
	if network == "udp" {
		size = 1400
	}
	if pace > 0 && network == "tcp" {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		var set error
		raw.Control(func(fd uintptr) {
			set = unix.SetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, uint64(pace)/8)
		})
		if set != nil {
			return set
		}
	}
	buf := make([]byte, size)
	start := time.Now()
	for sent := 0; time.Since(start) < duration; {
		if network == "udp" && pace > 0 && float64(sent*8) > float64(pace)*time.Since(start).Seconds() {
			time.Sleep(time.Millisecond)
			continue
		}
		n, err := c.Write(buf)
		if err != nil {
			return err
		}
		sent += n
	}
	return nil
}

func testContainer(node int) agent.Container {
	a := netip.AddrFrom4([4]byte{10, 31, byte(node), 1})
	return agent.Container{
		Name: "c1", V4: netip.PrefixFrom(a, 16),
		V6:  netip.MustParsePrefix(fmt.Sprintf("fd31:c::%d:1/64", node+1)),
		MAC: net.HardwareAddr{2, 'w', 't', byte(node), 0, 1},
	}
}

func address(tb *Testbed, endpoint string, node, version int) netip.Addr {
	if endpoint == "" {
		return tb.nodes[node].Addr(version)
	}
	c := testContainer(node)
	if version == 6 {
		return c.V6.Addr()
	}
	return c.V4.Addr()
}

// run sends a flow from the first node to the second and returns the bytes
// that arrived (TCP only).
func (f flow) run(t *testing.T, tb *Testbed, endpoint string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), f.duration+2*time.Minute)
	defer cancel()
	env := func(addr string) []string {
		return []string{"WT_TEST_NETWORK=" + f.network, "WT_TEST_ADDRESS=" + addr, "WT_TEST_PACE=" + strconv.Itoa(f.pace), "WT_TEST_DURATION=" + f.duration.String()}
	}
	receiver, sender := tb.nodes[1].agent, tb.nodes[0].agent
	in, err := receiver.Start(ctx, agent.StartArgs{Endpoint: endpoint, Argv: self("sink"), Env: env(":7000")})
	must.Succeed(t, err)
	ok, err := receiver.Listening(ctx, agent.ListenArgs{Endpoint: endpoint, Port: 7000, UDP: f.network == "udp", Wait: time.Minute})
	if err != nil || !ok {
		t.Fatalf("the sink does not listen: %v", err)
	}
	out, err := sender.Start(ctx, agent.StartArgs{Endpoint: endpoint, Argv: self("source"), Env: env(net.JoinHostPort(address(tb, endpoint, 1, 4).String(), "7000"))})
	must.Succeed(t, err)
	finish(t, ctx, out)
	if f.network == "udp" {
		must.Succeed(t, in.Signal(ctx, int(unix.SIGKILL)))
		return 0
	}
	return must.Get(strconv.Atoi(strings.TrimSpace(finish(t, ctx, in))))(t)
}

// finish waits for a process to end well and returns what it printed.
func finish(t *testing.T, ctx context.Context, p *agent.Process) string {
	t.Helper()
	for {
		e := must.Get(p.Next(ctx, time.Second))(t)
		if e.Exited {
			o, err := p.Output(ctx)
			if err != nil || e.Exit != 0 {
				t.Fatalf("the traffic program ended with %d: %s%s (%v)", e.Exit, o.Stdout, o.Stderr, err)
			}
			return o.Stdout
		}
	}
}
