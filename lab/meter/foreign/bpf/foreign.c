// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * CPU time of foreign tasks: at every context switch the time that the task
 * which leaves the CPU was on it is added up, if that task is a user's and
 * belongs neither to the experiment's network namespaces nor to its processes.
 *
 * Whether a task is foreign is decided when it gets the CPU: when it leaves for
 * good, its namespaces are gone already (do_exit, kernel/exit.c).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define MAX_OURS 4096
#define MAX_TASKS 1024
#define COMM_LEN 16 /* TASK_COMM_LEN, include/linux/sched.h */
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

/* The few fields of the kernel's structures that tell whose a task is. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));
struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));
struct nsproxy {
	struct net *net_ns;
} __attribute__((preserve_access_index));
struct task_struct {
	unsigned int flags;
	int tgid;
	struct task_struct *group_leader;
	char comm[COMM_LEN];
	struct nsproxy *nsproxy;
} __attribute__((preserve_access_index));

/* Counted up by the loader whenever it has changed the two sets below. */
volatile __u32 edition;

/* The experiment: what is in one of these is not foreign. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_OURS);
	__type(key, __u32); /* inode of a network namespace */
	__type(value, __u8);
} namespaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_OURS);
	__type(key, __u32); /* process: the kernel's tgid */
	__type(value, __u8);
} processes SEC(".maps");

/*
 * One CPU: what has been added up, and the task that runs now. The first and
 * the last field are alike unless the CPU was just writing between them: it
 * counts up the last first. A reader copies upwards and tries again when they
 * differ.
 */
struct cpu {
	__u64 ended;
	__u64 foreign_ns; /* of foreign tasks that have left the CPU */
	__u64 since;      /* when a foreign task got the CPU that has it now */
	__u32 tgid;       /* of that task */
	__u8 foreign;     /* the running task is foreign: the two above hold */
	__u8 watched;     /* set by the loader: this CPU counts */
	__u8 last_foreign; /* the last user task that was judged, and the verdict */
	__u8 pad;
	__u32 last_tgid;
	__u32 last_netns;
	__u32 last_edition;
	__u32 pad2;
	__u64 begun;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* Who it was. The CPU is part of the key, so that no two CPUs add to one. */
struct task_key {
	__u32 tgid;
	__u32 cpu;
};
struct task_time {
	__u64 ns;
	__u8 comm[COMM_LEN]; /* of the process, not of its thread */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_TASKS);
	__type(key, struct task_key);
	__type(value, struct task_time);
} tasks SEC(".maps");

/* Whether a task is foreign. The answer for the last user task is kept: what
 * alternates with a busy program is mostly idle time and the kernel's threads.
 */
static __always_inline __u8 is_foreign(struct task_struct *t, __u32 tgid, struct cpu *p)
{
	struct nsproxy *proxy;
	__u32 netns;

	if (!tgid || t->flags & PF_KTHREAD)
		return 0; /* idle, or the kernel's own */
	proxy = t->nsproxy;
	if (!proxy)
		return 0; /* it is about to be gone, and nobody can tell whose it was */
	netns = proxy->net_ns->ns.inum;
	if (p->last_tgid == tgid && p->last_netns == netns && p->last_edition == edition)
		return p->last_foreign;
	p->last_edition = edition; /* before the sets are looked at */
	barrier();
	p->last_tgid = tgid;
	p->last_netns = netns;
	p->last_foreign = !bpf_map_lookup_elem(&namespaces, &netns) &&
			  !bpf_map_lookup_elem(&processes, &tgid);
	return p->last_foreign;
}

static __always_inline void note(struct task_struct *t, __u32 tgid, __u64 ns)
{
	struct task_key key = { .tgid = tgid, .cpu = bpf_get_smp_processor_id() };
	struct task_time *known = bpf_map_lookup_elem(&tasks, &key);

	if (known) {
		known->ns += ns;
		/* Each time: what a shell starts bears its name until it execs. */
		bpf_probe_read_kernel(known->comm, sizeof(known->comm), &t->group_leader->comm);
	} else {
		struct task_time fresh = { .ns = ns };

		bpf_probe_read_kernel(fresh.comm, sizeof(fresh.comm), &t->group_leader->comm);
		bpf_map_update_elem(&tasks, &key, &fresh, BPF_ANY);
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, int preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 zero = 0;
	struct cpu *p = bpf_map_lookup_elem(&cpus, &zero);
	__u32 tgid;
	__u8 foreign;
	__u64 now;

	if (!p || !p->watched)
		return 0;
	tgid = next->tgid;
	foreign = is_foreign(next, tgid, p);
	if (!p->foreign && !foreign)
		return 0; /* the common case; asking the time is half of the cost */

	now = bpf_ktime_get_ns();
	p->begun++;
	barrier();
	/* Another task leaves than the one that came: a switch between them went
	 * by unseen, and nobody can tell when. It is not held against anyone. */
	if (p->foreign && prev->tgid == (int)p->tgid) {
		__u64 ns = now - p->since;

		p->foreign_ns += ns;
		note(prev, p->tgid, ns);
	}
	p->since = now;
	p->tgid = tgid;
	p->foreign = foreign;
	barrier();
	p->ended++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
