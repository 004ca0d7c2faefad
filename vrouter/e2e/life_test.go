package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// flow10k sends numbered datagrams at 10,000 a second until stop, and returns
// how many were sent and which were missing.
func flow10k(ctx context.Context, from, to *workload) (sent, received uint64, err error) {
	var server net.PacketConn
	if err := in(to.ns, func() (err error) {
		server, err = net.ListenPacket("udp", netip.AddrPortFrom(to.ip(4), 0).String())
		return err
	}); err != nil {
		return 0, 0, err
	}
	defer server.Close()
	server.(*net.UDPConn).SetReadBuffer(8 << 20)
	var got atomic.Uint64
	go func() {
		buf := make([]byte, 2000)
		for {
			if _, _, err := server.ReadFrom(buf); err != nil {
				return
			}
			got.Add(1)
		}
	}()
	c, err := from.dial("udp", server.LocalAddr().String())
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	buf := make([]byte, 64)
	start := time.Now()
	for ctx.Err() == nil {
		for due := uint64(time.Since(start).Seconds() * 10_000); sent < due; sent++ {
			binary.BigEndian.PutUint64(buf, sent)
			if _, err := c.Write(buf); err != nil {
				return sent, got.Load(), err
			}
		}
		time.Sleep(500 * time.Microsecond)
	}
	for wait := time.Now(); got.Load() < sent && time.Since(wait) < time.Second; {
		time.Sleep(5 * time.Millisecond)
	}
	return sent, got.Load(), nil
}

// The agent is killed, restarted, and replaced with other limits (new maps)
// while a TCP stream and 10,000 datagrams a second pass: none is lost.
func nothingIsLostWhileTheAgentDiesAndReturns(t *testing.T) {
	for _, xdp := range []string{"auto", "off"} {
		t.Run("xdp="+xdp, func(t *testing.T) {
			b := newBed(t, options{config: map[string]any{"xdp": xdp, "repair_interval": "500ms"}})
			x, y := pair(b, model.L3, false, model.MPLSoUDP)
			if err := datagram(x, y, 4, 64); err != nil { // neighbours resolved
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			var g errgroup.Group
			var sent, received uint64
			g.Go(func() (err error) {
				sent, received, err = flow10k(ctx, x, y)
				return err
			})
			var stream atomic.Int64
			g.Go(func() error { return endless(ctx, x, y, &stream) })
			for _, n := range b.nodes {
				time.Sleep(200 * time.Millisecond)
				n.kill(syscall.SIGKILL)
				time.Sleep(300 * time.Millisecond)
				n.start()
				time.Sleep(700 * time.Millisecond) // a repair pass and more
				n.kill(syscall.SIGTERM)
				n.config["limits"] = limits(map[string]int{"routes": 1000, "flows": 5000})
				n.start()
				time.Sleep(700 * time.Millisecond)
			}
			stop()
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d datagrams, %d bytes of TCP", sent, stream.Load())
			if sent < 10_000 || received != sent {
				t.Errorf("%d of %d datagrams arrived; drops %v %v", received, sent, b.nodes[0].drops(), b.nodes[1].drops())
			}
			if stream.Load() < 1<<20 {
				t.Errorf("the stream carried %d bytes", stream.Load())
			}
		})
	}
}

// endless streams until ctx is done; a stall of a second is an error.
func endless(ctx context.Context, from, to *workload, count *atomic.Int64) error {
	l, err := to.listen(4)
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	c, err := from.dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 16<<10)
	for ctx.Err() == nil {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := c.Write(buf)
		count.Add(int64(n))
		if err != nil {
			return fmt.Errorf("the stream stalled after %d bytes: %w", count.Load(), err)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func TestAPortThatIsAddedForwardsAtOnceAndGoesWithoutTrace(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	z := b.namespace("z")
	_ = z
	out := b.nodes[0].run("port", "add", "--network", "red", "--netns", b.name+"-z", "-o", "json")
	var p api.Port
	decode(t, out, &p)
	if len(p.IPs) != 2 || p.MTU != 1468 || p.MAC.IsZero() || len(p.Gateways) != 2 {
		t.Fatalf("%+v", p)
	}
	w := &workload{bed: b, port: p.Port, ns: z}
	if err := transfer(w, x, 4, 1<<20); err != nil { // on the same node
		t.Errorf("to its neighbour: %v", err)
	}
	t.Logf("added in %v", p.Took)
	// The other node learns of it by its state.
	p.Origin = model.Applied // else the port would stay there when a later state lacks it
	b.state.Ports = append(b.state.Ports, p.Port)
	writeJSON(t, b.dir+"/more.yaml", b.state)
	b.nodes[1].run("apply", "-f", b.dir+"/more.yaml")
	if err := transfer(w, y, 6, 1<<20); err != nil {
		t.Errorf("to another node: %v", err)
	}
	b.nodes[0].run("port", "delete", p.Name)
	if _, err := b.handle(z).LinkByName("eth0"); err == nil {
		t.Error("the workload's device is left")
	}
}
