package datapath

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// nonce is what the programs of a node know each other's packets by: random, and
// the same until the host boots again, so that programs of an older and a newer
// agent may work together.
type nonce [2]uint32

const bootName = "boot"

// bootNonce reads the pinned nonce of a node, or makes one.
func bootNonce(pins string) (n nonce, err error) {
	dir := filepath.Join(pins, bootName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return n, fmt.Errorf("make a place for the nonce: %w", err)
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
		return n, fmt.Errorf("make a nonce: %w", err)
	}
	n[0] |= 1 // never all zero, which is what a buffer may hold
	m, err = ebpf.NewMap(&ebpf.MapSpec{Name: "nonce", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return n, fmt.Errorf("make the map of the nonce: %w", err)
	}
	defer m.Close()
	if err := m.Put(uint32(0), n); err != nil {
		return n, fmt.Errorf("write the nonce: %w", err)
	}
	if err := m.Pin(path); err != nil {
		return n, fmt.Errorf("pin the nonce: %w", err)
	}
	return n, nil
}
