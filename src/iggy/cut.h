/*
 * A poll's answer from stored batches: messages from an offset on, so many, so large; headers are written anew where a batch is cut, and
 * frames are borrowed. A cut batch keeps its base_offset and its deltas; length, count and checksum are those of what is left.
 * No I/O, no clock. Any thread.
 */
#ifndef IGGY_CUT_H
#define IGGY_CUT_H

#include "base/wbuf.h"
#include "iggy/batch.h"

/* What is wanted and what was found; goes over any number of iggy_cut_add. */
struct iggy_cut {
    uint64_t offset;    /* messages below it are left out; moves behind the last one that goes out */
    uint32_t count_max; /* how many may still come */
    int64_t bytes_max;  /* how many bytes may still come; the first message comes in any case */
    bool no_producer;   /* leave the producer section out: readers of 0.11 refuse it */

    uint32_t count; /* that went out */
    int64_t bytes;
    bool full; /* a limit ended it */
};

/*
 * Append what is wanted of consecutive batches to out, which borrows their frames. The caller has checked or trusts the batches.
 * ST_BAD_RECORD: not well formed; errors as wbuf_put. After an error out is good for release only.
 */
enum status iggy_cut_add(struct iggy_cut *cut, struct bytes batches, struct wbuf *out) MUST_USE;
#endif
