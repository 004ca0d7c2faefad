package datapath

// `make generate` sets BPF2GO_CFLAGS, so that clang finds the headers of this
// architecture.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -tags linux -target bpfel -type address -type nexthop -type path -type member_key -type member -type host4_key -type host6_key -type lpm4_key -type lpm6_key -type route -type bridge_key -type bridge_entry -type target -type vif -type vrf -type node_settings -type remote -type sender_key -type sender -type learned_mtu -type flow_key -type flow -type rule -type rule_chunk -type rules_key -type policy -type vif_counters -type vrf_counters -type outcome_counters -type drop_key -type fallback_key -type drop_event -type trace vrouter bpf/vrouter.c
