package datapath

// `make generate` sets BPF2GO_CFLAGS, so that clang finds the headers of this
// architecture.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -tags linux -target bpfel -no-global-types vrouter bpf/vrouter.c
//go:generate go run ../layout/generate.go vrouter_bpfel.o address nexthop path member_key member host4_key host6_key lpm4_key lpm6_key route bridge_key bridge_entry target vif vrf node_settings remote sender_key sender learned_mtu flow_key flow rule rule_chunk rules_key policy identity_key identity allow_key allow vif_counters vrf_counters outcome_counters drop_key fallback_key drop_event trace service_key service backend_key backend service_range affinity_key affinity nat floating_key floating
