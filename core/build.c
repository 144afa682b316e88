// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The whole core as one unit: a request passes some twenty functions in seven
 * files, and calls between files were 5 to 9 % of all its instructions.
 */
#define DT_BUILD

#include "tree.c"
#include "line.c"
#include "cost.c"
#include "written.c"
#include "drain.c"
#include "cache.c"
#include "account.c"
#include "queue.c"
#include "entity.c"
#include "solo.c"
#include "pace.c"
#include "thin.c"
#include "serial.c"
#include "wide.c"
#include "lead.c"
#include "depth.c"
#include "park.c"
#include "chain.c"
#include "commit.c"
#include "quota.c"
#include "slice.c"
#include "spell.c"
#include "near.c"
#include "select.c"
#include "gate.c"
#include "health.c"
#include "check.c"
#include "dump.c"
