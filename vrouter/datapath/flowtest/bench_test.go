package flowtest

import (
	"testing"

	"github.com/cilium/ebpf"
)

// What a packet of a known flow costs on its way through the judge, without
// the rest of a program; and a new flow's with the longest policy.
func BenchmarkAdmit(b *testing.B) {
	h := load(b)
	long := policy{generation: 1, allowOut: true}
	for range 64 {
		long.rules = append(long.rules, rule{egress: true, protocol: 17, remote: prefix("198.51.100.0/24"), first: 1, last: 1})
	}
	h.apply(long)
	run := func(name string, frame []byte) {
		b.Run(name, func(b *testing.B) {
			context := skbContext{Mark: vifKey}
			if _, err := h.Admit.Run(&ebpf.RunOptions{Data: frame, Context: context, Repeat: uint32(b.N)}); err != nil {
				b.Fatal(err)
			}
		})
	}
	h.established(6, local4, remote4)
	run("known TCP flow", tcp(local4, remote4, "A"))
	run("known UDP flow, IPv6", udp(local6, remote6, 10))
	h.apply(policy{generation: 2})
	run("denied flow", udp(local4, withPort(remote4, 9), 10))
	run("no IP", append(serialize(ethernet(0x0806)), make([]byte, 46)...))
}
