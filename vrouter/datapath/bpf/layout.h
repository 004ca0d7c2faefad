/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The version of the pinned maps' layout. The loader never adopts maps of
 * another version: it fills new ones and swaps the programs. A change of the flows or
 * services also raises keptSince in generation.go. */
#pragma once

#define LAYOUT_VERSION 17
