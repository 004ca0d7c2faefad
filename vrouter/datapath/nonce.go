package datapath

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/layout"
)

// nonce is a random number by which the programs of a node recognise each other's
// packets. It stays the same until the host reboots, so that the programs of an older
// and a newer agent work together.
type nonce [2]uint32

// bootName is the directory of pins that every agent of the node uses until the host
// reboots.
const bootName = "boot"

// bootNonce reads the pinned nonce of a node. If there is none, it generates and pins
// one.
func bootNonce(pins string) (n nonce, err error) {
	dir := filepath.Join(pins, bootName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return n, fmt.Errorf("create the directory of the pinned nonce: %w", err)
	}
	path := filepath.Join(dir, "nonce")
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err == nil {
		defer m.Close()
		return n, m.Lookup(uint32(0), &n)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return n, fmt.Errorf("read the pinned nonce: %w", err)
	}
	if err := binary.Read(rand.Reader, binary.NativeEndian, &n); err != nil {
		return n, fmt.Errorf("generate the nonce: %w", err)
	}
	n[0] |= 1 // not zero: metadata of an unused buffer and marks of other packets are zero
	m, err = ebpf.NewMap(&ebpf.MapSpec{Name: "nonce", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return n, fmt.Errorf("create the map of the nonce: %w", err)
	}
	defer m.Close()
	if err := m.Put(uint32(0), n); err != nil {
		return n, fmt.Errorf("write the nonce to its map: %w", err)
	}
	if err := m.Pin(path); err != nil {
		return n, fmt.Errorf("pin the nonce: %w", err)
	}
	return n, nil
}

// cookieMask is COOKIE_MASK of bpf/cookie.h.
const cookieMask = 0x3ff

// cookie returns the cookie of a destination: bits of HMAC-SHA256 with the nonce as the
// key. By its cookie a node recognises a quoted tunnel packet that it has sent.
func (n nonce) cookie(destination layout.Address) uint16 {
	key := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n[0]), n[1])
	h := hmac.New(sha256.New, key)
	h.Write([]byte("vrouter cookie"))
	h.Write(destination.Bytes[:])
	return binary.LittleEndian.Uint16(h.Sum(nil)) & cookieMask
}

// addCookies sets the cookies of paths and remotes.
func (v *values) addCookies(n nonce) {
	for id, nh := range v.Nexthops {
		for i := range nh.Paths {
			nh.Path[i].Cookie = n.cookie(nh.Path[i].Destination)
		}
		v.Nexthops[id] = nh
	}
	for address, r := range v.Remotes {
		r.Cookie = n.cookie(address)
		v.Remotes[address] = r
	}
}
