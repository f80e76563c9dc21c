/*
 * The embedded log: streams, topics and partitions in one data folder. Blocking calls; no loop, no protocol.
 *
 * A partition is a row of segments; a segment is a file of opaque batches, each with a small header of ours that holds
 * its format, its length, the offset assigned, and a checksum over all of it. What a batch means is its reader's matter
 * (format says which reader). The catalog (names, ids, settings) is a SQLite file, written transactionally.
 * The files and the rules after a crash: docs/STORE.md.
 *
 * Threads: any call from any thread unless said otherwise. No lock that a reader or a loop takes is held over I/O.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/base.h"

struct store;
struct topic;
struct partition;

#define STORE_FORMAT_KAFKA 2 /* a Kafka record batch, magic 2 */
#define STORE_FORMAT_IGGY  3 /* an Iggy batch */

struct store_settings {
    const char *data_dir;
    int64_t segment_bytes; /* a segment is sealed when the next append would pass this; none is split */
    int64_t segment_ms;    /* or when its first batch is older than this; <= 0: never */
    size_t user_bytes;     /* memory beside each partition for the caller (partition_user); 0: none */
    void (*user_init)(void *user); /* on its zeroed memory, before anyone finds the partition; may be NULL */
    void (*user_gone)(void *user); /* partition_deleted from now on; short; may be NULL. Any thread */
    void (*user_release)(void *user); /* before that memory goes; may be NULL */
    int64_t (*now_wall_ms)(void); /* tests: the clock that segments age by; NULL: clock_wall_ms. Any thread */
};

/* Why a store did not open, for the start-up message: one sentence with the path and the cause. */
struct store_error {
    char text[512];
};

/*
 * Open the data folder, made when missing, and lock it against a second process.
 * Partitions are opened when they are first used, so the time does not grow with the log.
 * ST_IN_USE: another process has it; ST_INVALID: not a folder; ST_READ_ONLY; ST_NO_SPACE; ST_CORRUPT: the catalog is damaged, or of a newer version;
 * ST_IO; ST_NO_MEMORY. error is filled on each of them.
 */
enum status store_open(const struct store_settings *settings, struct store **out,
                       struct store_error *error) MUST_USE;

/* Sync and close everything. All topics must have been unref'ed, and no call may be running. Takes NULL. */
void store_close(struct store *s);

/* Folders of topics that store_open removed, because a crash had cut their deletion short. For the log. */
int32_t store_leftovers_removed(const struct store *s);

/* A value kept in the catalog, as the cluster id. *out: owned by the caller (mem_free); NULL: not set. ST_IO. */
enum status store_value_get(struct store *s, const char *key, char **out) MUST_USE;
enum status store_value_set(struct store *s, const char *key, const char *value) MUST_USE;

/* ---- topics ---- */

struct store_setting {
    char *key, *value; /* owned by the topic */
};

/*
 * What a topic is called. None of it ever changes: after a rename topic_info gives another one, with another name alone; this one
 * stays readable, on any thread, as long as the topic is held. A recreated topic is another one, with another id.
 */
struct topic_info {
    const char *name; /* terminated */
    struct str name_str;
    struct uuid id;
    uint32_t stream_id, topic_id; /* Iggy's numbers */
    int64_t created_us;           /* wall clock */
};

/* ---- streams ---- */

struct stream_info {
    uint32_t id;        /* from 1, never given again */
    int64_t created_us; /* wall clock */
    char name[256];     /* terminated */
};

/* Make the stream when it is missing. Writes the catalog durably. ST_BAD_NAME: not 1-255 bytes, or a zero among them; ST_IO, ST_NO_SPACE, ST_NO_MEMORY. */
enum status store_stream_ensure(struct store *s, struct str name) MUST_USE;

#define STORE_STREAMS_MAX 100000

/* As store_stream_ensure, but ST_EXISTS when it is there, ST_POLICY: there are STORE_STREAMS_MAX. out may be NULL. */
enum status store_stream_create(struct store *s, struct str name, struct stream_info *out) MUST_USE;
/* ST_NOT_FOUND; ST_EXISTS: another one has the name; ST_BAD_NAME. */
enum status store_stream_rename(struct store *s, uint32_t id, struct str name) MUST_USE;
/* ST_NOT_FOUND; ST_IN_USE: it has topics. */
enum status store_stream_delete(struct store *s, uint32_t id) MUST_USE;

/* False: none. Short, in memory: allowed on a loop. */
bool store_stream_by_name(struct store *s, struct str name, struct stream_info *out);
bool store_stream_by_id(struct store *s, uint32_t id, struct stream_info *out);

/* All, in id order. *out: the caller's (mem_free). ST_NO_MEMORY. */
enum status store_streams(struct store *s, struct stream_info **out, int32_t *count_out) MUST_USE;

/*
 * Names and partitions of all topics together, those of before a rename or a shrinking included as long as their topic lives: half a GiB of
 * memory. What would be over it is refused with ST_POLICY. What is there when the store is opened stays, however much it is.
 */
#define STORE_PARTS_MAX 500000

/* ---- topics, by their numbers ---- */

/* Find and hold; NULL: none. Allowed on a loop. */
struct topic *store_topic_by_number(struct store *s, uint32_t stream_id, uint32_t topic_id);
struct topic *store_topic_in(struct store *s, uint32_t stream_id, struct str name);
/* All topics of a stream in id order, or of all streams (stream_id UINT32_MAX); as store_topics. */
enum status store_topics_in(struct store *s, uint32_t stream_id, struct topic ***out,
                            int32_t *count_out) MUST_USE;

/*
 * The uuid stays; topic_info is another one then, and who read the older one may go on reading it as long as the topic is held.
 * ST_NOT_FOUND; ST_EXISTS; ST_BAD_NAME; ST_POLICY: renamed 10,000 times since the start, or STORE_PARTS_MAX. Others as store_topic_create.
 */
enum status store_topic_rename(struct store *s, struct topic *t, struct str name) MUST_USE;
/*
 * Drop partitions from the end, with what is in them and their committed offsets; readers and writers of those get ST_NOT_FOUND.
 * ST_INVALID: not fewer than there are; ST_NOT_FOUND: deleted; ST_POLICY: 10,000 partitions of it were dropped since the start
 * (each lives on until the topic goes). Others as store_topic_create. Blocks, also while the topic grows, shrinks or is deleted.
 */
enum status store_topic_shrink(struct store *s, struct topic *t, int32_t partitions_count) MUST_USE;

/*
 * Create a topic with partitions_count partitions (>= 0) in an existing stream.
 * settings: count key/value pairs to remember; borrowed.
 * out: held for the caller (topic_unref); may be NULL.
 * ST_EXISTS; ST_NOT_FOUND: no such stream; ST_BAD_NAME: not 1-255 bytes, or a zero among them; ST_INVALID: the count;
 * ST_POLICY: STORE_PARTS_MAX; ST_IO, ST_NO_SPACE, ST_READ_ONLY, ST_NO_MEMORY. All or nothing, also after a crash.
 */
struct store_topic_new {
    struct str stream, name;
    int32_t partitions_count;
    const struct store_setting *settings;
    int32_t settings_count;
    struct uuid cluster; /* goes into the derived topic id */
};
enum status store_topic_create(struct store *s, const struct store_topic_new *want,
                               struct topic **out) MUST_USE;

/* Forget the topic and remove its files. Those who hold it get ST_NOT_FOUND from then on. ST_NOT_FOUND, ST_IO. */
enum status store_topic_delete(struct store *s, struct topic *t) MUST_USE;

/* Grow to partitions_count. ST_INVALID: not more than there are; ST_NOT_FOUND: deleted meanwhile; ST_POLICY: STORE_PARTS_MAX; ST_IO (also:
 * files of partitions that were dropped before can't be removed) ... */
enum status store_topic_grow(struct store *s, struct topic *t, int32_t partitions_count) MUST_USE;

/* How often the settings have been replaced since the store was opened, and 1: read it, then the settings, then set them. Allowed on a loop. */
uint64_t topic_settings_version(const struct topic *t);

/*
 * Replace all settings, if nobody has since the version was read: so a change to some of them loses no other.
 * ST_AGAIN: somebody has; ST_NOT_FOUND, ST_IO ...
 */
struct store_topic_settings {
    const struct store_setting *items; /* borrowed */
    int32_t count;
    uint64_t version;
};
enum status store_topic_set(struct store *s, struct topic *t,
                            const struct store_topic_settings *settings) MUST_USE;

/* Find and hold; NULL: none. Short, in memory: allowed on a loop. */
struct topic *store_topic_find(struct store *s, struct str stream, struct str name);
struct topic *store_topic_by_id(struct store *s, const struct uuid *id);

/* All topics of a stream in name order, each held. *out: owned by the caller (mem_free the array, topic_unref each). ST_NO_MEMORY. */
enum status store_topics(struct store *s, struct str stream, struct topic ***out,
                         int32_t *count_out) MUST_USE;

struct topic *topic_ref(struct topic *t);
void topic_unref(struct topic *t); /* takes NULL */
const struct topic_info *topic_info(const struct topic *t);
int32_t topic_partitions_count(const struct topic *t);
bool topic_deleted(const struct topic *t);

/* The value of a setting as a copy (mem_free); NULL: not set, or no memory. */
char *topic_setting(const struct topic *t, const char *key);
/* Whether a setting is set to exactly this value. No allocation: for each request. */
bool topic_setting_is(const struct topic *t, const char *key, const char *value);
/* Call fn for each setting, under the topic's lock: short, and without calling back into the store. */
void topic_settings_each(const struct topic *t, void (*fn)(void *user, const char *key, const char *value),
                         void *user);

/* NULL: no such partition. Lives as long as the topic is held, also when the topic shrinks. */
struct partition *topic_partition(struct topic *t, int32_t index);

/* ---- partitions ---- */

/* The caller's memory beside the partition, settings.user_bytes long; lives as long as the partition. */
void *partition_user(struct partition *p);

/* What stands in the log, one batch. */
struct store_batch {
    struct bytes payload;
    int64_t base_offset;   /* append: partition_end plus the records before it in the same call */
    int64_t max_timestamp; /* milliseconds; INT64_MIN: none. For the time index and retention */
    int32_t records_count; /* offsets it takes, >= 1 */
    uint8_t format;        /* STORE_FORMAT_* */
};

/*
 * Open it if it is not open yet: check the end of the last segment, cut what a crash left half written (out, may be NULL: bytes cut).
 * Blocks. ST_CORRUPT: damage that isn't a torn end: the partition stays closed to appends and serves what is whole before it;
 * ST_NOT_FOUND: deleted; ST_IO; ST_NO_MEMORY. All calls below open by themselves; this is for warming up.
 */
enum status partition_open(struct partition *p, int64_t *cut_bytes_out) MUST_USE;

/* First offset that is kept, and the one after the last that is written. 0, 0 while it isn't open. Allowed on a loop. */
int64_t partition_start(const struct partition *p);
int64_t partition_end(const struct partition *p);
bool partition_is_open(const struct partition *p); /* so that the two above are true; allowed on a loop */
bool partition_deleted(const struct partition *p); /* with its topic, or by shrinking; allowed on a loop */

/*
 * Write batches at the end, in order, all or none of them. One writer at a time: the caller's matter (backend/store's queue).
 * Readers see them when this returns. Not yet on stable storage: partition_sync.
 * ST_NO_SPACE, ST_READ_ONLY, ST_IO: nothing was appended, and what may have been half written is cut; ST_CORRUPT: closed to appends
 * because of damage or a failed sync; ST_NOT_FOUND: deleted; ST_INVALID: a base_offset or a count that can't be;
 * ST_TOO_BIG: over 4 GiB in one call. Blocks: opens the partition, and syncs a segment that is full before the next begins.
 */
enum status partition_append(struct partition *p, const struct store_batch *batches, int32_t count) MUST_USE;

/*
 * Bring all that was appended before the call to stable storage. May run beside partition_append, which it holds up only
 * where files are new; not beside another of its kind.
 * ST_IO: it failed, and nobody can say what is on disk: the partition is closed to appends until the next start (fsyncgate).
 */
enum status partition_sync(struct partition *p) MUST_USE;

/* Bytes appended since the last sync. Any thread. */
int64_t partition_unsynced_bytes(const struct partition *p);

/* Consecutive batches of one format, contiguous in memory, each with its assigned offset inside as its format has it. */
struct store_run {
    struct bytes bytes;
    uint8_t format;
};

/* The outcome of a read. Zeroed is empty; store_read_release frees. */
struct store_read {
    uint8_t *memory; /* owned */
    size_t memory_bytes;
    struct store_run *runs; /* owned */
    int32_t runs_count;
    int64_t bytes;       /* in all runs */
    int64_t next_offset; /* the one after the last batch read */
};

/*
 * Read whole batches from the one that holds offset on. Small batches are moved together, large ones stay where they were read.
 *
 * offset     partition_start .. partition_end; at the end: ST_OK and no runs
 * bytes_max  of payloads; the first batch comes whole even when it is larger (KIP-74)
 * wait       false: only what is in memory (page cache) and cheap, at most some 1 MiB: for a loop; ST_AGAIN when that isn't so
 * out        zeroed before; filled on ST_OK only
 * ST_OUT_OF_RANGE; ST_CORRUPT: the batch at offset fails its checksum (batches before a bad one are served); ST_NOT_FOUND: deleted;
 * ST_IO; ST_NO_MEMORY
 */
enum status partition_read(struct partition *p, int64_t offset, int64_t bytes_max, bool wait,
                           struct store_read *out) MUST_USE;
void store_read_release(struct store_read *r);

/*
 * The same, waiting, also before the start, as far as that has not been removed yet: for what has to be known of batches that clients may not read any more.
 * From partition_stored_start on and before the end, else ST_OUT_OF_RANGE. The former: 0 while the partition isn't open.
 */
enum status partition_read_stored(struct partition *p, int64_t offset, int64_t bytes_max,
                                  struct store_read *out) MUST_USE;
int64_t partition_stored_start(struct partition *p);

/* Bytes of batches from offset to the end, as far as the index tells without I/O: at least what one more read would bring. Allowed on a loop. */
int64_t partition_bytes_after(struct partition *p, int64_t offset);

/*
 * The first batch that ends behind `from`, and behind the start, whose greatest timestamp is >= timestamp_ms, read whole into out (one run, one
 * batch), with its base offset. That timestamp may be of a record before them. timestamp_ms INT64_MAX: the first of those batches with the greatest
 * timestamp. ST_NOT_FOUND: none. Others as partition_read. Blocks.
 */
enum status partition_find_time(struct partition *p, int64_t from, int64_t timestamp_ms,
                                int64_t *base_offset_out, struct store_read *out) MUST_USE;

/* Retention of one partition, on sealed segments only; what is not limited is < 0. */
struct store_retention {
    int64_t ms;    /* a sealed segment whose greatest timestamp is older goes */
    int64_t bytes; /* the oldest sealed segments go while the rest is not smaller */
};
/* Drop what is over. Also seals a segment that is too old. segments_out: how many went. Blocks, also while another of its kind, or partition_drop, runs. */
enum status partition_retain(struct partition *p, const struct store_retention *keep, int64_t now_wall_ms,
                             int32_t *segments_out) MUST_USE;

/*
 * Drop whole segments from the front: the oldest `count` sealed ones, as many as there are; or everything that is stored (count -1), after
 * which the log starts at its end: offsets go on. segments_out (may be NULL): how many went. Blocks, also while retention runs.
 * ST_OK: on stable storage, no crash brings it back. ST_IO: some may be left, or a sync failed (as partition_sync); ST_CORRUPT,
 * ST_READ_ONLY, with count -1: closed to appends, nothing went; ST_NOT_FOUND: deleted; ST_NO_SPACE, ST_NO_MEMORY: nothing went.
 */
enum status partition_drop(struct partition *p, int32_t count, int32_t *segments_out) MUST_USE;

/*
 * Let the log start at an offset that may be within a segment or a batch; -1: at its end. What is before can't be read or found any more; a batch that holds
 * the offset is still read whole. Sealed segments before it are removed, the active one by partition_retain, 10 minutes after its last append. An offset
 * at or before the start changes nothing. start_out: where the log starts now. Blocks, also while retention runs and appends wait for it.
 * ST_OK: on stable storage, with all that is before the offset: no crash brings the start back. ST_OUT_OF_RANGE: behind the end, or below -1;
 * ST_CORRUPT, ST_READ_ONLY: closed to appends; ST_NOT_FOUND: deleted; ST_NO_SPACE, ST_IO, ST_NO_MEMORY: it is where it was, and may
 * be moved after the next start. Source: Kafka's DeleteRecords (KIP-107).
 */
enum status partition_trim(struct partition *p, int64_t offset, int64_t *start_out) MUST_USE;

/* Bytes on disk. */
int64_t partition_size_bytes(const struct partition *p);
int32_t partition_segments_count(const struct partition *p); /* allowed on a loop */
#endif
