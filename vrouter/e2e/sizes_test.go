package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// unfragmented opens a UDP socket in the workload that may not fragment.
func (w *workload) unfragmented(version int) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlled := c.Control(func(fd uintptr) {
			if version == 4 {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
			} else {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
			}
		})
		return errors.Join(controlled, err)
	}}
	var conn *net.UDPConn
	err := in(w.ns, func() error {
		c, err := config.ListenPacket(w.bed.t.Context(), "udp", netip.AddrPortFrom(w.ip(version), 0).String())
		if err == nil {
			conn = c.(*net.UDPConn)
		}
		return err
	})
	return conn, err
}

// echo sends a datagram there and back without fragments. On a busy machine a datagram may be so late that echo
// sends it again. A later call then receives the second copy, so echo skips all datagrams but its own.
func echo(from, to *net.UDPConn, bytesOut, buf []byte) error {
	target := to.LocalAddr().(*net.UDPAddr).AddrPort()
	failure := errTimeout
	receive := func(c *net.UDPConn) (back netip.AddrPort, err error) {
		for {
			n, back, err := c.ReadFromUDPAddrPort(buf)
			if err != nil || bytes.Equal(buf[:n], bytesOut) {
				return back, err
			}
			failure = fmt.Errorf("%w; %d other bytes came instead of %d", errTimeout, n, len(bytesOut))
		}
	}
	for try := range 2 {
		if _, err := from.WriteToUDPAddrPort(bytesOut, target); err != nil {
			return err
		}
		wait := time.Now().Add(time.Second << try)
		to.SetReadDeadline(wait)
		back, err := receive(to)
		if err != nil {
			continue
		}
		if _, err := to.WriteToUDPAddrPort(bytesOut, back); err != nil {
			return err
		}
		from.SetReadDeadline(wait)
		if _, err := receive(from); err == nil {
			return nil
		}
	}
	return failure
}

// Every packet of 68 bytes, the least MTU of IPv4, to the largest that fits a
// jumbo underlay goes through whole, there and back; one byte more is refused.
func TestEveryPacketSizeArrives(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{mtu: 9100})
	for _, encap := range encaps {
		for _, v6 := range []bool{false, true} {
			b.run(fmt.Sprintf("%s/underlay-v6=%v", encap, v6), func(t *testing.T) {
				x, y := pair(b, model.L3, v6, encap)
				mtu := int(b.nodes[0].vif("x").MTU)
				if mtu < 9000 {
					t.Fatalf("the vif's MTU is %d", mtu)
				}
				for _, version := range []int{4, 6} {
					sweep(t, x, y, version, mtu)
				}
			})
		}
	}
}

func sweep(t *testing.T, x, y *workload, version, mtu int) {
	t.Helper()
	from, err := x.unfragmented(version)
	must.Succeed(t, err)
	defer from.Close()
	to, err := y.unfragmented(version)
	must.Succeed(t, err)
	defer to.Close()
	headers := map[int]int{4: 28, 6: 48}[version]
	data, err := io.ReadAll(payload(uint64(version), mtu))
	must.Succeed(t, err)
	buf := make([]byte, mtu+1)
	for size := 68; size <= mtu; size++ {
		if err := echo(from, to, data[:size-headers], buf); err != nil {
			t.Fatalf("IPv%d, %d bytes of %d: %v", version, size, mtu, err)
		}
	}
	if err := echo(from, to, data[:mtu-headers], buf); err != nil {
		t.Errorf("IPv%d, the MTU of %d: %v", version, mtu, err)
	}
	if err := echo(from, to, make([]byte, mtu+1-headers), buf); !errors.Is(err, unix.EMSGSIZE) {
		t.Errorf("IPv%d, one byte more than the MTU of %d: %v", version, mtu, err)
	}
}

// Whatever the underlay's MTU, workloads get what it leaves, and TCP goes
// through.
func TestTheMTUOfWorkloadsFollowsFromTheUnderlays(t *testing.T) {
	must.Long(t)
	overhead := map[model.Encapsulation]int{model.MPLSoGRE: 28, model.MPLSoUDP: 32, model.VXLAN: 50}
	for _, mtu := range []int{700, 1400, 2000, 9000} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{mtu: mtu})
			for _, encap := range encaps {
				b.run(string(encap), func(t *testing.T) {
					b.state.Nodes = b.nodesOf(false, encap)
					b.state.Networks = []model.Network{{Name: "red", ID: 1, VNI: 1001, Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}}
					x := b.workload("x", "red", 0, "10.1.0.10")
					y := b.workload("y", "red", 1, "10.1.0.11")
					b.up()
					if got := int(b.nodes[0].vif("x").MTU); got != mtu-overhead[encap] {
						t.Errorf("the vif's MTU is %d, want %d", got, mtu-overhead[encap])
					}
					checkTransfer(x, y, 4, 2<<20)
				})
			}
		})
	}
}
