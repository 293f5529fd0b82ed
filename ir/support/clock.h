/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seconds of the monotonic clock: for durations. */
#ifndef SCRIMP_IR_SUPPORT_CLOCK_H
#define SCRIMP_IR_SUPPORT_CLOCK_H

double clock_seconds(void);

#endif
