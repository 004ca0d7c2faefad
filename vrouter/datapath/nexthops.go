package datapath

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// nexthopTable holds the nexthops by id. Each nexthop has two entries; programs use one of
// them (bpf/nexthop.h).
type nexthopTable struct {
	entries table[uint32, layout.Nexthop] // by key: id * 2, or id * 2 + 1
	inUse   table[uint32, uint32]         // id → key
	grace   *grace                        // grace period of the entries that are not in use
}

// keys returns the key in use of each nexthop, by id. It ignores a key that belongs to
// another id, because Apply never writes such a key.
func (t nexthopTable) keys() (map[uint32]uint32, error) {
	keys := map[uint32]uint32{}
	return keys, t.inUse.each(func(id, key uint32) {
		if key/2 == id {
			keys[id] = key
		}
	})
}

func (t nexthopTable) each(f func(uint32, layout.Nexthop)) error {
	keys, err := t.keys()
	if err != nil || len(keys) == 0 {
		return err
	}
	last := slices.Max(slices.Collect(maps.Values(keys))) // the agent allocates the smallest free ids
	return t.entries.eachBelow(int(last)+1, func(key uint32, v layout.Nexthop) {
		if keys[key/2] == key {
			f(key/2, v)
		}
	})
}

// put writes nexthops. Programs never read a mixture of an old and a new nexthop.
func (t nexthopTable) put(ids []uint32, values []layout.Nexthop) error {
	if len(ids) == 0 {
		return nil
	}
	keys := make([]uint32, len(ids))
	for i, id := range ids {
		if err := t.inUse.m.Lookup(id, &keys[i]); err != nil {
			return fmt.Errorf("read which entry nexthop %d uses: %w", id, err)
		}
		if keys[i]/2 == id { // else the nexthop has no entry yet
			keys[i] ^= 1
		} else {
			keys[i] = 2 * id
		}
	}
	t.grace.wait()
	if err := t.entries.put(keys, values); err != nil {
		return err
	}
	defer t.grace.begin()
	return t.inUse.put(ids, keys)
}

func (t nexthopTable) remove(ids []uint32) error {
	return t.put(ids, make([]layout.Nexthop, len(ids)))
}

// lookup returns a nexthop. It is zero if the id has no nexthop.
func (t nexthopTable) lookup(id uint32) (v layout.Nexthop, err error) {
	var key uint32
	if err := t.inUse.m.Lookup(id, &key); err != nil {
		return v, fmt.Errorf("read which entry nexthop %d uses: %w", id, err)
	}
	if err := t.entries.m.Lookup(key, &v); err != nil {
		return v, fmt.Errorf("read nexthop %d: %w", id, err)
	}
	return v, nil
}

func (t nexthopTable) limit() limit { return limit{"nexthops", t.inUse.m.MaxEntries(), true} }

// grace is a grace period: the time in which programs may still use replaced entries.
type grace struct{ over chan struct{} }

// begin starts a grace period, and does not wait for its end. The next change rarely
// comes before the end.
func (g *grace) begin() {
	over := make(chan struct{})
	g.over = over
	go func() {
		awaitPrograms()
		close(over)
	}()
}

// wait waits until the last grace period is over.
func (g *grace) wait() {
	if g.over != nil {
		<-g.over
	}
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of linux/membarrier.h: the kernel's
// synchronize_rcu().
const membarrierGlobal = 1

// awaitPrograms waits until the eBPF programs that run now have ended. A kernel with
// nohz_full rejects the system call. Then awaitPrograms sleeps longer than a program runs.
func awaitPrograms() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(100 * time.Millisecond)
	}
}

// Checksums says which tunnel packets over UDP have an outer checksum.
type Checksums int

const (
	ChecksumsAuto Checksums = iota // those over IPv6, except superpackets to other nodes
	ChecksumsOn                    // all; the kernel cuts superpackets on this node
	ChecksumsOff                   // none
)

// addChecksums sets the flags of the tunnels whose packets finish_tunnel() of bpf/encap.h must
// handle.
func (v *values) addChecksums(c Checksums) {
	for id, nh := range v.Nexthops {
		udp := nh.Encap == layout.Number(model.VXLAN) || nh.Encap == layout.Number(model.MPLSoUDP)
		if nh.Type != layout.Tunnel || !udp || c == ChecksumsOff || c == ChecksumsAuto && nh.Family == 4 {
			nh.Flags &^= layout.NexthopCut
		} else {
			nh.Flags |= layout.NexthopChecksum | layout.If[uint8](c == ChecksumsOn, layout.NexthopCut)
		}
		v.Nexthops[id] = nh
	}
}
