package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// AttachPoint identifies where a port is attached. Two ports cannot have the same attach point.
type AttachPoint struct {
	node    string
	network string // of a port that connects the node itself
	netns   string
	device  string
}

// AttachPoint returns the attach point of a port; false: the port is not attached yet.
func (p *Port) AttachPoint() (at AttachPoint, attached bool) {
	a := &p.Attach
	at = AttachPoint{node: p.Node, netns: a.Netns, device: a.Device}
	switch {
	case a.Host:
		at.network = p.Network
	case a.Netns != "":
		at.device = cmp.Or(a.Device, a.Interface, DefaultInterface)
	}
	return at, a.Host || a.Netns+a.Device != ""
}

// Equal reports whether all fields of two ports are equal.
func (p Port) Equal(o Port) bool {
	return p.Name == o.Name && p.Network == o.Network && p.Node == o.Node && p.MAC == o.MAC && slices.Equal(p.IPs, o.IPs) && slices.Equal(p.Floating, o.Floating) && p.NATSlot == o.NATSlot &&
		p.Attach == o.Attach && slices.Equal(p.Policies, o.Policies) && slices.Equal(p.AllowSources, o.AllowSources) &&
		p.Bandwidth == o.Bandwidth && p.Router == o.Router && p.Origin == o.Origin && p.Owner == o.Owner && p.Pod() == o.Pod()
}

// NodePort returns the name of the port that connects a node to a network. It is a hash,
// because a name has at most 63 characters.
func NodePort(node, network string) string {
	sum := sha256.Sum256([]byte(node + "/" + network))
	return "node-" + hex.EncodeToString(sum[:])[:32]
}

// PortName makes a name from a port's network and address. It appends a number if
// the name is taken.
func PortName(p Port, taken func(string) bool) string {
	base := p.Network
	if len(p.IPs) > 0 {
		base += "-" + strings.NewReplacer(":", "-", ".", "-").Replace(p.IPs[0].StringExpanded())
	}
	for i := 1; ; i++ {
		suffix := ""
		if i > 1 || len(p.IPs) == 0 {
			suffix = fmt.Sprintf("-%d", i)
		}
		name := base[max(0, len(base)+len(suffix)-MaxName):] + suffix
		name = strings.TrimLeft(name, "-._")
		if !taken(name) {
			return name
		}
	}
}

// PortMAC makes a MAC from a port's network and address, so that a port that is
// added again gets the same MAC. It is locally administered (IEEE 802-2014, 8.4).
func PortMAC(p Port, taken func(MAC) bool) MAC {
	seed := []byte(p.Name)
	if len(p.IPs) > 0 {
		seed = p.IPs[0].AsSlice()
	}
	for salt := uint32(0); ; salt++ {
		h := fnv.New64a()
		h.Write([]byte(p.Network))
		h.Write(binary.BigEndian.AppendUint32([]byte{0}, salt))
		h.Write(seed)
		v := h.Sum64()
		if m := (MAC{0x02, byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}); m != RouterMAC && !taken(m) {
			return m
		}
	}
}
