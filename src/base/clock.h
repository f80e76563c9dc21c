/* Monotonic and wall clock. Code that decides by time takes the time as an argument; this is for those who supply it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/base.h"

int64_t clock_ms(void);        /* monotonic, milliseconds from an unspecified start */
int64_t clock_us(void);        /* monotonic, microseconds */
int64_t clock_wall_ms(void);   /* milliseconds since 1970, UTC */
int64_t clock_wall_us(void);   /* microseconds */
int64_t clock_thread_us(void); /* microseconds of a processor that the calling thread has had */
#endif
