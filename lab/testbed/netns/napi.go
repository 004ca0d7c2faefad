package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// napiNice is the priority of the threads that poll a NIC. A NIC's interrupt
// preempts the application, so these threads do too. At the application's own
// priority they wait for its time slice. Meanwhile the sender fills the NIC's
// ring of 256 frames and its queue stops. The receiver's CPU then restarts the
// queue and segments the sender's superframes (docs/method.md).
const napiNice = -10

// readyNAPI pins the threads that poll a device's receive queues, and sets their priority.
// The first thread runs on the first set of CPUs, the second on the second set, and so on;
// after the last set the first is used again. The device must be up and have
// threaded NAPI on.
func readyNAPI(s *space.Space, device string, sets [][]int) error {
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	// A listing can be out of date: a thread of a testbed that was just taken
	// down may end between being found and being pinned.
	for range 10 {
		if err = tryReadyNAPI(s, device, l.Attrs().Index, sets); !errors.Is(err, unix.ESRCH) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

func tryReadyNAPI(s *space.Space, device string, index int, sets [][]int) error {
	pids, err := napiThreads(s, index)
	if err != nil || len(pids) == 0 {
		// Kernels before 6.8 do not list them; the name then has to do.
		pids, err = space.NAPIThreads(device)
	}
	if err != nil {
		return fmt.Errorf("find the NAPI threads of %s: %w", device, err)
	}
	if len(pids) == 0 {
		return fmt.Errorf("find the NAPI threads of %s: it has none; threaded NAPI needs Linux 5.12", device)
	}
	for i, pid := range pids {
		var set unix.CPUSet
		cpus := sets[i%len(sets)]
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(pid, &set); err != nil {
			return fmt.Errorf("pin NAPI thread %d of %s to CPUs %v: %w", pid, device, cpus, err)
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, pid, napiNice); err != nil {
			return fmt.Errorf("set the priority of NAPI thread %d of %s to nice %d: %w", pid, device, napiNice, err)
		}
	}
	return nil
}

// Attributes and commands of the netdev generic netlink family,
// include/uapi/linux/netdev.h.
const (
	netdevCmdNAPIGet  = 11
	netdevNAPIIfindex = 1
	netdevNAPIPID     = 4
)

// genericHeader is a generic netlink message's command, version and two reserved bytes.
// The kernel refuses a dump whose reserved bytes are not 0, and nl.Genlmsg takes them from
// the memory behind it.
type genericHeader [nl.SizeofGenlmsg]byte

func (h genericHeader) Len() int          { return len(h) }
func (h genericHeader) Serialize() []byte { return h[:] }

// napiThreads asks the kernel (netdev family, Linux 6.8) for the threads of a
// device's NAPI instances, in the order of the instances.
func napiThreads(s *space.Space, index int) ([]int, error) {
	var pids []int
	err := s.Do(func() error {
		family, err := netlink.GenlFamilyGet("netdev")
		if err != nil {
			return err
		}
		req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_DUMP)
		req.AddData(genericHeader{netdevCmdNAPIGet, 1})
		req.AddData(nl.NewRtAttr(netdevNAPIIfindex, binary.NativeEndian.AppendUint32(nil, uint32(index))))
		pids, err = dumpThreads(req)
		return err
	})
	slices.Sort(pids)
	return pids, err
}

// dumpThreads reads all messages of a dump until its end. The netdev family does not mark
// them as parts of a dump, so req.Execute would return the first of them only.
func dumpThreads(req *nl.NetlinkRequest) (pids []int, err error) {
	socket, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	if err := socket.SetReceiveTimeout(&unix.Timeval{Sec: 5}); err != nil {
		return nil, err
	}
	if err := socket.Send(req); err != nil {
		return nil, err
	}
	for {
		messages, _, err := socket.Receive()
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return pids, nil
			case unix.NLMSG_ERROR:
				return nil, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
			}
			attrs, err := nl.ParseRouteAttr(m.Data[nl.SizeofGenlmsg:])
			if err != nil {
				return nil, err
			}
			for _, a := range attrs {
				if a.Attr.Type == netdevNAPIPID && len(a.Value) == 4 {
					pids = append(pids, int(binary.NativeEndian.Uint32(a.Value)))
				}
			}
		}
	}
}
