package category

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
)

func standardRules(t testing.TB) *Rules {
	t.Helper()
	return must.Get(Standard())(t)
}

// stack makes frames of a chain in which kernel functions stand after "|".
func stack(chain string) []string {
	user, kernel, _ := strings.Cut(chain, "|")
	frames := strings.Fields(user)
	for _, f := range strings.Fields(kernel) {
		frames = append(frames, f+folded.KernelSuffix)
	}
	return frames
}

func TestTheFrameNearestTheLeafThatNamesALayerDecides(t *testing.T) {
	const rx = "| handle_softirqs net_rx_action __napi_poll process_backlog __netif_receive_skb_core "
	const tx = "main | entry_SYSCALL_64_after_hwframe do_syscall_64 __sys_sendto sock_sendmsg tcp_sendmsg "
	tests := []struct{ chain, want string }{
		{"| cpu_startup_entry do_idle cpuidle_enter default_idle pv_native_safe_halt", folded.Idle},
		{"| cpu_startup_entry do_idle default_idle asm_sysvec_call_function_single __irq_exit_rcu handle_softirqs net_rx_action", "softirq and IPI"},
		{"| cpu_startup_entry do_idle schedule_idle __schedule finish_task_switch.isra.0", "scheduler"},
		{"main tcp_loop", folded.Generator},
		{"main | entry_SYSCALL_64_after_hwframe", "syscall and copy"},
		{tx + "tcp_sendmsg_locked skb_do_copy_data_nocache _copy_from_iter rep_movs_alternative", "syscall and copy"},
		{tx + "tcp_sendmsg_locked tcp_stream_alloc_skb __alloc_skb kmem_cache_alloc_node_noprof", "skb and memory allocation"},
		{tx + "tcp_write_xmit __tcp_transmit_skb ip_finish_output2 __local_bh_enable_ip", "IP and routing"},
		{tx + "tcp_write_xmit validate_xmit_skb __skb_gso_segment skb_mac_gso_segment tcp4_gso_segment skb_segment __alloc_skb kmem_cache_alloc_node_noprof", "GSO (software segmentation)"},
		{tx + "tcp_write_xmit __skb_gso_segment tcp4_gso_segment gso_make_checksum csum_partial", "checksum"},
		{tx + "__dev_queue_xmit __qdisc_run sch_direct_xmit pfifo_enqueue", "qdisc"},
		{tx + "__dev_queue_xmit dev_hard_start_xmit veth_xmit _raw_spin_lock", "veth and backlog"},
		{rx + "br_handle_frame br_forward br_dev_queue_push_xmit", "bridge"},
		{rx + "ip_rcv udp_rcv vxlan_rcv", "VXLAN and tunnels"},
		{rx + "ip_rcv udp_queue_rcv_skb", "UDP"},
		{rx + "tcp_v4_rcv tcp_rcv_established sock_def_readable __wake_up_common try_to_wake_up _raw_spin_unlock_irqrestore", "scheduler"},
		{rx + "nf_hook_slow nf_conntrack_in", "netfilter"},
		{"| kthread napi_threaded_poll_loop __napi_poll veth_poll napi_gro_receive dev_gro_receive tcp4_gro_receive skb_gro_receive", "GRO"},
		{rx + "sch_handle_ingress cls_bpf_classify bpf:from_workload bpf:find_head htab_map_hash", "vrouter: from_workload"},
		{rx + "sch_handle_ingress bpf:fabric_tc bpf:decapsulate bpf_skb_adjust_room pskb_expand_head __kmalloc", "vrouter: fabric_tc"},
		{rx + "sch_handle_ingress skb_do_redirect __bpf_redirect __dev_queue_xmit veth_xmit", "veth and backlog"},
		{rx + "sch_handle_ingress bpf:somebody_elses", "other BPF"},
		{rx + "__traceiter_netif_receive_skb __bpf_trace_netif_receive_skb bpf:clock_receive", "fabric (the lab's NIC and clock)"},
		{rx + "sch_handle_egress bpf:nic_transmit bpf_clone_redirect skb_clone", "fabric (the lab's NIC and clock)"},
		{"| kthread napi_threaded_poll_loop veth_poll veth_xdp_rcv_skb veth_convert_skb_to_xdp_buff skb_pp_cow_data page_pool_alloc_frag", "XDP (buffers for it)"},
		{"| kthread worker_thread process_one_work", "timer and housekeeping"},
		{"| a_function_of_a_later_kernel", folded.Other},
	}
	rules := standardRules(t)
	for _, test := range tests {
		role := RoleTool
		if strings.HasPrefix(test.chain, "|") {
			role = RoleKernel
		}
		if got := rules.Of(stack(test.chain), role); got != test.want {
			t.Errorf("%s: %q, want %q", test.chain, got, test.want)
		}
	}
}

// What a program that is no part of the trial does is its own, but a softirq
// that interrupts it is not.
func TestAProgramsWorkHasItsRoleAndAnInterruptDoesNot(t *testing.T) {
	rules := standardRules(t)
	own := stack("main | entry_SYSCALL_64_after_hwframe do_syscall_64 ksys_read vfs_read")
	interrupt := stack("main | asm_sysvec_call_function_single handle_softirqs net_rx_action process_backlog ip_rcv tcp_v4_rcv")
	for role, want := range map[Role]string{RoleForeign: folded.Foreign, RoleObserver: folded.Observer, RoleTool: "syscall and copy"} {
		if got := rules.Of(own, role); got != want {
			t.Errorf("%s reads a file: %q, want %q", role, got, want)
		}
		if got := rules.Of(interrupt, role); got != "TCP" {
			t.Errorf("%s is interrupted: %q, want TCP", role, got)
		}
	}
	must.Equal(t, folded.Foreign, rules.Of([]string{"main"}, RoleForeign))
	must.Equal(t, folded.Other, rules.Of(nil, RoleKernel))
}

// names lists all categories that the rules can assign to a stack, in its order.
func (t *Rules) names() []string {
	names := []string{}
	seen := map[string]bool{}
	add := func(n string) {
		if n != none && !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	for _, r := range t.rules {
		add(r.category)
	}
	for _, n := range []string{folded.Generator, folded.Observer, folded.Foreign, folded.Other, folded.Unseen, folded.Wire, folded.Idle} {
		add(n)
	}
	return names
}
func TestTheTableNamesEveryCategoryOnce(t *testing.T) {
	names := standardRules(t).names()
	for _, want := range []string{"GSO (software segmentation)", "TCP", "vrouter: fabric_xdp", folded.Idle, folded.Wire, folded.Generator, folded.Unseen} {
		if !slices.Contains(names, want) {
			t.Errorf("%q is missing", want)
		}
	}
	sorted := slices.Sorted(slices.Values(names))
	if len(slices.Compact(sorted)) != len(names) {
		t.Errorf("a name stands twice: %q", names)
	}
}

func TestABadTableIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"TCP\tdecides":                  "line 1: 2 fields",
		"# x\nTCP\tdecide\ttcp_*":       `line 2: verb "decide"`,
		"TCP\tdecides\ttcp_[":           "line 1: pattern",
		"-\tdecides\ttcp_*":             "line 1: every verb but through",
		"TCP\tthrough\ttcp_*":           "line 1: every verb but through",
		"# nothing but a comment\n\n  ": "no rule",
	} {
		_, err := parse(text)
		must.Fail(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("TCP\tdecides\ttcp_* __tcp_*\n# comment\n-\tthrough\tmem*")
	f.Add("a\tlends\t[")
	f.Add("\t\t\t")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := parse(text)
		if (rules == nil) == (err == nil) {
			t.Fatalf("rules %v and error %v", rules, err)
		}
		if err == nil && rules.Of(stack("main | tcp_ack"), RoleTool) == "" {
			t.Error("a stack without a category")
		}
	})
}
