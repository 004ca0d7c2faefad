/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Keys and values of the maps: OpenContrail's objects. Integers are in host order
 * except where a comment says "network order". IPv4 addresses in 16-byte
 * fields are IPv4-mapped (::ffff:a.b.c.d).
 *
 * A change of any layout here raises LAYOUT_VERSION in layout.h.
 */
#pragma once

#define MAX_PATHS 4         /* underlay paths of a tunnel */
#define MAX_MEMBERS 128     /* members of a composite nexthop */
#define MAX_RULES 255       /* rules of a policy: flow.rule has 8 bits */
#define CHUNK_RULES 64      /* rules of a policy in one entry of a map */
#define MAX_LOCAL 4         /* underlay addresses of this node, by family */
#define MAX_SOURCES 4       /* source prefixes of a vif, by family */
#define MAX_VRFS 4096
#define FIRST_LABEL 16       /* a VRF has the labels 16 + 2 * id and 17 + 2 * id */

/* With this alignment, a copy takes 4 loads and stores instead of 16. */
struct address {
	__u8 bytes[16];
} __attribute__((aligned(4)));

enum nexthop_type {
	NH_DISCARD,
	NH_RECEIVE,    /* the vrouter itself: a subnet's gateway address */
	NH_ENCAP,      /* a local vif, behind a link-layer header */
	NH_TUNNEL,     /* a remote node or gateway */
	NH_COMPOSITE,  /* ECMP, or replication */
	NH_VRF,        /* look the inner destination up in a VRF's routes */
	NH_L2_RECEIVE, /* look the inner frame up in a VRF's bridge table */
};

enum encapsulation {
	ENCAP_NONE,
	ENCAP_MPLS_GRE,
	ENCAP_MPLS_UDP,
	ENCAP_VXLAN,
	ENCAP_DIRECT, /* no tunnel: the MAC addresses are labels (direct.h) */
	ENCAP_TRANSLATED, /* no tunnel: the addresses are translated (translate.h) */
	ENCAPS,
};

/* The locators of this node and of another node, and the parts of the addresses of the packets
 * between them (translate.h). */
enum locators {
	LOCATORS_NONE,
	LOCATORS_64_64,         /* this node's has 64 bits, and so has the other's */
	LOCATORS_64_80,
	LOCATORS_80_64,
	LOCATORS_80_ADJUSTMENT, /* both have 80 bits; this node's addresses have the adjustment */
	LOCATORS_80_NETWORK,    /* both have 80 bits; this node's addresses have the network */
};

/* nexthop.flags */
#define NH_F_MULTICAST (1 << 0) /* composite: replicate; else ECMP */
#define NH_F_DF (1 << 1)        /* tunnel: the outer IPv4 header forbids fragments */
#define NH_F_PEER (1 << 2)      /* encap: the workload's device is the peer of the vif's veth or netkit device */
#define NH_F_POLICY (1 << 3)    /* encap: the vif has VIF_F_POLICY */
#define NH_F_SERVICES (1 << 4)  /* encap: the vif has VIF_F_SERVICES */
#define NH_F_CHECKSUM (1 << 5)  /* tunnel: packets need an outer UDP checksum */
#define NH_F_CUT (1 << 6)       /* tunnel: the kernel must cut superpackets on this node */
#define NH_F_NAT (1 << 7)       /* encap, with NH_F_SERVICES: packets leave the network by the node, from an address of a pool (nat.h);
				 * tunnel: to a router outside the fleet, which knows workloads by their floating addresses */

/* One way through the underlay to a tunnel's end. */
struct path {
	struct address source;
	struct address destination;
	struct address gateway; /* address to resolve: next hop, or the destination */
	__u32 oif;              /* ifindex of the fabric device; 0: the path is down */
	__u8 gateway_family;    /* 4 or 6 */
	__u8 locators;          /* translated: enum locators */
	__u16 cookie;           /* cookie of the destination (cookie.h) */
};

struct nexthop {
	__u8 type;
	__u8 encap;      /* tunnel: enum encapsulation */
	__u8 family;     /* tunnel: underlay's, 4 or 6 */
	__u8 flags;
	__u32 vrf;       /* VRF and L2-receive: which; encap: the vif's */
	__u32 vif;       /* encap: vif id */
	__u32 oif;       /* encap: ifindex of the vif */
	__u32 remote;    /* tunnel: id of the node or gateway at its far end (struct remote); 0: unknown */
	__u32 fallback;  /* translated: nexthop for packets that cannot be translated; direct: for frames
			  * that cannot be restored; 0: none */
	__u8 dmac[6];    /* encap: the workload's; tunnel with VXLAN: remote router's */
	__u8 smac[6];    /* encap: this router's */
	__u16 mtu;       /* largest inner IP packet in bytes, without its Ethernet header */
	__be16 port;     /* tunnel over UDP: destination port, network order */
	__u16 members;   /* composite */
	__u8 paths;      /* tunnel: used entries of path */
	__u8 pad;
	struct path path[MAX_PATHS];
};

struct member_key {
	__u32 nexthop;
	__u32 index;
};

struct member {
	__u32 nexthop;
	__u32 label;     /* MPLS label, VNI or network (direct), by the encapsulation of nexthop or of its fallback */
};

/* route.flags */
#define ROUTE_F_MAC (1 << 0) /* mac is valid: ARP and ND are answered with it */
#define ROUTE_F_FLOATING (1 << 1) /* to the floating address of a workload on this node, or to an address of the node in the pool; nexthop: the way out of the network */

struct host4_key {
	__u32 vrf;
	__be32 address;
};

struct host6_key {
	__u32 vrf;
	struct address address;
};

/* Longest-prefix match: prefixlen counts the 32 bits of vrf too. vrf is in
 * network order so that it is compared whole. */
struct lpm4_key {
	__u32 prefixlen;
	__be32 vrf;
	__be32 address;
};

struct lpm6_key {
	__u32 prefixlen;
	__be32 vrf;
	struct address address;
};

struct route {
	__u32 nexthop;
	__u32 label;     /* MPLS label, VNI or network (direct) that the remote node expects */
	__u8 mac[6];     /* stitched MAC, where ROUTE_F_MAC is set */
	__u16 flags;
};

struct bridge_key {
	__u32 vrf;
	__u8 mac[6];
	__u16 pad;
};

struct bridge_entry {
	__u32 nexthop;
	__u32 label;     /* MPLS label of Ethernet payload, or VNI, by the encapsulation of nexthop or of its fallback */
};

/* ilm: label -> struct target; vnis: VNI -> struct target. */
struct target {
	__u32 nexthop;   /* 0: an empty entry of the array ilm */
	__u8 ethernet;   /* 1: the payload is an Ethernet frame; 0: IP */
	__u8 pad[3];
};

struct source4 {
	__be32 address;
	__be32 mask;
};

struct source6 {
	struct address address;
	struct address mask;
};

/* vif.flags */
#define VIF_F_L2 (1 << 0)        /* its network bridges */
#define VIF_F_L3 (1 << 1)        /* its network routes */
#define VIF_F_POLICY (1 << 2)    /* flows are tracked and judged by policy */
#define VIF_F_AGENT (1 << 3)     /* the agent answers its DHCP, router solicitations and DNS */
#define VIF_F_ROUTER (1 << 4)    /* may advertise itself as a router and answer DHCP */
#define VIF_F_NETKIT (1 << 5)    /* its device is a netkit pair, with from_workload also at the hook of the workload's end */
#define VIF_F_NODE (1 << 6)      /* connects the node, which forwards packets of its workloads and from outside */
#define VIF_F_SERVICES (1 << 7)  /* its workload reaches services (service.h) */
#define VIF_F_OPEN (1 << 8)      /* with VIF_F_POLICY: its flows are counted, and all packets pass */
#define VIF_F_FLOATING (1 << 9)  /* its workload has a floating address (nat.h) */

struct vif {
	__u32 id;        /* small and dense: index of vif_stats */
	__u32 vrf;
	__u32 nexthop;   /* encap nexthop of this vif */
	__u16 flags;
	__u16 mtu;
	__u64 egress;    /* limit for packets from the workload, bytes per second; 0: none */
	__u8 mac[6];     /* the workload's */
	__u8 router_mac[6]; /* the vrouter's, as the workload sees it */
	__u8 sources4;
	__u8 sources6;
	__u8 pad[2];
	__be32 gateway4;    /* source of ICMP errors; 0: none */
	struct address gateway6;
	struct source4 source4[MAX_SOURCES];
	struct source6 source6[MAX_SOURCES];
	__u32 pad2;
};

struct vrf {
	__u32 flood;     /* composite nexthop for broadcast, unknown, multicast; 0: none */
	__u16 flags;     /* VIF_F_L2, VIF_F_L3 */
	__u16 pad;
	__u8 router_mac[6];
	__u8 pad2[2];
	__be32 prefix6[3]; /* first 96 bits of its IPv6 addresses that can be translated */
};

/* settings.flags */
#define SET_F_STRICT (1 << 0) /* overlay packets only from known remotes */
#define SET_F_ONE_ENCAP (1 << 1) /* all tunnels have one encapsulation */
#define SET_F_MPLS_UDP (1 << 2) /* this node accepts MPLS over UDP; else it belongs to other programs */
#define SET_F_MPLS_GRE (1 << 3) /* the same for MPLS over GRE */

struct node_settings {
	__u32 flags;
	__be16 vxlan_port;
	__be16 last_label;                 /* highest network whose label this node receives; 0: all */
	__be32 locator[2];                 /* first 64 bits of this node's locator (translate.h); 0: none */
	__be16 locator_end;                /* next 16 bits of a locator of 80 bits; else 0 */
	__be16 locator_mask;               /* 0xffff: the locator has 80 bits; 0: 64 */
	__be32 local4[MAX_LOCAL];          /* 0: unused */
	struct address local6[MAX_LOCAL];  /* ::: unused */
};

/* remotes: struct address -> struct remote. Who may send overlay packets. */
struct remote {
	__u32 nexthop;   /* tunnel to the remote; its learned MTU is stored by this id */
	__u32 ethernet;  /* second tunnel, for Ethernet in MPLS; its MTU is stored too; 0: none */
	__u32 id;        /* of the node or gateway */
	__u8 encaps;     /* encapsulations that the remote may use: bits 1 << enum encapsulation */
	__u8 locators;   /* enum locators; LOCATORS_NONE: the key is an underlay address */
	__u16 cookie;    /* cookie of the remote (cookie.h) */
};

/* Key of senders: a prefix from which a node or gateway may send, in addition to the
 * addresses whose routes lead to it. Integers are in network order, as in lpm4_key. */
struct sender_key {
	__u32 prefixlen; /* bits, including the 64 bits before address */
	__be32 remote;
	__be16 vrf;
	__u8 family;     /* 4 or 6; 0: the remote may send frames from any MAC address */
	__u8 pad;
	struct address address;
};

struct sender {
	__u32 known;     /* always 1 */
};

/* learned_mtus[nexthop id]: MTU from the underlay's routers (RFC 1191, 8201). */
struct learned_mtu {
	__u32 mtu;       /* of the outer packet, bytes; 0: nothing learned */
	__u32 pad;
	__u64 until_ns;  /* bpf_ktime_get_ns */
	__u64 ignore_ns; /* after a forged ICMP error: errors about the tunnel are ignored until then */
};

enum protocol_family { FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

/* A flow as a vif's workload sees it: one entry serves both directions. */
struct flow_key {
	__u32 vif;
	struct address local;
	struct address remote;
	__be16 local_port;  /* ICMP: identifier */
	__be16 remote_port; /* ICMP: 0 */
	__u8 protocol;
	__u8 pad[3];
};

enum flow_action { FLOW_FORWARD, FLOW_DROP };

/* flow.tcp */
#define FLOW_TCP_SYN (1 << 0)
#define FLOW_TCP_ESTABLISHED (1 << 1)
#define FLOW_TCP_FIN_OUT (1 << 2)
#define FLOW_TCP_FIN_IN (1 << 3)
#define FLOW_TCP_RST (1 << 4)

/* flow.translation: what happens to the addresses of packets from the workload (service.h). rewrite.h depends on the order. */
enum translation {
	TRANSLATION_NONE,
	TO_BACKEND,   /* the destination, which is a service, becomes `other` */
	FROM_BACKEND, /* the source of packets to the workload becomes `other`, the service */
	TO_ITSELF,    /* the workload is the backend: the addresses are exchanged, `other_port` is the destination port */
	FROM_ITSELF,  /* its answer: the addresses are exchanged, `other_port` is the source port */
};

/* Each packet changes the counters. Often two CPUs use one flow, one for each direction. So
 * the fields that each packet reads are together, and the counters are behind them: the
 * counters are then in another cache line. */
struct flow {
	__u8 action;
	__u8 tcp;
	__u8 rule;        /* index of the rule that decided + 1; 0: the default */
	__u8 reply;       /* 1: first packet went to the workload */
	__u32 policy;     /* generation of the policy that decided */
	__u32 seen_tick;  /* time of seen_ns in ticks of the kernel's clock (jiffies) */
	__u32 member;     /* ECMP: id of the nexthop that the flow keeps to; 0: none */
	__u32 composite;  /* nexthop id that member belongs to */
	__be16 other_port;
	__u8 translation; /* enum translation */
	__u8 icmp;        /* ICMP: type of the first packet */
	__u64 seen_ns;    /* time of the last packet, or up to FRESH_TICKS earlier */
	__u64 created_ns;
	__u64 packets[2]; /* 0: from the workload, 1: to it */
	__u64 bytes[2];
	struct address other; /* service or backend; see enum translation */
};

/* A port of a service. */
struct service_key {
	struct address address;
	__be16 port;
	__u8 protocol;
	__u8 pad;
};

/* service.flags */
#define SERVICE_F_DROP (1 << 0) /* without a backend, packets are dropped and not rejected */

struct service {
	__u32 id;
	__u32 backends;   /* number of backends; their indexes in the map `backends` begin at 0 */
	__u32 affinity;   /* seconds for which a client keeps its backend; 0: no affinity */
	__u32 flags;
};

struct backend_key {
	__u32 service;    /* id */
	__u32 index;
};

struct backend {
	struct address address;
	__be16 port;
	__u16 pad;
};

/* service_ranges[0: IPv4, 1: IPv6]: a prefix that contains the addresses of all services. Packets to
 * other addresses need no lookup in services. */
struct service_range {
	struct address address;
	struct address mask;
	__u32 services;   /* 0: there are no services, and the prefix is not used */
};

struct affinity_key {
	__u32 service;    /* id */
	struct address client;
};

/* The backend that a client had last. */
struct affinity {
	struct backend backend;
	__u32 pad;
	__u64 seen_ns;    /* when its last connection began */
};

/* nats[id of the vif that connects the node]: the node's part of the pool of a network. */
struct nat {
	struct address address4; /* source of packets that leave the network; zero: none */
	struct address address6;
	__u32 vrf;
	__u16 first_port; /* of the ports that connections get, host order. Nodes that share an address have equally many */
	__u16 last_port;
};

/* Key of floatings: the address of a workload, its floating address, or an address of the pool that nodes share. */
struct floating_key {
	__u32 vif; /* id of the vif that connects the node; with the address of a workload also the workload's vif */
	struct address address;
	__u32 port; /* of a shared address: first port of another node, host order; else 0 */
};

struct floating {
	struct address other; /* the floating address of the workload, or the workload's address; the other node's in the network */
};

/* rule.flags */
#define RULE_F_EGRESS (1 << 0)  /* from the workload; else to it */
#define RULE_F_ALLOW (1 << 1)
#define RULE_F_LOG (1 << 2)
#define RULE_F_ALWAYS (1 << 3)  /* with RULE_F_ALLOW: also flows that the group does not allow */

struct rule {
	struct address remote;
	struct address mask;
	__u16 first_port; /* of the destination, host order */
	__u16 last_port;
	__u8 protocol;    /* 0: any */
	__u8 flags;
	__u8 family;      /* 0: any, 4, 6 */
	__u8 pad;
};

struct rule_chunk {
	struct rule rule[CHUNK_RULES];
};

/* policies[vif id]. */
struct policy {
	__u32 generation; /* differs whenever the rules do; never 0 */
	__u16 rules;
	__u8 allow_in;    /* decision for flows that match no rule */
	__u8 allow_out;
	__u32 group;      /* set of policies (identity.h) */
	__u32 revision;   /* of the maps identities and allows */
	__u8 closed_in;   /* 1: flows to the workload that the rules allow need an entry of the group too */
	__u8 closed_out;  /* the same for flows from it */
	__u16 pad;
	struct rule_chunk first; /* more_rules has the rules after these */
};

/* Key of more_rules. A policy that changes gets another generation, so programs never
 * read rules of an old and a new policy together. */
struct rules_key {
	__u32 vif;
	__u32 generation; /* of the policy */
	__u32 chunk;      /* index of its first rule / CHUNK_RULES; never 0 */
};

/* Longest-prefix match, as in lpm6_key. */
struct identity_key {
	__u32 prefixlen;
	__be32 vrf;
	struct address address;
};

/* Numbers of identities; 0: none. */
struct identity {
	__u32 pods;
	__u32 block;
};

/* Key of allows. An entry whose prefix ends before protocol allows all protocols; one that ends
 * before port allows all ports. */
struct allow_key {
	__u32 prefixlen;
	__u32 group;
	__u32 identity;
	__u8 egress;     /* 1: flows from the workload; 0: to it */
	__u8 protocol;
	__be16 port;     /* of the destination */
};

struct allow {
	__u32 known;     /* always 1 */
};

/* Later fragments of an inner packet carry no ports: kept from the first. */
struct fragment {
	struct address source;
	struct address destination;
	__u32 id;
	__be16 source_port;      /* ICMP: identifier */
	__be16 destination_port;
	__u8 whole;              /* as flow_packet.whole */
	__u8 protocol;           /* IPv6: the head's transport, behind its extension headers */
	__u8 pad[2];
};

#define FRAGMENT_HEADS 16 /* a power of 2 */

/* fragments[vif id * 2 + direction]: the latest first fragments of a vif in one direction. */
struct fragment_heads {
	struct bpf_spin_lock lock;
	__u32 begun; /* number of stored heads; the next head goes to begun % FRAGMENT_HEADS */
	struct fragment head[FRAGMENT_HEADS];
};

struct vif_counters {
	__u64 rx_packets; /* from the workload */
	__u64 rx_bytes;
	__u64 tx_packets; /* to the workload */
	__u64 tx_bytes;
};

/* vrf_stats[vrf id]; index = enum encapsulation, ENCAP_NONE = local. Packets
 * are wire packets (segments); bytes are inner frames'. */
struct vrf_counters {
	__u64 tx_packets[ENCAPS];
	__u64 tx_bytes[ENCAPS];
	__u64 rx_packets[ENCAPS];
	__u64 rx_bytes[ENCAPS];
};

struct drop_key {
	__u32 vif;    /* vif id; 0: the fabric */
	__u32 reason;
};

/* Key of fallbacks: packets that direct cannot carry (fallback.h). */
struct fallback_key {
	__u32 vrf;
	__u32 reason; /* enum fallback_reason */
};

/* What became of the frames that a program was handed: their sum is their
 * number, OUT_RECEIVED. */
enum outcome {
	OUT_RECEIVED,  /* handed to from_workload or fabric_tc */
	OUT_PASSED,    /* no overlay packet: left to the host's stack */
	OUT_FORWARDED, /* to a vif or a tunnel */
	OUT_ANSWERED,  /* ARP, ND, echo, ICMP errors: by the vrouter itself */
	OUT_REPLICATED,/* flooded; each copy that went out is an OUT_REPLICAS */
	OUT_DROPPED,
	OUT_DECAPPED,  /* XDP: left for delivery in tc */
	OUT_REPLICAS,
	OUTCOMES,
};

struct outcome_counters {
	__u64 count[OUTCOMES];
};

#define DROP_SNAP 128

struct drop_event {
	__u64 time_ns;
	__u32 reason;
	__u32 vif;
	__u32 vrf;
	__u32 ifindex;
	__u32 length;
	__u32 captured;
	__u8 data[DROP_SNAP];
};

/* A step of `vrouter trace`. */
enum trace_kind {
	TRACE_VIF, TRACE_FLOW, TRACE_POLICY, TRACE_BRIDGE,
	TRACE_ROUTE_HOST, TRACE_ROUTE_LPM, TRACE_NEXTHOP, TRACE_MEMBER,
	TRACE_MTU, TRACE_ENCAP, TRACE_LABEL, TRACE_VNI, TRACE_DELIVER,
	TRACE_ANSWER, TRACE_DROP, TRACE_TRANSLATED, TRACE_FALLBACK, TRACE_SERVICE,
	TRACE_NAT,
};

struct trace_step {
	__u32 kind;
	__u32 found;   /* lookups: 1 = hit */
	__u32 vrf;
	__u32 id;      /* vif, nexthop, label, VNI, rule or reason; kind decides */
	__u32 value;   /* label of a route, MTU, member index…; kind decides */
	__u32 pad;
	struct address address;
};
