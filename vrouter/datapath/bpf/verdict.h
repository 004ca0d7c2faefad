/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The result of a step: a tc action (0 and above), GO_ON if the caller must continue, or
 * minus a drop reason. Only the programs' entry functions count outcomes and drops, so
 * that each frame is counted once.
 */
#pragma once

#include "drop.h"

enum {
	GO_ON = 0x1000,
	NOT_OURS,  /* a frame of the host */
	CUT, /* the kernel must cut the superpacket: loopback.h */
};

/* Programs see frames from their Ethernet header on. */
#define L3_OFFSET ETH_HLEN

/* The verdict of a frame that was forwarded or answered, with its outcome. Only redirects
 * return TC_ACT_REDIRECT or TC_ACT_SHOT. */
#define WENT(action, outcome) ((action) | (outcome) << 4)

/* The verdict of a dropped frame that became an ICMP error to its sender. */
#define DROPPED_WITH_NOTICE(action, reason) ((action) | OUT_DROPPED << 4 | (reason) << 16)

#define VERDICT_ACTION(verdict) ((verdict) & 0xf)
#define VERDICT_OUTCOME(verdict) ((verdict) >> 4 & 0xff)
#define VERDICT_REASON(verdict) ((verdict) >> 16 & 0xff)
