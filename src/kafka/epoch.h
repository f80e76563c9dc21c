/* The leader epoch a client believes in (KIP-320), against the only one there is. */
#ifndef KAFKA_EPOCH_H
#define KAFKA_EPOCH_H

#include "kafka/server.h"
#include "wire/kerr.h"

/* -1: it believes in none. A later one is not known yet, an earlier one is over. */
static inline int16_t leader_epoch_error(int32_t current_leader_epoch) {
    if (current_leader_epoch == -1 || current_leader_epoch == KAFKA_LEADER_EPOCH)
        return KERR_NONE;
    return current_leader_epoch > KAFKA_LEADER_EPOCH ? KERR_UNKNOWN_LEADER_EPOCH : KERR_FENCED_LEADER_EPOCH;
}
#endif
