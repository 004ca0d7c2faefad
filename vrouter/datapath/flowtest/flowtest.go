// Package flowtest runs the data path's flow table, policy and ECMP by
// themselves, on the kernel's own maps, with frames made for the purpose.
package flowtest

// `make generate` sets BPF2GO_CFLAGS to find the architecture's own headers.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -tags linux -target bpfel -no-global-types -type drop_reason -type fragment_heads bpf flowtest.c
