#pragma once
#include "verdict.h"

enum icmp_cause { CAUSE_TTL, CAUSE_TOO_BIG, CAUSE_NO_ROUTE, CAUSE_NO_PORT };

static __noinline int answer_echo(struct __sk_buff *skb, const struct vif *v)
{
	return -DROP_ICMP_FAILED;
}
static __noinline int icmp_error(struct __sk_buff *skb, const struct vif *v, int cause, __u32 mtu)
{
	return -DROP_ICMP_FAILED;
}
