package datapath

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// cookieMask is COOKIE_MASK of bpf/cookie.h.
const cookieMask = 0x3ff

// cookie returns the cookie of a destination: bits of HMAC-SHA256 with the nonce as the
// key. By its cookie a node recognises a quoted tunnel packet that it has sent.
func (n nonce) cookie(destination vrouterAddress) uint16 {
	key := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n[0]), n[1])
	h := hmac.New(sha256.New, key)
	h.Write([]byte("vrouter cookie"))
	h.Write(destination.Bytes[:])
	return binary.LittleEndian.Uint16(h.Sum(nil)) & cookieMask
}

// addCookies sets the cookies of paths and remotes.
func (v *values) addCookies(n nonce) {
	for id, nh := range v.nexthops {
		for i := range nh.Paths {
			nh.Path[i].Cookie = n.cookie(nh.Path[i].Destination)
		}
		v.nexthops[id] = nh
	}
	for address, r := range v.remotes {
		r.Cookie = n.cookie(address)
		v.remotes[address] = r
	}
}
