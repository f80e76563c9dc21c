#include "iggy/errors.h"

#include "iggy/iggy.h"

const char *iggy_error_name(uint32_t code) {
    switch (code) {
#define ERROR(number, name, text, retry) \
    case (number):                       \
        return text;
#include "iggy/errors.def"
#undef ERROR
    default:
        return "?";
    }
}

enum iggy_retry iggy_error_retry(uint32_t code) {
    switch (code) {
#define ERROR(number, name, text, retry) \
    case (number):                       \
        return IGGY_RETRY_##retry;
#include "iggy/errors.def"
#undef ERROR
    default:
        return IGGY_RETRY_NO;
    }
}

bool iggy_error_retry_is_safe(uint32_t code) {
    switch (iggy_error_retry(code)) {
    case IGGY_RETRY_LATER:
    case IGGY_RETRY_NEW_NUMBER:
    case IGGY_RETRY_NEW_ROUTE:
        return true;
    case IGGY_RETRY_NO: /* safe, but pointless */
    case IGGY_RETRY_SAME_FRAME:
    case IGGY_RETRY_LOG_IN:
    case IGGY_RETRY_UNKNOWN:
    case IGGY_RETRY_DONE:
        break;
    }
    return false;
}

uint32_t iggy_error_of_eviction(uint8_t reason) {
    switch (reason) {
    case IGGY_EVICTED_INVALID_OPERATION:
    case IGGY_EVICTED_INVALID_BODY:
    case IGGY_EVICTED_INVALID_BODY_SIZE:
        return IGGY_ERR_INVALID_COMMAND;
    case IGGY_EVICTED_INVALID_CREDENTIALS:
        return IGGY_ERR_INVALID_CREDENTIALS;
    case IGGY_EVICTED_INVALID_TOKEN:
        return IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN;
    case IGGY_EVICTED_STALE_CLIENT:
        return IGGY_ERR_STALE_CLIENT;
    case IGGY_EVICTED_INCOMPATIBLE_PROTOCOL:
        return IGGY_ERR_INCOMPATIBLE_PROTOCOL_VERSION;
    case IGGY_EVICTED_MALFORMED_LOGIN:
        return IGGY_ERR_INVALID_FORMAT;
    default:
        return IGGY_ERR_UNAUTHENTICATED;
    }
}
