package agent

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/service"
)

// served returns two services with the given backends, one for each IP version.
func served(protocol uint8, affinity time.Duration, backends ...string) (all []service.Service) {
	for _, address := range []string{"10.96.0.10", "fd96::10"} {
		s := service.Service{Key: service.Key{Address: netip.MustParseAddr(address), Port: 80, Protocol: protocol}, Affinity: affinity}
		for _, text := range backends {
			if a := netip.MustParseAddrPort(text); a.Addr().Is4() == s.Address.Is4() {
				s.Backends = append(s.Backends, a)
			}
		}
		all = append(all, s)
	}
	return all
}

// superpackets returns a function that counts the packets above 4,000 bytes that leave a node's fabric device.
func superpackets(t *testing.T, s *netdev.Space) func() (n int) {
	t.Helper()
	var fd int
	index := agenttest.LinkIn(t, s, "fab0").Attrs().Index
	must.Succeed(t, s.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		filter := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
			{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: 4000, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: 14},
			{Code: unix.BPF_RET | unix.BPF_K},
		}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
			return err
		}
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index})
	}))
	t.Cleanup(func() { unix.Close(fd) })
	return func() (n int) {
		for {
			_, from, err := unix.Recvfrom(fd, make([]byte, 14), 0)
			if err != nil {
				return n
			}
			if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING {
				n++
			}
		}
	}
}

// transfer sends bytes over a connection, and compares their hash with that of the bytes that arrive.
func (c *conversation) transfer(text []byte) error {
	for _, end := range []net.Conn{c.near, c.far} {
		end.SetDeadline(time.Now().Add(20 * time.Second))
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.near.Write(text)
		sent <- err
	}()
	h := sha256.New()
	_, err := io.CopyN(h, c.far, int64(len(text)))
	if want := sha256.Sum256(text); err == nil && !bytes.Equal(h.Sum(nil), want[:]) {
		err = errors.New("other bytes arrived")
	}
	return errors.Join(err, <-sent)
}

// Superpackets to a service cross the fabric uncut, with checksums that are still to be computed
// (CHECKSUM_PARTIAL). If the fabric's device has no offloads, the kernel cuts them and computes the checksums,
// which the receiver verifies.
func TestBulkTransfersToServicesArriveIntact(t *testing.T) {
	text := make([]byte, 8<<20)
	rand.Read(text)
	for _, encap := range []model.Encapsulation{model.Direct, model.VXLAN} {
		t.Run(string(encap), func(t *testing.T) {
			b := newServedBed(t, encap)
			b.set(t, served(unix.IPPROTO_TCP, 0, "10.7.0.11:8080", "[fd07::11]:8080")...)
			count := superpackets(t, b.A)
			for _, offloads := range []bool{true, false} {
				if !offloads {
					b.disableOffloads(t)
				}
				for address, backend := range map[string]string{"10.96.0.10:80": "10.7.0.11:8080", "[fd96::10]:80": "[fd07::11]:8080"} {
					talk := converseAt(t, b.workloads["a1"], b.workloads["b1"], address, backend)
					for range 2 {
						if err := talk.transfer(text); err != nil {
							t.Errorf("%s, offloads %v: %v", address, offloads, err)
						}
						talk.near, talk.far = talk.far, talk.near
					}
					if n := count(); (n > 0) != offloads {
						t.Errorf("%s, offloads %v: %d superpackets", address, offloads, n)
					}
				}
			}
		})
	}
}

// disableOffloads makes the kernel cut superpackets and compute checksums, before they leave a node.
func (b *servedBed) disableOffloads(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ethtool"); err != nil {
		t.Skip("ethtool is not installed")
	}
	for _, s := range []*netdev.Space{b.A, b.B} {
		out, err := exec.Command("ip", "netns", "exec", s.Name, "ethtool", "-K", "fab0", "tx", "off", "tso", "off", "gso", "off").CombinedOutput()
		if err != nil {
			t.Skipf("turn the offloads off: %v: %s", err, out)
		}
	}
}

// repeat sends a superpacket of datagrams from a1 to a service, and compares what its backend b1 sends back.
func (b *servedBed) repeat(t *testing.T, address string, text []byte, size int) error {
	t.Helper()
	c := datagrams(t, b.workloads["a1"], "", address)
	raw, err := c.SyscallConn()
	must.Succeed(t, err)
	must.Succeed(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, size) }))
	must.Succeed(t, err)
	must.Succeed(t, c.SetDeadline(time.Now().Add(5*time.Second)))
	must.Get(c.Write(text))(t)
	for i := range len(text) / size {
		buffer := make([]byte, 2*size)
		got, err := c.Read(buffer)
		if want := append([]byte("b1"), text[i*size:(i+1)*size]...); err != nil || !bytes.Equal(buffer[:got], want) {
			return fmt.Errorf("datagram %d: %d bytes, %v", i, got, err)
		}
	}
	return nil
}

// A superpacket of datagrams (UDP_SEGMENT), as QUIC sends it, reaches a service. Receivers drop datagrams with wrong
// checksums.
func TestSuperpacketsOfDatagramsReachServices(t *testing.T) {
	const n, size = 10, 1000
	text := make([]byte, n*size)
	rand.Read(text)
	for _, encap := range []model.Encapsulation{model.Direct, model.VXLAN} {
		t.Run(string(encap), func(t *testing.T) {
			b := newServedBed(t, encap)
			backends := []string{"10.7.0.11:8080", "[fd07::11]:8080"}
			repeaters(t, b.workloads["b1"], "b1", backends...)
			b.set(t, served(unix.IPPROTO_UDP, 0, backends...)...)
			count := superpackets(t, b.A)
			for _, offloads := range []bool{true, false} {
				if !offloads {
					b.disableOffloads(t)
				}
				for _, address := range []string{"10.96.0.10:80", "[fd96::10]:80"} {
					// Other tests' packets can fill the queue of this CPU, so that the kernel drops some of these.
					err := errors.New("never sent")
					for attempt := 0; err != nil && attempt < 5; attempt++ {
						err = b.repeat(t, address, text, size)
					}
					if err != nil {
						t.Fatalf("%s, offloads %v: %v", address, offloads, err)
					}
					if n := count(); (n > 0) != offloads {
						t.Errorf("%s, offloads %v: %d superpackets", address, offloads, n)
					}
				}
			}
		})
	}
}

// repeaters starts a server in a namespace. It answers each datagram with a word and the datagram.
func repeaters(t *testing.T, s *netdev.Space, word string, at ...string) {
	t.Helper()
	for _, address := range at {
		var c net.PacketConn
		must.Succeed(t, s.Do(func() (err error) {
			c, err = net.ListenPacket("udp", address)
			return err
		}))
		t.Cleanup(func() { c.Close() })
		go func() {
			buffer := make([]byte, 1<<16)
			for {
				n, from, err := c.ReadFrom(buffer)
				if err != nil {
					return
				}
				c.WriteTo(append([]byte(word), buffer[:n]...), from)
			}
		}()
	}
}

// repeated sends a datagram, and returns the word of the backend that answers. It skips late answers to earlier datagrams.
func repeated(c net.Conn, datagram []byte) (word string, err error) {
	c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write(datagram); err != nil {
		return "", err
	}
	var other error
	for buffer := make([]byte, 1<<16); ; {
		n, err := c.Read(buffer)
		if err != nil {
			return "", errors.Join(err, other)
		}
		if rest, is := bytes.CutSuffix(buffer[:n], datagram); is && len(rest) <= 2 {
			return string(rest), nil
		}
		other = fmt.Errorf("%d bytes come back for %d, and differ", n, len(datagram))
	}
}

// Datagrams of any size reach a service and come back. After a flow's backend is deleted, the next datagram goes
// to another backend.
func TestDatagramsReachServices(t *testing.T) {
	for _, encap := range []model.Encapsulation{model.Direct, model.VXLAN} {
		t.Run(string(encap), func(t *testing.T) {
			b := newServedBed(t, encap)
			repeaters(t, b.workloads["a1"], "a1", "10.7.0.10:8080", "[fd07::10]:8080")
			repeaters(t, b.workloads["b1"], "b1", "10.7.0.11:8080", "[fd07::11]:8080")
			large := make([]byte, 30000)
			rand.Read(large)
			clients := map[string]net.Conn{}
			for _, address := range []string{"10.96.0.10:80", "[fd96::10]:80"} {
				must.Succeed(t, b.workloads["a2"].Do(func() (err error) {
					clients[address], err = net.Dial("udp", address)
					return err
				}))
				defer clients[address].Close()
			}
			for _, one := range []struct {
				word     string
				backends []string
			}{
				{"b1", []string{"10.7.0.11:8080", "[fd07::11]:8080"}},
				{"a1", []string{"10.7.0.10:8080", "[fd07::10]:8080"}},
				{"b1", []string{"10.7.0.11:8080", "[fd07::11]:8080"}},
			} {
				b.set(t, served(unix.IPPROTO_UDP, 0, one.backends...)...)
				for address, c := range clients {
					must.Eventually(t, "answers of "+one.word+" at "+address, func() error {
						word, err := repeated(c, []byte("data"))
						if err == nil && word != one.word {
							err = fmt.Errorf("%s answers", word)
						}
						return err
					})
					for _, n := range []int{1, 1400, 4000, len(large)} {
						if word, err := repeated(c, large[:n]); err != nil || word != one.word {
							t.Errorf("%s, %d bytes: answer of %q %v, want %s", address, n, word, err, one.word)
						}
					}
				}
			}
		})
	}
}

// With affinity, all connections of a client have one backend.
func TestConnectionsOfAClientKeepTheBackendOfAServiceWithAffinity(t *testing.T) {
	b := newServedBed(t, model.Direct)
	backends := []string{"10.7.0.10:8080", "10.7.0.11:8080", "[fd07::10]:8080", "[fd07::11]:8080"}
	greeters(t, b.workloads["a1"], "a1", backends[0], backends[2])
	greeters(t, b.workloads["b1"], "b1", backends[1], backends[3])
	for affinity, want := range map[time.Duration]int{0: 2, time.Hour: 1} {
		b.set(t, served(unix.IPPROTO_TCP, affinity, backends...)...)
		for _, address := range []string{"10.96.0.10:80", "[fd96::10]:80"} {
			seen := map[string]bool{}
			for range 30 {
				said := must.Get(greeting(b.workloads["a2"], address))(t)
				seen[said] = true
			}
			if len(seen) != want {
				t.Errorf("%s, affinity %s: answers %v, want %d backends", address, affinity, seen, want)
			}
		}
	}
}
