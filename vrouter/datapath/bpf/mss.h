#pragma once
#include "verdict.h"
static __noinline int clamp_mss(struct __sk_buff *skb, __u32 l4, __u32 most)
{
	return 0;
}
