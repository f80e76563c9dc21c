/* Iggy's error codes: in a reply's status, in a result section, in a section of a fetch. Rows: errors.def. */
#ifndef IGGY_ERRORS_H
#define IGGY_ERRORS_H

#include "base/base.h"

enum iggy_error {
    IGGY_OK = 0,
#define ERROR(number, name, text, retry) IGGY_ERR_##name = (number),
#include "iggy/errors.def"
#undef ERROR
};

/* What a client may do with a request that failed. */
enum iggy_retry {
    IGGY_RETRY_NO,         /* nothing was done, and trying again changes nothing */
    IGGY_RETRY_LATER,      /* nothing was done: the same again, after a pause, perhaps at another node */
    IGGY_RETRY_NEW_NUMBER, /* nothing was done: again with a new request number, after a pause */
    IGGY_RETRY_NEW_ROUTE,  /* nothing was done: ask for the partition's route, then again with a new number */
    IGGY_RETRY_SAME_FRAME, /* perhaps done: only the very same frame, in the same session, is safe */
    IGGY_RETRY_LOG_IN,     /* the session is over: log in again; a write may have been done before that */
    IGGY_RETRY_UNKNOWN,    /* perhaps done, and no repetition is recognized */
    IGGY_RETRY_DONE,       /* it was done; only the answer is gone */
};

/* Iggy's name, as "TopicIdNotFound"; "?" for a number that it doesn't use. Static text. Any thread. */
const char *iggy_error_name(uint32_t code);

/* What the code means for another try; IGGY_RETRY_NO for a number that Iggy doesn't use. Any thread. */
enum iggy_retry iggy_error_retry(uint32_t code);

/* Whether the request certainly was not done, so that sending it again, as the retry says, can't do it twice. */
bool iggy_error_retry_is_safe(uint32_t code);

/* The code that stands for an Eviction's reason (enum iggy_eviction_reason), as official clients report it. */
uint32_t iggy_error_of_eviction(uint8_t reason);
#endif
