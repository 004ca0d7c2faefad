/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The nonce by which the programs of a node recognise each other's packets. */
#pragma once

/* A random number. It is the same for all programs of a node until the host
 * reboots. */
volatile const __u32 nonce[2] = {};

/* The mark of a packet that the programs send into the underlay. */
static __always_inline __u32 own_mark(void)
{
	return nonce[0];
}
