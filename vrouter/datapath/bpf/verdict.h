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
