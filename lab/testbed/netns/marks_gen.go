package netns

// `make generate` sets BPF2GO_CFLAGS to find the architecture's own headers.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -tags linux -target bpfel marks bpf/marks.c
