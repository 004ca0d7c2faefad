// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The wire between the nodes' NICs: a learning switch on the ports of the wire
 * namespace, and a clock on the CPU time that the switch and the ports spend.
 *
 * A frame enters at a port's tc ingress and is redirected to the port of its
 * destination. That port has no segmentation offload, so the kernel cuts a
 * superframe into wire frames there: this is the NIC's work, not a node's, and
 * is why it is timed here and kept off the nodes' figures.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define MAX_PORTS 64

/* The few fields of the kernel's structures that the clock follows. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));
struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));
typedef struct {
	struct net *net;
} possible_net_t;
struct net_device {
	possible_net_t nd_net;
	int ifindex;
} __attribute__((preserve_access_index));
struct netdev_queue {
	struct net_device *dev;
} __attribute__((preserve_access_index));
struct sk_buff {
	struct net_device *dev;
	__u8 ip_summed : 2;
} __attribute__((preserve_access_index));
struct Qdisc;
struct nsproxy {
	struct net *net_ns;
} __attribute__((preserve_access_index));
struct task_struct {
	struct nsproxy *nsproxy;
} __attribute__((preserve_access_index));

/* Set by the loader: the inode of the wire's network namespace. */
volatile const __u32 wire_netns = 0;

/* Set by tests: count where each namespace's packets climb the stack. */
volatile const __u32 count_places = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); /* inode of the network namespace */
	__type(value, __u64); /* packets that this CPU handed to the stack */
} places SEC(".maps");

/* What a receiver knows of the checksums of a frame when GRO gets it. */
struct arrival {
	__u32 netns;     /* inode of the network namespace */
	__u32 ifindex;
	__u32 ip_summed; /* CHECKSUM_NONE, CHECKSUM_UNNECESSARY, ..., linux/skbuff.h */
};

/* Counted together with places. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct arrival);
	__type(value, __u64); /* frames */
} arrivals SEC(".maps");

/* Set by the loader: receive queues of each NIC, and whether each adapter has one. */
volatile const __u32 nic_queues = 1;
volatile const __u32 by_adapter = 0;

/* A port's segment (one for each parallel link) and its only peer, where the
 * segment has just two ports. */
struct port {
	__u32 segment;
	__u32 peer;     /* ifindex; 0 = look the address up */
	__u32 node;     /* the port's number on its segment */
	__u32 stations; /* whose addresses: a team has the same on all segments, and
			 * may answer on another than it was asked on */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32); /* ifindex */
	__type(value, struct port);
} ports SEC(".maps");

/* The ports of each segment, for flooding: key = segment * MAX_PORTS + i. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS * MAX_PORTS);
	__type(key, __u32);
	__type(value, __u32); /* ifindex */
} members SEC(".maps");

struct station {
	__u32 stations;
	__u8 mac[ETH_ALEN];
	__u8 pad[2];
};

/* The node at which each MAC address was last seen. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct station);
	__type(value, __u32); /* node */
} stations SEC(".maps");

/* The receive queue of each adapter behind a port, and how many adapters of a
 * port have one. */
struct adapter {
	__u32 port; /* ifindex */
	__u8 mac[ETH_ALEN];
	__u8 pad[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct adapter);
	__type(value, __u32); /* queue */
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32); /* ifindex */
	__type(value, __u32); /* adapters */
} adapters SEC(".maps");

/*
 * The clock of one CPU. Receive work: from the moment a frame of the wire is
 * handed to the stack until a frame of somebody else's is, or the softirq
 * ends. Transmit work: a NET_TX softirq in which a port's queue, once stopped
 * by a full NIC ring, is run again.
 */
struct clock {
	__u64 busy_ns;    /* accumulated since the program was loaded */
	__u64 rx_started; /* 0: no receive work of the wire is under way */
	__u64 tx_started; /* 0: outside a NET_TX softirq */
	__u32 tx_ours;    /* this NET_TX softirq serves a port */
	__u32 pad;
	__u64 on_line_ns; /* time of all softirqs on top of delay lines */
	__u64 on_line_started; /* 0: outside such a softirq */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct clock);
} clocks SEC(".maps");

static __always_inline struct clock *this_clock(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&clocks, &zero);
}

static __always_inline int ours(struct net_device *dev)
{
	return dev->nd_net.net->ns.inum == wire_netns;
}

/* Set by the loader: the wire has delay lines. The CPU time of a delay line includes
 * softirqs that interrupt it, so the clock must not count these twice. */
volatile const __u32 delayed = 0;

/* No program but the delay lines runs in the wire's network namespace. */
static __always_inline int in_line(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return delayed && BPF_CORE_READ(task, nsproxy, net_ns, ns.inum) == wire_netns;
}

static __always_inline void receive_ends(struct clock *c)
{
	if (!c->rx_started)
		return;
	c->busy_ns += bpf_ktime_get_ns() - c->rx_started;
	c->rx_started = 0;
}

/*
 * The receive queue of an adapter. Adapters get the queues in the order in which
 * frames for them first arrive. Without a free queue they share queue 0, which
 * also has the frames to groups.
 */
static __always_inline __u32 queue_of(__u32 port, const struct adapter *a)
{
	__u32 *known = bpf_map_lookup_elem(&queues, a), *taken, none = 0, queue;

	if (known)
		return *known;
	bpf_map_update_elem(&adapters, &port, &none, BPF_NOEXIST);
	taken = bpf_map_lookup_elem(&adapters, &port);
	if (!taken)
		return 0;
	/* Not atomic, which Linux 5.12 would need: the proof of connectivity sends the
	 * first frames of the adapters one after the other. */
	queue = (*taken)++;
	if (queue >= nic_queues)
		queue = 0;
	bpf_map_update_elem(&queues, a, &queue, BPF_NOEXIST);
	return queue;
}

static __always_inline void flood(struct __sk_buff *skb, const struct port *p)
{
	for (__u32 i = 0; i < MAX_PORTS; i++) {
		__u32 key = p->segment * MAX_PORTS + i;
		__u32 *out = bpf_map_lookup_elem(&members, &key);

		if (!out)
			return;
		if (i == p->node)
			continue;
		bpf_clone_redirect(skb, *out, 0);
	}
}

SEC("tc")
int wire(struct __sk_buff *skb)
{
	__u32 in = skb->ifindex, member, *known, *out;
	struct station st = {};
	struct port *p;

	p = bpf_map_lookup_elem(&ports, &in);
	if (!p)
		return TC_ACT_SHOT;
	if (p->peer)
		return bpf_redirect(p->peer, 0);

	st.stations = p->stations;
	if (bpf_skb_load_bytes(skb, ETH_ALEN, st.mac, ETH_ALEN))
		return TC_ACT_SHOT;
	known = bpf_map_lookup_elem(&stations, &st);
	if (!known || *known != p->node)
		bpf_map_update_elem(&stations, &st, &p->node, BPF_ANY);
	if (bpf_skb_load_bytes(skb, 0, st.mac, ETH_ALEN))
		return TC_ACT_SHOT;
	if (!(st.mac[0] & 1)) {
		known = bpf_map_lookup_elem(&stations, &st);
		if (known) {
			if (*known == p->node)
				return TC_ACT_SHOT;
			member = p->segment * MAX_PORTS + *known;
			out = bpf_map_lookup_elem(&members, &member);
			if (!out)
				return TC_ACT_SHOT;
			return bpf_redirect(*out, 0);
		}
	}
	flood(skb, p);
	return TC_ACT_SHOT;
}

/*
 * At the egress of a port whose NIC has several queues: choose the receive queue,
 * by flow, or as a NIC with a queue for each adapter (VMQ) does. A port sends a
 * frame with a recorded receive queue on the transmit queue of that number
 * (skb_tx_hash, net/core/dev.c), and a veth delivers it to the peer's receive
 * queue of that number. Without this all frames were on queue 0, because the
 * field still has the number of the sender's transmit queue. Datagrams of a
 * connected UDP socket keep the queue that the sender's NIC chose: the socket
 * remembers it.
 */
SEC("tc")
int steer(struct __sk_buff *skb)
{
	struct adapter a = { .port = skb->ifindex };
	__u32 queue = 0;

	if (!by_adapter)
		queue = bpf_get_hash_recalc(skb) % nic_queues;
	else if (!bpf_skb_load_bytes(skb, 0, a.mac, ETH_ALEN) && !(a.mac[0] & 1))
		queue = queue_of(a.port, &a);
	skb->queue_mapping = queue + 1; /* skb_record_rx_queue, linux/skbuff.h */
	return TC_ACT_UNSPEC;
}

/*
 * The transmit side of a node's NIC, at the egress of its fabric device. A
 * TCP segment train that crosses a veth keeps its socket; whoever frees it at
 * the far end then runs that socket's transmit path (tcp_wfree, TCP small
 * queues) on the receiver's CPU: the sender's cost would be booked there, and
 * trains sent from two CPUs overtake each other. A clone has no socket. So the
 * train goes on as a clone and the original completes here, on the sender's
 * CPU, as a NIC's transmit completion does. Other sockets keep theirs: it is
 * what makes a UDP sender wait for a full wire.
 */
SEC("tc")
int nic_transmit(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	if (!sk)
		return TC_ACT_UNSPEC;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_TCP)
		return TC_ACT_UNSPEC;
	if (bpf_clone_redirect(skb, skb->ifindex, 0))
		return TC_ACT_UNSPEC;
	return TC_ACT_STOLEN;
}

/* Bytes that are summed at a time: the most that bpf_csum_diff takes up to Linux 6.12. */
#define CHUNK 512

struct chunk {
	__u8 bytes[CHUNK];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chunk);
} chunks SEC(".maps");

/* Adds n bytes of a packet to a checksum, 1 to CHUNK. Returns a negative value if there are fewer. */
static __always_inline __s64 add_bytes(struct __sk_buff *skb, struct chunk *c, __u32 at, __u32 n, __s64 sum)
{
	if (bpf_skb_load_bytes(skb, at, c->bytes, n))
		return -1;
	return bpf_csum_diff(0, 0, (void *)c->bytes, CHUNK, sum);
}

/* Returns 1 if the TCP or UDP segment of `length` bytes at `at` has the right checksum. addresses:
 * offset of both IP addresses, which have n bytes. */
static __always_inline int is_right(struct __sk_buff *skb, __u32 addresses, __u32 n, __u32 at, __u32 length, __u8 protocol)
{
	__s64 sum = bpf_htons(length) + bpf_htons(protocol);
	__u32 zero = 0;
	struct chunk *c = bpf_map_lookup_elem(&chunks, &zero);

	if (!c || !length)
		return 0;
	for (__u32 i = 0; i < 65536 / CHUNK && length > CHUNK; i++) {
		sum = add_bytes(skb, c, at, CHUNK, sum);
		if (sum < 0)
			return 0;
		at += CHUNK;
		length -= CHUNK;
	}
	__builtin_memset(c->bytes, 0, CHUNK);
	asm volatile("" : "+r"(length)); /* the verifier must see the bounds in the next line */
	sum = add_bytes(skb, c, at, ((length - 1) & (CHUNK - 1)) + 1, sum);
	if (sum < 0)
		return 0;
	__builtin_memset(c->bytes, 0, CHUNK);
	sum = add_bytes(skb, c, addresses, n == 8 ? 8 : 32, sum);
	if (sum < 0)
		return 0;
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/*
 * The receive side of a NIC that verifies the outermost checksum of a frame: TCP's, or UDP's unless it
 * is 0. The frame then arrives as CHECKSUM_UNNECESSARY, and else as CHECKSUM_NONE. It runs at the egress of a
 * port, behind the device that cuts superframes and fills in checksums.
 */
SEC("tc")
int nic_receive(struct __sk_buff *skb)
{
	__u32 at = ETH_HLEN, n = 0, length = 0, addresses = 0;
	struct ipv6hdr ip6;
	struct iphdr *ip = (void *)&ip6;
	__u8 protocol = 0;
	__u16 field = 1;

	if (skb->protocol == bpf_htons(ETH_P_IP) && !bpf_skb_load_bytes(skb, at, ip, sizeof(*ip))) {
		if (ip->frag_off & bpf_htons(0x3fff))
			return TC_ACT_UNSPEC;
		protocol = ip->protocol;
		n = 8;
		length = bpf_ntohs(ip->tot_len) - ip->ihl * 4;
		at += ip->ihl * 4;
		addresses = ETH_HLEN + 12;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6) && !bpf_skb_load_bytes(skb, at, &ip6, sizeof(ip6))) {
		protocol = ip6.nexthdr;
		n = 32;
		length = bpf_ntohs(ip6.payload_len);
		at += sizeof(ip6);
		addresses = ETH_HLEN + 8;
	}
	if (protocol == IPPROTO_UDP && bpf_skb_load_bytes(skb, at + 6, &field, sizeof(field)))
		return TC_ACT_UNSPEC;
	if ((protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) && field && length <= 0xffff &&
	    is_right(skb, addresses, n, at, length, protocol))
		bpf_csum_level(skb, BPF_CSUM_LEVEL_INC);
	return TC_ACT_UNSPEC;
}

/* Softirq vectors, include/linux/interrupt.h. */
#define NET_TX_SOFTIRQ 2
#define NET_RX_SOFTIRQ 3

static __always_inline void count_place(struct sk_buff *skb)
{
	__u32 netns = skb->dev->nd_net.net->ns.inum;
	__u64 one = 1, *n = bpf_map_lookup_elem(&places, &netns);

	if (n)
		(*n)++;
	else
		bpf_map_update_elem(&places, &netns, &one, BPF_ANY);
}

static __always_inline void count_arrival(struct sk_buff *skb)
{
	struct arrival a = { skb->dev->nd_net.net->ns.inum, skb->dev->ifindex, BPF_CORE_READ_BITFIELD(skb, ip_summed) };
	__u64 one = 1, *n = bpf_map_lookup_elem(&arrivals, &a);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&arrivals, &a, &one, BPF_NOEXIST);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(clock_receive, struct sk_buff *skb)
{
	struct clock *c = this_clock();

	if (count_places)
		count_place(skb);

	if (!c)
		return 0;
	if (!ours(skb->dev))
		receive_ends(c);
	else if (!c->rx_started)
		c->rx_started = bpf_ktime_get_ns();
	return 0;
}

/* A port that polls: its work begins before the stack gets the packet. */
SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(clock_gro, struct sk_buff *skb)
{
	struct clock *c;

	if (count_places)
		count_arrival(skb);
	if (!ours(skb->dev))
		return 0;
	c = this_clock();
	if (c && !c->rx_started)
		c->rx_started = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(clock_softirq_entry, unsigned int vec)
{
	struct clock *c;

	if (vec != NET_TX_SOFTIRQ && !delayed)
		return 0;
	c = this_clock();
	if (!c)
		return 0;
	if (in_line())
		c->on_line_started = bpf_ktime_get_ns();
	if (vec == NET_TX_SOFTIRQ) {
		c->tx_started = bpf_ktime_get_ns();
		c->tx_ours = 0;
	}
	return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(clock_dequeue, struct Qdisc *q, const struct netdev_queue *txq)
{
	struct clock *c = this_clock();

	if (c && c->tx_started && !c->tx_ours && ours(txq->dev))
		c->tx_ours = 1;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(clock_softirq_exit, unsigned int vec)
{
	struct clock *c;

	if (vec != NET_TX_SOFTIRQ && vec != NET_RX_SOFTIRQ && !delayed)
		return 0;
	c = this_clock();
	if (!c)
		return 0;
	if (c->on_line_started) {
		c->on_line_ns += bpf_ktime_get_ns() - c->on_line_started;
		c->on_line_started = 0;
	}
	if (vec == NET_RX_SOFTIRQ) {
		receive_ends(c);
		return 0;
	}
	if (vec == NET_TX_SOFTIRQ && c->tx_started && c->tx_ours)
		c->busy_ns += bpf_ktime_get_ns() - c->tx_started;
	if (vec == NET_TX_SOFTIRQ)
		c->tx_started = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
