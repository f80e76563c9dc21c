/*
 * One backend_read from its first round to its release: its parts by topic, what the server answered, and what becomes of it.
 *
 *   read.c   iggy_read_op -> for each topic view_get -> fetch.c (0.12.1: one FetchMessages) or pages.c (a poll for each part)
 *              -> what can't be judged by the answer alone: a newer view -> [large: pool] messages to records -> done
 *   watch.c  waits for more; what a FetchMessages that waited has brought is kept for the next round
 */
#ifndef BACKEND_IGGY_READS_H
#define BACKEND_IGGY_READS_H

#include "backend/iggy/view.h"
#include "wire/compress.h"

struct ahead;
struct reading;
struct read_topic;
struct watch;

struct read_part {
    struct read_topic *topic;
    struct backend_read_part *call;
    enum status status;
    bool settled;  /* status is what it ends with, or there is an answer */
    bool answered; /* the server has said what follows */
    bool judge;    /* the answer leaves open what is there: a newer view decides */
    bool look; /* something was appended through us, or the view is old: it can't say that there is nothing */
    bool told; /* a watch has ended as its view showed something here */
    bool doubt;            /* and then nothing came: the next view is not believed at once */
    struct bytes messages; /* Iggy batches, in the topic's frame or the part's own */
    uint32_t messages_count;
    uint64_t current_offset; /* of the last message there is; 0 also: none */
    int64_t end;             /* high watermark; -1: not known yet */
    struct frame *frame;     /* owned; of a poll */
    struct iggy_request request;
    struct iggy_poll_messages_req poll;
    struct ahead *ahead; /* owned; what it waits for, or takes */
    struct op ahead_op;
    bool follows;      /* the page before was read a moment ago */
    struct spare made; /* the Kafka batch's memory */
    struct bytes batch;
    int64_t skipped_count; /* messages that were passed over (H-15) */
};

struct read_topic {
    struct reading *reading;
    struct read_part *parts; /* the reading's */
    int32_t parts_count;
    struct view_want want;
    struct topic_view *view; /* held; NULL: none yet */
    bool any_age;            /* the view may be old, as 0.12.1 says itself when it is outdated */
    bool again;              /* it was asked a second time, as the server had another incarnation */
    bool kept;               /* a watch has brought the answer */
    bool crowded;  /* the answer has messages: where there are none, the bytes may have been used up */
    int32_t polls; /* under way */
    int64_t message_bytes; /* what a message took in the last answer that had any; 0: not known */
    struct frame *frame;   /* owned; of a fetch */
    struct iggy_request request;
    struct iggy_fetch_messages_req fetch;
};

struct reading {
    struct bridge_loop *loop;
    struct backend_read *call;
    struct work work;
    struct op mapped;
    int32_t waiting; /* topics that are not settled, and one while they are begun */
    struct read_topic *topics;
    int32_t topics_count;
    int32_t parts_count;
    bool judging;        /* the second half: what needs a newer view */
    struct watch *watch; /* that waits for more; NULL: none */
    struct read_part parts[];
};

/* read.c: before a topic is asked: nothing is known of its parts. */
void read_topic_reset(struct read_topic *t);
/* A topic's parts have all got what they get; go on when no topic is left. */
void read_topic_done(struct read_topic *t);
/* All parts of a topic that are not settled end with st. */
void read_topic_fail(struct read_topic *t, enum status st);
/* The server's incarnation of the topic is another one than the view's: look again, once. False: it was the second time. */
bool read_topic_again(struct read_topic *t);
/* An answer for a part: batches of messages, of which frame or the topic's frame holds the memory. */
void read_part_answer(struct read_part *p, struct bytes messages, uint32_t count, uint64_t current_offset);
void read_part_fail(struct read_part *p, enum status st);

/* fetch.c: ask for all parts of a topic that are not settled; read_topic_done follows. */
void fetch_begin(struct read_topic *t);
struct fetch_terms {
    int64_t wait_ms; /* 0: answer at once */
    uint32_t min_count;
    int64_t bytes_max;
};
/* Fill t->fetch with what is not settled. ST_NO_MEMORY. */
enum status fetch_prepare(struct read_topic *t, const struct fetch_terms *terms) MUST_USE;
/* Take t->request's answer over: to the parts. False: it must be asked again with a newer view. */
bool fetch_take(struct read_topic *t);
/* What an answer for a topic may bring at most: its share of the call's bytes. */
int64_t fetch_bytes_max(const struct reading *r);

/* A fetch of one part alone, from an offset on, that doesn't wait. Borrows from the topic's view and from partition_out. */
void fetch_one(const struct read_part *p, int64_t offset, struct iggy_fetch_messages_req *out,
               struct iggy_fetch_partition *partition_out);

/* pages.c: the same with a poll for each part. */
void pages_begin(struct read_topic *t);
/* A poll of one part for so many messages, from an offset on. Borrows from the topic's view. */
void poll_one(const struct read_part *p, int64_t offset, uint32_t count, struct iggy_poll_messages_req *out);

/* read.c, for watch.c: give the records back; those of answers that are kept stay. */
void reading_drop_records(struct reading *r);

#define READ_CONSUMER "iggy-gateway-kafka" /* whose polls these are; they store no offset */

static inline bool view_fetches(const struct topic_view *v) {
    return v->version >= IGGY_0_12_1;
}
#endif
