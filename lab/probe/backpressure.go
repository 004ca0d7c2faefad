package probe

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// backpressure fills the ring of a veth whose receiver cannot run: its NAPI
// thread is bound to this thread's CPU, on which this thread has real-time
// priority for one or two milliseconds. If the trial is not possible or has no clear
// result, the kernel's version decides, and the finding says so.
func (b *sandbox) backpressure(f *Facts) (how string, err error) {
	stopped, err := b.fillRing("pfifo")
	if err == nil && stopped {
		return "", nil
	}
	if errors.Is(err, errDropped) {
		return "", err
	}
	how = fmt.Sprintf("by the kernel's version, because trying it showed nothing: %v", err)
	if !atLeast(f.Release, 6, 16) {
		return how, fmt.Errorf("kernel %s: %w", f.Release, unix.EOPNOTSUPP)
	}
	return how, nil
}

// atLeast reports whether a kernel release, such as "6.1.0-18-amd64", is version
// major.minor or later.
func atLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

var (
	errDropped = errors.New("a full ring drops packets")
	errUnclear = errors.New("the ring did not fill")
)

// ringLength is VETH_RING_SIZE (drivers/net/veth.c).
const ringLength = 256

func (b *sandbox) fillRing(queue string) (stopped bool, err error) {
	if err := b.threaded(); err != nil {
		return false, err
	}
	device, err := b.Link(near)
	if err != nil {
		return false, err
	}
	if err := b.prepare(device, queue); err != nil {
		return false, err
	}
	thread, err := napiThread(b.far)
	if err != nil {
		return false, err
	}
	beyond := 0
	err = b.Do(func() error {
		release, err := holdCPU(thread)
		if err != nil {
			return err
		}
		defer release()
		beyond, err = flood(device.Attrs())
		return err
	})
	if err != nil || beyond > ringLength/2 {
		return err == nil, err
	}
	return false, b.drops()
}

// prepare adds a queue to the sending end, and turns off the offloads with which its packets
// would bypass the ring (veth_skb_is_eligible_for_gro).
func (b *sandbox) prepare(device netlink.Link, queue string) error {
	if err := b.Links.QdiscReplace(&netlink.GenericQdisc{QdiscAttrs: root(device, 3), QdiscType: queue}); err != nil {
		return fmt.Errorf("add a queue: %w", err)
	}
	return b.Offloads(near, map[string]bool{"tx-tcp-segmentation": false, "tx-tcp6-segmentation": false,
		"tx-tcp-ecn-segmentation": false, "tx-tcp-mangleid-segmentation": false})
}

// drops reports whether the other packets, which do not wait, were dropped.
func (b *sandbox) drops() error {
	device, err := b.Link(near)
	if err != nil {
		return err
	}
	if s := device.Attrs().Statistics; s != nil && s.TxDropped > 0 {
		return fmt.Errorf("%w: %d of %d", errDropped, s.TxDropped, floodPackets)
	}
	return errUnclear
}

const floodPackets = 2 * ringLength

// flood sends more packets than the ring can have, and returns how many packets wait
// outside the ring. A packet belongs to its socket until the receiver takes it from the
// ring, so the socket's count of bytes gives the number. A netlink request could sleep, and
// then the receiver would run.
func flood(device *netlink.LinkAttrs) (beyond int, err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, fmt.Errorf("open a packet socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20); err != nil {
		return 0, fmt.Errorf("enlarge the send buffer: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: device.Index}); err != nil {
		return 0, fmt.Errorf("bind a packet socket: %w", err)
	}
	var one, all uint32
	packets := newTrain(floodPackets)
	err = errors.Join(packets.send(fd, 1), bytesUnsent(fd, &one), packets.send(fd, floodPackets-1), bytesUnsent(fd, &all))
	return beyondRing(int(one), int(all)), err
}

// beyondRing returns how many packets wait outside the ring, from the socket's bytes with
// one packet and with all packets.
func beyondRing(one, all int) int {
	if one == 0 {
		return 0
	}
	return max(0, all/one-ringLength)
}

// train has equal frames for one system call.
type train struct {
	messages []message
	frame    []byte
	vector   unix.Iovec
}

type message struct { // struct mmsghdr
	header unix.Msghdr
	sent   uint32
	_      uint32
}

func newTrain(n int) *train {
	// An experimental EtherType (IEEE 802a): the receiver drops the frame.
	t := &train{messages: make([]message, n), frame: append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}, make([]byte, 50)...)}
	t.vector.Base = &t.frame[0]
	t.vector.SetLen(len(t.frame))
	for i := range t.messages {
		t.messages[i].header.Iov = &t.vector
		t.messages[i].header.SetIovlen(1)
	}
	return t
}

// send sends n frames or fewer. The call is one that Go's scheduler does not see: while
// it lasts, nothing may make this thread wait. It ends early if a device without a queue
// drops a frame; the device's counters then show the drop.
func (t *train) send(fd, n int) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&t.messages[0])), uintptr(n), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("send frames: %w", errno)
	}
	return nil
}

func bytesUnsent(fd int, to *uint32) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCOUTQ, uintptr(unsafe.Pointer(to))); errno != 0 {
		return fmt.Errorf("ask for the bytes unsent: %w", errno)
	}
	return nil
}

// holdCPU binds the calling thread and the receiving thread to one CPU, and gives the
// calling thread real-time priority. The calling thread must end after the trial.
func holdCPU(thread int) (release func(), err error) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	for c := range len(all) * 64 {
		if all.IsSet(c) {
			one.Set(c)
			break
		}
	}
	for _, tid := range []int{0, thread} {
		if err := unix.SchedSetaffinity(tid, &one); err != nil {
			return nil, fmt.Errorf("bind thread %d: %w", tid, err)
		}
	}
	realTime := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(0, realTime, 0); err != nil {
		return nil, fmt.Errorf("get real-time priority: %w", err)
	}
	return func() {
		normal := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
		_ = unix.SchedSetAttr(0, normal, 0) // the thread ends next anyway
	}, nil
}

// napiThread returns the thread that polls a device.
func napiThread(device string) (int, error) {
	for deadline := time.Now().Add(20 * time.Millisecond); ; time.Sleep(time.Millisecond) {
		threads, err := space.NAPIThreads(device)
		if err != nil {
			return 0, err
		}
		if len(threads) > 0 {
			return threads[0], nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("the NAPI thread of %s did not appear", device)
		}
	}
}
