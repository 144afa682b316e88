/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does the running kernel fit the declarations that this module was built with?
 */
#ifndef DISKTIME_COMPAT_FIT_H
#define DISKTIME_COMPAT_FIT_H

/*
 * Called once from module init, before anything private is touched. May sleep.
 * Returns 0, or a negative errno after one sentence in the kernel log that says
 * what differs and what to do.
 */
int disktime_compat_check_fit(void);

#endif
