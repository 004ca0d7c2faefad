package fleet

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// index finds ports by MAC or address. A key belongs to at most one port. The index is a hash table with linear probing.
// Its slots have pointers to ports and no keys: a map with keys needs three times the memory.
type index struct {
	slots      []*storedPort // nil: the slot is empty, or its port was removed
	tags       []uint8       // for each slot: 8 bits of the hash of its key, or tagEmpty or tagRemoved
	keys, used int           // keys: number of slots with a port. used: number of slots that are not empty, including those whose port was removed
}

// Tags of slots without a port. A search ends at an empty slot.
const (
	tagEmpty uint8 = iota
	tagRemoved
	firstTag
)

// indexKey is a MAC or an address in a network.
type indexKey struct {
	network string
	isMAC   bool
	mac     model.MAC
	address netip.Addr
}

func macOf(network string, m model.MAC) indexKey {
	return indexKey{network: network, isMAC: true, mac: m}
}

func addressOf(network string, a netip.Addr) indexKey { return indexKey{network: network, address: a} }

// keys iterates over the keys of a port, without duplicates: the MAC first, then the addresses.
func (p *storedPort) keys() iter.Seq[indexKey] {
	return func(yield func(indexKey) bool) {
		if !yield(macOf(p.Network, p.MAC)) {
			return
		}
		all := p.Addresses()
		for i, a := range all {
			if !slices.Contains(all[:i], a) && !yield(addressOf(p.Network, a)) {
				return
			}
		}
	}
}

func (p *storedPort) has(k indexKey) bool {
	if k.isMAC {
		return p.Network == k.network && p.MAC == k.mac
	}
	return p.Network == k.network && slices.Contains(p.Addresses(), k.address)
}

var indexSeed = maphash.MakeSeed()

// search returns the tag of a key, and the first slot to look at. Callers look at the following slots too, until one is
// empty.
func (x *index) search(k indexKey) (tag uint8, first int) {
	hash := maphash.Comparable(indexSeed, struct { // not indexKey: its netip.Addr contains a pointer, so Comparable would allocate the key on the heap
		network string
		mac     model.MAC
		address [16]byte
	}{k.network, k.mac, k.address.As16()})
	at, _ := bits.Mul64(hash, uint64(len(x.slots)))
	return max(uint8(hash), firstTag), int(at)
}

func (x *index) next(slot int) int {
	if slot++; slot == len(x.slots) {
		return 0
	}
	return slot
}

// get returns the port that has a key; nil: there is none.
func (x *index) get(k indexKey) *storedPort {
	if x.keys == 0 {
		return nil
	}
	tag, i := x.search(k)
	for ; x.tags[i] != tagEmpty; i = x.next(i) {
		if x.tags[i] == tag && x.slots[i].has(k) {
			return x.slots[i]
		}
	}
	return nil
}

// add adds a port. The index must not have another port with one of its keys.
func (x *index) add(p *storedPort) {
	x.grow(1 + len(p.Addresses()))
	for k := range p.keys() {
		tag, i := x.search(k)
		for x.tags[i] != tagEmpty {
			i = x.next(i)
		}
		x.tags[i], x.slots[i] = tag, p
		x.keys++
		x.used++
	}
}

// remove removes a port that the index has.
func (x *index) remove(p *storedPort) {
	for k := range p.keys() {
		for _, i := x.search(k); x.tags[i] != tagEmpty; i = x.next(i) {
			if x.slots[i] == p { // also removes the other keys of p that are in this sequence of slots
				x.tags[i], x.slots[i] = tagRemoved, nil
				x.keys--
			}
		}
	}
}

// grow makes room for more keys.
func (x *index) grow(more int) {
	if x.used+more <= len(x.slots)/8*7 {
		return
	}
	was := x.slots
	size := (x.keys+more)/2*3 + 16
	*x = index{slots: make([]*storedPort, size), tags: make([]uint8, size)}
	for _, p := range was {
		if p != nil && x.get(macOf(p.Network, p.MAC)) != p {
			x.add(p)
		}
	}
}
