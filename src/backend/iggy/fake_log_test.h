/* For tests: the messages of a fake server, and polls and fetches of them. */
#ifndef BACKEND_IGGY_FAKE_LOG_TEST_H
#define BACKEND_IGGY_FAKE_LOG_TEST_H

#include "backend/iggy/fake_server_test.h"

/* What an Iggy client would send: one batch. */
struct fake_messages {
    uint32_t count; /* 0: 1 */
    int32_t len;    /* of a payload, 0: 1; all bytes are `letter` */
    char letter;
    uint64_t
        time_us; /* of their producer; 0: now_us of the server. Each is a millisecond later than the one before */
    bool no_record; /* no Kafka record can stand for them (E-12) */
};
void fake_write(struct fake_server *f, const char *topic, uint32_t partition, struct fake_messages m);

void fake_trim(struct fake_server *f, const char *topic, uint32_t partition,
               uint64_t start); /* what is below goes */
void fake_refuse_part(struct fake_server *f, const char *topic, uint32_t partition, uint32_t code);
void fake_mute(struct fake_server *f, const char *topic, uint32_t partition, bool mute);
void fake_grow(struct fake_server *f, const char *topic, uint32_t partitions_count);
void fake_expect_waiting(struct fake_server *f, int count); /* until so many fetches wait */
void fake_expect_cancels(struct fake_server *f, int count);
void fake_hang_up_all(struct fake_server *f);

/* --- for fake_server_test.c, with the lock held --- */

void fake_store(struct fake_server *f, struct fake_topic *t, uint32_t partition,
                const struct iggy_batch *batch);
void fake_on_poll(struct fake_call *c);
void fake_on_fetch(struct fake_call *c);
void fake_on_cancel(struct fake_call *c);
void fake_log_changed(struct fake_server *f); /* fetches that wait are looked at again */
void fake_log_expire(struct fake_server *f);
int fake_log_timeout_ms(const struct fake_server *f); /* until one has waited long enough; -1: none waits */
void fake_log_release(struct fake_server *f);
#endif
