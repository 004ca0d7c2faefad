#pragma once
#include "verdict.h"
static __noinline int admit(struct __sk_buff *skb, const struct vif *v, int to_workload)
{
	return 0;
}
static __noinline int choose_member(struct __sk_buff *skb, const struct vif *v, __u32 composite, __u32 members, __u32 hash)
{
	return hash % (members ?: 1);
}
