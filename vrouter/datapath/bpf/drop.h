/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Drop reasons. */
#pragma once

#include "maps.h"

enum drop_reason {
#define DROP(name, text) DROP_##name,
#include "drop.list.h"
#undef DROP
	DROP_REASONS,
};
