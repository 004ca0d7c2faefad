/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a step came to: a tc action (0 and above), GO_ON for the caller to
 * carry on, or minus a drop reason. Only the programs' entry functions count
 * outcomes and drops, so that each frame is counted once.
 */
#pragma once

#include "drop.h"

#define GO_ON 0x1000

/* Programs see frames from their Ethernet header on. */
#define L3_OFFSET 14

/* A frame that went on (or was answered) as `outcome` says. Redirects alone
 * return TC_ACT_REDIRECT or TC_ACT_SHOT. */
#define WENT(action, outcome) ((action) | (outcome) << 4)

/* A dropped frame whose sender was told why, by an answer in its place. */
#define DROPPED_WITH_NOTICE(action, reason) ((action) | OUT_DROPPED << 4 | (reason) << 16)

#define VERDICT_ACTION(verdict) ((verdict) & 0xf)
#define VERDICT_OUTCOME(verdict) ((verdict) >> 4 & 0xff)
#define VERDICT_REASON(verdict) ((verdict) >> 16 & 0xff)
