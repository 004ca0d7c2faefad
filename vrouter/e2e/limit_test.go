package e2e

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// carried returns how much a stream carries, and how long the stream lasted: on a busy machine it ends late.
func carried(t *testing.T, from, to *workload, within time.Duration) (bytes int64, took time.Duration) {
	t.Helper()
	l, err := to.listen(4, 0)
	must.Succeed(t, err)
	defer l.Close()
	var got atomic.Int64
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			got.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	began := time.Now()
	c, err := from.dial("tcp", l.Addr().String())
	must.Succeed(t, err)
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(within))
	io.Copy(c, endlessZeros{}) // until the deadline
	bytes = got.Load()
	return bytes, time.Since(began)
}

type endlessZeros struct{}

func (endlessZeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A port with limits receives and sends no more than it may, from its own node
// and from another, also after its agent started anew; one without has none.
func TestALimitedPortIsHeldToItsBandwidth(t *testing.T) {
	t.Parallel()
	b := fleetBed(t, "10s")
	a := b.nodes[0]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	limited := &workload{bed: b, ns: b.namespace("l")}
	limited.port = one[api.Port](a, "port", "add", "--name", "l", "--network", "red", "--netns", b.name+"-l", "--ingress", "40M", "--egress", "20M").Port
	if want := (model.Bandwidth{Ingress: 40e6, Egress: 20e6}); limited.port.Bandwidth != want {
		t.Fatalf("it has %+v, want %+v", limited.port.Bandwidth, want)
	}
	near, far := b.connected("n", "red", 0), b.connected("f", "red", 1)
	soon(t, "they reach each other", func() error { return datagram(far, limited, 4, 64) })
	const within = time.Second
	check := func(what string, from, to *workload, rate float64) {
		t.Helper()
		// What the buckets hold at first, and what waits in them, comes on top.
		got, took := carried(t, from, to, within)
		switch most := int64(rate/8*took.Seconds()*1.1) + 256<<10; {
		case got > most:
			t.Errorf("%s: %d bytes in %v, at most %d are allowed", what, got, took, most)
		case got < most/10:
			t.Errorf("%s: %d bytes in %v, far below the limit", what, got, took)
		default:
			t.Logf("%s: %.1f Mbit/s of %.0f", what, float64(got)*8/took.Seconds()/1e6, rate/1e6)
		}
	}
	check("to it from its node", near, limited, 40e6)
	check("to it from another node", far, limited, 40e6)
	check("from it to its node", limited, near, 20e6)
	check("from it to another node", limited, far, 20e6)
	if n := a.drops()["egress_limit"]; n != 0 {
		t.Errorf("%d packets that the workload's queue let pass were dropped as egress_limit", n)
	}
	a.kill(syscall.SIGKILL)
	a.config["repair_interval"] = "500ms"
	a.start()
	check("to it after a restart", far, limited, 40e6)

	client := api.Dial(a.config["socket"].(string))
	defer client.Close()
	if _, err := client.ChangePort(context.Background(), "l", api.PortChange{Bandwidth: &model.Bandwidth{}}); err != nil {
		t.Fatal(err)
	}
	soon(t, "without limits it gets more", func() error {
		if got, took := carried(t, far, limited, within); float64(got) < 2*40e6/8*took.Seconds() {
			return fmt.Errorf("%d bytes in %v", got, took)
		}
		return nil
	})
	if s := answer(a, (*api.Client).Status); s.Repairs != 0 {
		t.Errorf("%d repairs: the agent undoes what it does", s.Repairs)
	}
}
