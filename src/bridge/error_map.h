/*
 * What an Iggy error code means here: the one place where that is translated (spec F). What a status is to a Kafka client stands in
 * kafka/errors.h. Pure functions, any thread.
 */
#ifndef BRIDGE_ERROR_MAP_H
#define BRIDGE_ERROR_MAP_H

#include "base/base.h"

/* What was asked when the code came. */
enum iggy_call_kind {
    IGGY_CALL_SEND,
    IGGY_CALL_READ,    /* polls, and what looks for offsets */
    IGGY_CALL_ADMIN,   /* create, delete and alter topics; look them up */
    IGGY_CALL_OFFSETS, /* group offsets: store, get, delete */
};

/*
 * The status for a code; 0 is ST_OK. A code that stands in no table: ST_REFUSED.
 *
 * ST_OK            also 59, where the call changes something: it was done before, and its answer is lost
 * ST_UNAVAILABLE   nothing was done, try again; for a call that changes nothing also where that is not known
 * ST_TIMED_OUT     a send or a change that may have been done
 * ST_NO_GROUP      no such group or stored offset: create the group, or there is none
 */
enum status iggy_status_of(uint32_t code, enum iggy_call_kind call);
#endif
