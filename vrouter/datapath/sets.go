package datapath

import (
	"net/netip"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

// Bits of an AllowKey before its protocol, and before its port. types.h describes it.
const (
	allowBits     = 72
	allowBitsPort = 80
)

// sets sets the values of identities and allows.
func (v *values) sets(s fib.Sets) {
	v.identities = make(map[layout.IdentityKey]layout.Identity, len(s.Identities))
	for k, id := range s.Identities {
		a := k.Prefix.Addr()
		key := layout.IdentityKey{Prefixlen: uint32(32 + 128 - a.BitLen() + k.Prefix.Bits()), VRF: layout.Network32(k.VRF), Address: layout.AddressOf(a)}
		v.identities[key] = id
	}
	v.allows = make(map[layout.AllowKey]layout.Allow, len(s.Allows))
	for a := range s.Allows {
		key := layout.AllowKey{Prefixlen: allowBits, Group: a.Group, Identity: a.Identity, Egress: layout.If[uint8](a.Egress, 1), Protocol: a.Protocol, Port: layout.Network16(a.Port)}
		if a.Protocol != 0 {
			key.Prefixlen = allowBitsPort + uint32(a.PortBits)
		}
		v.allows[key] = layout.Allow{Known: 1}
	}
}

// dumpSets reads identities and allows.
func (t tables) dumpSets(s *fib.Sets) error {
	err := t.identities.each(func(k layout.IdentityKey, v layout.Identity) {
		a, bits := netip.AddrFrom16(k.Address.Bytes), int(k.Prefixlen)-32
		if a.Is4In6() && bits >= 96 {
			a, bits = a.Unmap(), bits-96
		}
		s.Identities[fib.RouteKey{VRF: layout.Network32(k.VRF), Prefix: netip.PrefixFrom(a, bits)}] = v
	})
	if err != nil {
		return err
	}
	return t.allows.each(func(k layout.AllowKey, _ layout.Allow) {
		a := fib.Allow{Group: k.Group, Identity: k.Identity, Egress: k.Egress != 0, Protocol: k.Protocol, Port: layout.Network16(k.Port)}
		if k.Prefixlen > allowBitsPort {
			a.PortBits = uint8(k.Prefixlen - allowBitsPort)
		}
		s.Allows[a] = true
	})
}

// setsStep writes and deletes entries of identities and allows before the generations of the policies are
// written. A flow that is judged in between gets the earlier generation, so it is judged again. Entries of groups
// that no policy has any more stay until the policies are written.
type setsStep struct {
	identities *difference[layout.IdentityKey, layout.Identity]
	allows     *difference[layout.AllowKey, layout.Allow]
	groups     map[uint32]bool // that policies have
}

func (t tables) compareSets(c *comparison, h, v values) *setsStep {
	s := &setsStep{compare(c, t.identities, h.identities, v.identities), compare(c, t.allows, h.allows, v.allows), map[uint32]bool{}}
	for _, p := range v.policies {
		s.groups[p.Group] = true
	}
	return s
}

func (s *setsStep) update() (int, error) {
	var unused []layout.AllowKey
	stale := s.allows.stale
	total := 0
	for _, write := range []func() (int, error){
		s.allows.update, s.identities.update, s.identities.prune,
		func() (int, error) {
			s.allows.stale = nil
			for _, k := range stale {
				if s.groups[k.Group] {
					s.allows.stale = append(s.allows.stale, k)
				} else {
					unused = append(unused, k)
				}
			}
			return s.allows.prune()
		},
	} {
		n, err := write()
		total += n
		if err != nil {
			return total, err
		}
	}
	s.allows.stale = unused
	return total, nil
}

func (s *setsStep) prune() (int, error) { return s.allows.prune() }

func (s *setsStep) note(all map[Entry]bool) {
	s.identities.note(all)
	s.allows.note(all)
}
