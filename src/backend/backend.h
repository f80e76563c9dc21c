/*
 * Where records live: one interface, three implementations (backend/iggy, backend/store, backend/stub).
 *
 * Every call takes one operation for a whole Kafka request (net/op.h: done runs later, on the caller's loop).
 * How much of it runs at once, and in which order, is the implementation's choice; two promises hold for all:
 *   - parts are answered in place: part i of the call is part i of the answer;
 *   - appends started on one loop for one partition are stored in the order of the calls.
 * op.status is ST_OK, or ST_CANCELED where the caller asked for that; each part says for itself what became of it.
 * Topics are Kafka topics; what they are called inside (stream, topic) is the backend's matter.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "base/arena.h"
#include "net/op.h"

struct backend;

/* ---- topics ---- */

struct backend_setting {
    struct str key, value; /* value len -1: null */
};

/* A topic as Metadata shows it. All memory: the call's arena. */
struct backend_topic {
    struct str name;
    struct uuid id; /* zero: the backend has none */
    int32_t partitions_count;
    struct backend_setting *settings; /* what was set by a client; only when the call asks for them */
    int32_t settings_count;
};

/*
 * Look topics up, by name or by id, or list them all.
 *
 * in   arena            where the answer goes; the caller's until done
 *      parts, count     NULL, 0 with all = true
 *      create           make those that are missing, with partitions_default partitions (Kafka auto-creation)
 *      want_settings
 * in   part.name        len -1: look id up instead
 * out  part.status      ST_OK; ST_NOT_FOUND, ST_UNKNOWN_ID; ST_BAD_NAME; ST_UNAVAILABLE, ST_TIMED_OUT; of creation: as backend_create
 *      part.topic       valid with ST_OK
 *      topics, count    with all = true, in name order
 *      status           with all = true: whether the list is true
 */
struct backend_topics_part {
    struct str name;
    struct uuid id;
    enum status status;
    struct backend_topic topic;
};
struct backend_topics {
    struct op op;
    struct arena *arena;
    bool all, create, want_settings;
    int32_t partitions_default;
    struct backend_topics_part *parts;
    int32_t parts_count;
    struct backend_topic *topics;
    int32_t topics_count;
    enum status status;
    int64_t deadline_ms; /* monotonic */
};

/*
 * Create topics. in: status ST_OK: create it; anything else: leave this part alone.
 * out  ST_OK; ST_EXISTS; ST_BAD_NAME; ST_NO_SPACE, ST_READ_ONLY, ST_IO; ST_UNAVAILABLE; ST_NOT_CONTROLLER: bridge off; ST_TIMED_OUT
 *      id valid with ST_OK
 */
struct backend_create_part {
    struct str name;
    int32_t partitions_count; /* >= 1 */
    struct backend_setting *settings;
    int32_t settings_count;
    enum status status;
    struct uuid id;
};
struct backend_create {
    struct op op;
    struct backend_create_part *parts;
    int32_t parts_count;
    bool validate_only; /* say what would come out; write nothing */
    int64_t deadline_ms;
};

/* Delete topics by name, or by id where name.len is -1 (name is then filled in). Statuses as backend_topics and backend_create. */
struct backend_delete_part {
    struct str name;
    struct uuid id;
    enum status status; /* in and out, as backend_create_part */
};
struct backend_delete {
    struct op op;
    struct arena *arena; /* for names that are filled in */
    struct backend_delete_part *parts;
    int32_t parts_count;
    int64_t deadline_ms;
};

/* Raise partition counts. ST_INVALID: not more than the topic has (partitions_before says how many that is). */
struct backend_grow_part {
    struct str name; /* len -1: by id */
    struct uuid id;
    int32_t partitions_count;
    int32_t partitions_before;
    enum status status; /* in and out */
};
struct backend_grow {
    struct op op;
    struct backend_grow_part *parts;
    int32_t parts_count;
    bool validate_only;
    int64_t deadline_ms;
};

/*
 * Change settings of topics. What a part names is set, or becomes as if it had never been set; everything else stays as it is, whoever else
 * changes something at the same time. All changes of a part are made, or none.
 *
 * in   change.value   len -1: not set any more
 *      change.bound   the new value was made of the old one (a list that one more is put to): before is what that was, len -1 not set
 *      status         ST_OK: change it; anything else: leave this part alone
 * out  status         ST_OK            it holds, after a crash too; retention obeys within a minute
 *                     ST_NOT_FOUND
 *                     ST_AGAIN         a bound value is no longer what it was; nothing is changed: look it up, and call again
 *                     ST_INVALID       the backend can't hold it (reason says what)
 *                     ST_NO_SPACE, ST_READ_ONLY, ST_IO; ST_DENIED; ST_NOT_CONTROLLER; ST_UNAVAILABLE, ST_TIMED_OUT: it may have been made
 *      reason         static text with ST_INVALID, or NULL
 * Source: Kafka AlterConfigs, IncrementalAlterConfigs (KIP-339).
 */
struct backend_change {
    struct str key, value, before;
    bool bound;
};
struct backend_configure_part {
    struct str name;
    const struct backend_change *changes; /* each key once; borrowed until done */
    int32_t changes_count;
    enum status status;
    const char *reason;
};
struct backend_configure {
    struct op op;
    struct backend_configure_part *parts;
    int32_t parts_count;
    bool validate_only; /* say what would come out; write nothing */
    int64_t deadline_ms;
};

/* ---- records ---- */

/* What the bytes of records are. Whoever asks for one format gets it, whatever is stored: offsets are the same in both. */
enum backend_format {
    FORMAT_KAFKA, /* record batches, magic 2 */
    FORMAT_IGGY,  /* Iggy batches (iggy/batch.h); embedded log only */
};

/* A record whose time is further ahead of the clock is refused: Kafka's message.timestamp.after.max.ms. */
#define BACKEND_TIMESTAMP_AHEAD_MS ((int64_t)3600 * 1000)

/*
 * Append record batches, one a part. The backend checks them (wire/records.h batch_check), off the loop where that takes long.
 *
 * in   topic, id     Kafka topic name, 1-249 bytes; or name.len -1 and the id
 *      records       the field as it came, writable: offsets are patched in place; borrowed until done
 *      format        of the records. FORMAT_IGGY: one batch that the caller has checked as sent (iggy_batch_check); partition, offset and
 *                    append time are filled in
 *      deadline_ms   monotonic; what isn't stored by then ends with ST_TIMED_OUT
 *      connection    of the client, a number that no other one of the loop has ever had; 0: of no client. What is new in a connection comes from
 *                    somebody who knows what has failed in the one before
 *      status        ST_OK: append it; anything else: leave this part alone
 *      durable       acks -1: answered when it is as safe as the backend's settings make it
 * out  status        ST_OK            stored
 *                    ST_NOT_FOUND, ST_UNKNOWN_ID  no such topic or partition
 *                    ST_BAD_RECORD ... as batch_check; ST_NO_KEY where the topic's settings ask for compaction and are kept (embedded log)
 *                    ST_TOO_BIG       over the backend's own message limit; in the topic's compression.type over that of batches (embedded log, D1-16)
 *                    ST_UNAVAILABLE   not stored; a retry is safe
 *                    ST_NO_SPACE, ST_READ_ONLY, ST_CORRUPT, ST_IO  not stored
 *                    ST_TIMED_OUT     outcome unknown; a retry may store it twice
 *      base_offset   of the batch's first record; -1: the backend gave none
 *      start_offset  of the partition's log; -1: unknown, or refused before the records were looked at (K2-1)
 *      append_ms     the time that the records have in place of their own, where the topic's message.timestamp.type is LogAppendTime
 *                    (embedded log, FORMAT_KAFKA); else -1
 *      reason        static text for error_message, or NULL
 * Source: Kafka Produce; Iggy SendMessages; spec D.1.
 */
struct backend_append_part {
    struct str topic;
    struct uuid id;
    struct bytes records;
    int32_t partition;
    enum status status;
    int64_t base_offset, start_offset, append_ms;
    const char *reason;
};
struct backend_append {
    struct op op;
    enum backend_format format;
    struct arena *arena; /* the request's; used on the caller's loop before the call returns only */
    struct backend_append_part *parts;
    int32_t parts_count;
    bool durable;
    bool zstd_allowed;
    int64_t deadline_ms;
    uint64_t connection;
    void *backend_use;
};

/*
 * Read whole batches from each part's offset on.
 *
 * in   format        what the records are to be
 *      bytes_max     over all parts; the first batch found may pass it (KIP-74); of the part alike
 * out  status        ST_OK; ST_NOT_FOUND, ST_UNKNOWN_ID; ST_OUT_OF_RANGE; ST_CORRUPT; ST_UNAVAILABLE; ST_IO;
 *                    ST_UNMAPPABLE: the message at offset can't be a Kafka record (H-15)
 *      records       slices in order, all batches of the format; a slice may hold several; the first may begin before offset; kept until the next backend_read or backend_watch of the same struct, or
 *                    backend_read_release
 *      bytes         their sum; 0: none now
 *      high_watermark, start_offset   -1 with an error
 */
struct backend_read_part {
    struct str topic;
    struct uuid id;
    int32_t partition, bytes_max;
    int64_t offset;
    enum status status;
    struct bytes *records;
    int32_t records_count;
    int64_t bytes;
    int64_t high_watermark, start_offset;
};
struct backend_read {
    struct op op;
    enum backend_format format;
    struct backend_read_part *parts;
    int32_t parts_count;
    int64_t bytes_max;
    int64_t bytes; /* out: over all parts */
    int64_t deadline_ms;
    void *backend_use;
};

/* Done once any part of a read may hold more than it did, or at deadline_ms: ST_TIMED_OUT. May wake for nothing. Gives the read's
 * records back at once, so that who waits holds no memory: read again for them.
 * bytes_min: wake for data only once about so many bytes are there in all parts together. Can be cancelled. */
struct backend_watch {
    struct op op;
    struct backend_read *read;
    int64_t bytes_min;
    int64_t deadline_ms; /* monotonic */
    void *backend_use;
};

enum backend_offset_kind {
    OFFSET_EARLIEST,
    OFFSET_LATEST,
    OFFSET_BY_TIME,
    OFFSET_MAX_TIME,
    OFFSET_BY_APPEND, /* the first batch that was appended at append_us or later; embedded log only */
};

/*
 * Find offsets. ST_OK with offset -1: no record matches. timestamp: of the record found; -1 for EARLIEST and LATEST.
 * in and out status as backend_append.
 */
struct backend_offset_part {
    struct str topic; /* len -1: by id */
    struct uuid id;
    int32_t partition;
    enum backend_offset_kind kind;
    int64_t timestamp_ms; /* in for BY_TIME; out */
    uint64_t append_us;   /* in for BY_APPEND; wall clock */
    int64_t offset;
    enum status status;
};
struct backend_offsets {
    struct op op;
    struct backend_offset_part *parts;
    int32_t parts_count;
    int64_t deadline_ms;
};

/*
 * Let logs start at a later offset: what is before it is deleted, and stays so through a crash.
 * in   topic          Kafka topic name
 *      offset         the first that is kept; -1: none of what is there when the call comes to it. At or below the start: nothing changes
 *      status         ST_OK: do it; anything else: leave this part alone
 * out  status         ST_OK; ST_NOT_FOUND: no such topic or partition; ST_OUT_OF_RANGE: behind the end, or below -1; ST_POLICY: the topic's
 *                     cleanup.policy is compact alone; ST_TIMED_OUT: not begun by then; ST_UNAVAILABLE; ST_CORRUPT, ST_READ_ONLY, ST_NO_SPACE, ST_IO: it starts where it did
 *      start_offset   where the log starts now; -1 with an error
 * A batch that holds the first offset is still read whole. Source: Kafka DeleteRecords (KIP-107).
 */
struct backend_trim_part {
    struct str topic;
    int32_t partition;
    enum status status;
    int64_t offset, start_offset;
};
struct backend_trim {
    struct op op;
    struct backend_trim_part *parts;
    int32_t parts_count;
    int64_t deadline_ms; /* monotonic */
};

/* ---- offsets of consumer groups ---- */

#define BACKEND_GROUP_BYTES_MAX 246 /* what a group may be called: 1 to so many bytes (D12-3) */

/*
 * Commit offsets of one group. On stable storage when done, as far as the backend can (Iggy: as its server says).
 * in   group          1 to BACKEND_GROUP_BYTES_MAX bytes
 *      topic, id      as backend_append
 *      offset         as the client sends it, no range check; negative: forget the one that is there
 *      leader_epoch, metadata   kept by the embedded log; -1 and empty elsewhere
 *      status         ST_OK: commit it; anything else: leave this part alone
 *      aged_ms        0, or: parts are of negative offsets, and only those are forgotten that are at least so old (backend_committed_part.age_ms) when
 *                     the backend gets there: what is committed meanwhile stays. Embedded log only
 *      keep_longer_ms at least 0: the offsets grow old from so much later on than now. Embedded log only
 * out  gone_count     with aged_ms: how many were forgotten
 *      status         ST_OK; ST_NOT_FOUND, ST_UNKNOWN_ID; ST_DENIED; ST_TOO_BIG: the metadata; ST_POLICY: a limit of the server's on
 *                     stored offsets; ST_UNAVAILABLE, ST_TIMED_OUT: again, it may have been done; ST_REFUSED, ST_IO, ...
 * Commits of one group for one partition that are started on one loop are done in that order. Spec D.12.
 */
struct backend_commit_part {
    struct str topic;
    struct uuid id;
    int32_t partition, leader_epoch;
    int64_t offset;
    struct str metadata;
    enum status status;
};
struct backend_commit {
    struct op op;
    struct str group;
    struct backend_commit_part *parts;
    int32_t parts_count, gone_count;
    int64_t aged_ms, keep_longer_ms;
    int64_t deadline_ms; /* monotonic: what isn't started by then isn't done (ST_UNAVAILABLE) */
};

/*
 * Read them back. all: every partition that has one, in topic and partition order; parts come from the arena.
 * out  part.age_ms    with all, of the embedded log: how long ago it was committed (or has been due to grow old), not more than since this server's start; at least 0. The wall clock has
 *                     no part in it
 *      part.status    ST_OK; offset -1: there is none (no such topic or partition, too: D12-12). Anything else: nobody knows; never taken for "none" (D12-13)
 *      status         with all: whether the list is true
 */
struct backend_committed_part {
    struct str topic;
    struct uuid id;
    int32_t partition, leader_epoch;
    int64_t offset, age_ms;
    struct str metadata;
    enum status status;
};
struct backend_committed {
    struct op op;
    struct arena *arena;
    struct str group;
    bool all;
    struct backend_committed_part *parts;
    int32_t parts_count;
    enum status status;
    int64_t deadline_ms;
};

/*
 * The groups that have committed offsets, in name order, in the arena; or, with forget, drop all of one group's (DeleteGroups).
 * out  status   ST_OK; ST_NO_GROUP: of forget, there are none; ST_UNSUPPORTED: the backend can't list them; ST_UNAVAILABLE, ...
 */
struct backend_groups {
    struct op op;
    struct arena *arena;
    struct str forget; /* len -1: list */
    struct str *groups;
    int32_t groups_count;
    enum status status;
    int64_t deadline_ms;
};

/* ---- settings of consumer groups ---- */

#define BACKEND_CONFIGURED_GROUPS_MAX 10000

/* What is set for one group of the consumer protocol, which need not be there; 0: not set. */
struct backend_group_settings {
    int32_t session_ms, heartbeat_ms;
};

/*
 * Set them.
 * in   group     1 to BACKEND_GROUP_BYTES_MAX bytes
 *      before    what the new ones were made of
 *      settings  the new ones
 *      status    ST_OK: do it; anything else: leave this part alone
 * out  status    ST_OK      they hold, after a crash too, and backend_group_settings tells them
 *                ST_AGAIN   what is set is no longer `before`: look, and call again
 *                ST_POLICY  BACKEND_CONFIGURED_GROUPS_MAX groups have some
 *                ST_TIMED_OUT: not begun by then; ST_NO_SPACE, ST_READ_ONLY, ST_IO, ST_CORRUPT, ST_NO_MEMORY: nothing has changed
 * Source: D9-14.
 */
struct backend_group_change {
    struct str group;
    struct backend_group_settings before, settings;
    enum status status;
};
struct backend_configure_groups {
    struct op op;
    struct backend_group_change *parts;
    int32_t parts_count;
    int64_t deadline_ms; /* monotonic */
};

struct backend_ops {
    const char *name;
    bool controller; /* false: this server doesn't manage topics (stub) */
    void (*topics)(struct backend *b, struct backend_topics *t);
    void (*create)(struct backend *b, struct backend_create *c);
    void (*delete)(struct backend *b, struct backend_delete *d);
    void (*grow)(struct backend *b, struct backend_grow *g);
    void (*configure)(struct backend *b, struct backend_configure *c);
    void (*append)(struct backend *b, struct backend_append *a);
    void (*read)(struct backend *b, struct backend_read *r);
    void (*read_release)(struct backend *b, struct backend_read *r);
    void (*watch)(struct backend *b, struct backend_watch *w);
    void (*offsets)(struct backend *b, struct backend_offsets *o);
    void (*trim)(struct backend *b, struct backend_trim *t); /* NULL: it can't */
    void (*commit)(struct backend *b, struct backend_commit *c);
    void (*committed)(struct backend *b, struct backend_committed *c);
    void (*groups)(struct backend *b, struct backend_groups *g);
    bool (*group_has_offsets)(struct backend *b, struct str group); /* NULL: it would have to wait */
    /* Both NULL: it keeps no settings of groups. */
    void (*configure_groups)(struct backend *b, struct backend_configure_groups *c);
    struct backend_group_settings (*group_settings)(struct backend *b, struct str group);
};
struct backend {
    const struct backend_ops *ops;
};

static inline void backend_topics(struct backend *b, struct backend_topics *t) {
    b->ops->topics(b, t);
}
static inline void backend_create(struct backend *b, struct backend_create *c) {
    b->ops->create(b, c);
}
static inline void backend_delete(struct backend *b, struct backend_delete *d) {
    b->ops->delete (b, d);
}
static inline void backend_grow(struct backend *b, struct backend_grow *g) {
    b->ops->grow(b, g);
}
static inline void backend_configure(struct backend *b, struct backend_configure *c) {
    b->ops->configure(b, c);
}
static inline void backend_append(struct backend *b, struct backend_append *a) {
    b->ops->append(b, a);
}
static inline void backend_read(struct backend *b, struct backend_read *r) {
    b->ops->read(b, r);
}
/* Give up what the read holds; its slices are gone then. Once, at the end; also of a read that was never started. */
static inline void backend_read_release(struct backend *b, struct backend_read *r) {
    b->ops->read_release(b, r);
}
static inline void backend_watch(struct backend *b, struct backend_watch *w) {
    b->ops->watch(b, w);
}
static inline void backend_offsets(struct backend *b, struct backend_offsets *o) {
    b->ops->offsets(b, o);
}
/* Only where ops->trim is there. */
static inline void backend_trim(struct backend *b, struct backend_trim *t) {
    b->ops->trim(b, t);
}
static inline void backend_commit(struct backend *b, struct backend_commit *c) {
    b->ops->commit(b, c);
}
static inline void backend_committed(struct backend *b, struct backend_committed *c) {
    b->ops->committed(b, c);
}
static inline void backend_groups(struct backend *b, struct backend_groups *g) {
    b->ops->groups(b, g);
}
/* Whether a group has committed offsets, at once and from memory; not every backend can. Any thread. */
static inline bool backend_group_has_offsets(struct backend *b, struct str group) {
    return b->ops->group_has_offsets(b, group);
}
/* Only where the backend keeps settings of groups. */
static inline void backend_configure_groups(struct backend *b, struct backend_configure_groups *c) {
    b->ops->configure_groups(b, c);
}
/* What is set for a group, at once and from memory; nothing where the backend keeps none. Any thread. */
static inline struct backend_group_settings backend_group_settings(struct backend *b, struct str group) {
    return b->ops->group_settings ? b->ops->group_settings(b, group) : (struct backend_group_settings){0};
}
#endif
