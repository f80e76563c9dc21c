/* The store against a model in memory, by a seeded sequence of calls, full disks, restarts and torn tails; and its threads. */
#include "testing/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"
#include "store/log_fixture.h"

#define MODEL_BATCHES_MAX 4000
#define SEGMENT_BYTES     6000
#define STEPS             1500

struct model_batch {
    int64_t base_offset, ts;
    int32_t records, size;
};

static struct model {
    struct model_batch batches[MODEL_BATCHES_MAX];
    int count;
    int first;     /* the first that ends behind the start */
    int64_t start; /* by retention, dropping or trimming */
    int64_t end;
    uint64_t random; /* the sequence follows from it */
    struct log log;
} model;

static uint32_t dice(uint32_t sides) {
    model.random = model.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(model.random >> 33) % sides;
}

static void model_append(void) {
    struct store_batch b[8];
    int count = 1 + (int)dice(8);
    int64_t offset = model.end;
    if (model.count + count > MODEL_BATCHES_MAX)
        return;
    for (int i = 0; i < count; i++) {
        struct model_batch *m = &model.batches[model.count + i];
        *m = (struct model_batch){.base_offset = offset,
                                  .ts = dice(1000),
                                  .records = 1 + (int32_t)dice(5),
                                  .size = (int32_t)dice(600)};
        b[i] = fixture_batch(offset, m->records, m->size, m->ts);
        offset += m->records;
    }
    bool full = dice(15) == 0;
    if (full)
        file_fail_at(FILE_WRITE, 1, ENOSPC);
    CHECK_EQ(partition_append(model.log.p, b, count), full ? ST_NO_SPACE : ST_OK);
    file_fail_at(FILE_WRITE, 0, 0);
    for (int i = 0; i < count; i++)
        fixture_batch_free(&b[i]);
    model.count += full ? 0 : count;
    model.end = full ? model.end : offset;
}

static void model_read(void) {
    struct store_read r;
    int64_t start = model.start;
    if (model.count == model.first)
        return;
    int64_t offset = start + dice((uint32_t)(model.end - start)), bytes_max = dice(5000);
    CHECK_EQ(partition_read(model.log.p, offset, bytes_max, true, &r), ST_OK);
    int at = model.first;
    while (model.batches[at].base_offset + model.batches[at].records <= offset)
        at++;
    int64_t bytes = 0;
    int32_t run = 0;
    int32_t in_run = 0;
    for (; bytes < r.bytes || model.batches[at].size == 0; at++) {
        const struct model_batch *m = &model.batches[at];
        if (at == model.count || m->base_offset == r.next_offset)
            break;
        while (in_run == r.runs[run].bytes.len && m->size > 0) {
            run++;
            in_run = 0;
        }
        CHECK(payload_is(r.runs[run].bytes.ptr + in_run, m->base_offset, m->size));
        in_run += m->size;
        bytes += m->size;
    }
    CHECK_EQ(bytes, r.bytes);
    CHECK_EQ(r.next_offset, at == model.count ? model.end : model.batches[at].base_offset);
    store_read_release(&r);
}

/* Which batches count from now on. */
static void model_start_at(int64_t start) {
    CHECK(start >= model.start);
    model.start = start;
    while (model.first < model.count &&
           model.batches[model.first].base_offset + model.batches[model.first].records <= start)
        model.first++;
}

static void model_find_time(void) {
    struct store_read r;
    int64_t ts = dice(1100), offset = -1, greatest = -1;
    int at = model.first;
    for (int i = at; ts >= 1000 && i < model.count; i++)
        greatest = model.batches[i].ts > greatest ? model.batches[i].ts : greatest;
    while (at < model.count && model.batches[at].ts < (ts >= 1000 ? greatest : ts))
        at++;
    enum status st = partition_find_time(model.log.p, 0, ts >= 1000 ? INT64_MAX : ts, &offset, &r);
    CHECK_EQ(st, at < model.count ? ST_OK : ST_NOT_FOUND);
    if (!st)
        CHECK_EQ(offset, model.batches[at].base_offset);
    store_read_release(&r);
}

static void model_retain(void) {
    struct store_retention keep = {.ms = -1, .bytes = 40000};
    int32_t dropped;
    CHECK_EQ(partition_retain(model.log.p, &keep, 0, &dropped), ST_OK);
    int64_t start = partition_start(model.log.p);
    bool moved = start != model.start;
    CHECK(dropped > 0 || !moved);
    model_start_at(start);
    CHECK(!moved || (model.first < model.count && model.batches[model.first].base_offset == start));
    CHECK(!moved || partition_size_bytes(model.log.p) >= 40000);
    CHECK(start < model.end ||
          partition_size_bytes(model.log.p) == 0); /* what was trimmed goes in any case */
}

static void model_drop(void) {
    int32_t want = (int32_t)dice(4) - 1, before = partition_segments_count(model.log.p), dropped;
    bool full = dice(5) == 0;
    if (full)
        file_fail_at(FILE_WRITE, 1, ENOSPC); /* what is written then can be made again: it must not matter */
    CHECK_EQ(partition_drop(model.log.p, want, &dropped), ST_OK);
    file_fail_at(FILE_WRITE, 0, 0);
    int64_t start = partition_start(model.log.p);
    bool moved = start != model.start;
    model_start_at(start);
    CHECK(!moved ||
          start == (model.first < model.count ? model.batches[model.first].base_offset : model.end));
    CHECK_EQ(partition_end(model.log.p), model.end);
    if (want < 0) {
        CHECK_EQ(start, model.end);
        CHECK_EQ(partition_size_bytes(model.log.p), 0);
    } else {
        CHECK_EQ(dropped, want < before - 1 ? want : before > 0 ? before - 1 : 0);
        CHECK_EQ(partition_segments_count(model.log.p), before - dropped);
    }
}

static void model_trim(void) {
    int64_t offset = model.start + (int64_t)dice((uint32_t)(model.end - model.start) + 1), start = -1;
    uint32_t kind = dice(8);
    if (kind == 0) {
        CHECK_EQ(partition_trim(model.log.p, model.end + 1, &start), ST_OUT_OF_RANGE);
    } else {
        CHECK_EQ(partition_trim(model.log.p, kind == 1 ? -1 : kind == 2 ? 0 : offset, &start), ST_OK);
        CHECK_EQ(start, kind == 1 ? model.end : kind == 2 ? model.start : offset);
        model_start_at(start);
    }
    CHECK_EQ(partition_start(model.log.p), model.start);
}

static const char *active_file(const char *ext) {
    static char path[256];
    for (int at = model.count - 1; at >= model.first; at--) {
        strcpy(path, log_file(model.log.dir, model.batches[at].base_offset, ext));
        if (file_bytes(log_file(model.log.dir, model.batches[at].base_offset, "log")) >= 0)
            return path;
    }
    return NULL;
}

/* Some of the tail is lost, and the index with it. What is before the start can't be: it was synced. */
static void model_tear(void) {
    log_close(&model.log);
    const char *idx = model.count > model.first ? active_file("idx") : NULL;
    if (idx) {
        unlink(idx);
        const char *path = active_file("log");
        int64_t bytes = file_bytes(path), lose = dice(900);
        lose = lose > bytes ? bytes : lose;
        int64_t behind = 0;
        for (int i = model.first; i < model.count; i++)
            if (model.batches[i].base_offset >= model.start)
                behind += model.batches[i].size + BATCH_HEADER_BYTES;
        lose = lose > behind ? behind : lose;
        CHECK_EQ(truncate(path, bytes - lose), 0);
        while (lose > 0) {
            const struct model_batch *last = &model.batches[model.count - 1];
            lose -= last->size + BATCH_HEADER_BYTES;
            model.end = last->base_offset;
            model.count--;
        }
    }
    model.log = log_open(model.log.dir, SEGMENT_BYTES);
    CHECK_EQ(partition_open(model.log.p, NULL), ST_OK);
}

static void model_reopen(void) {
    log_close(&model.log);
    model.log = log_open(model.log.dir, SEGMENT_BYTES);
    CHECK_EQ(partition_open(model.log.p, NULL), ST_OK);
}

static void model_run(uint64_t seed) {
    memset(&model, 0, sizeof model);
    model.random = seed;
    model.log = log_open(log_dir(), SEGMENT_BYTES);
    for (int step = 0; step < STEPS; step++) {
        uint32_t what = dice(100);
        if (what < 40)
            model_append();
        else if (what < 80)
            model_read();
        else if (what < 90)
            model_find_time();
        else if (what < 93)
            CHECK_EQ(partition_sync(model.log.p), ST_OK);
        else if (what < 95)
            model_retain();
        else if (what < 97)
            model_reopen();
        else if (what < 98)
            model_tear();
        else if (what < 99)
            model_drop();
        else
            model_trim();
        CHECK_EQ(partition_start(model.log.p), model.start);
        CHECK_EQ(partition_end(model.log.p), model.end);
    }
    log_close(&model.log);
}

TEST(the_store_agrees_with_its_model_over_full_disks_restarts_and_torn_tails) {
    for (uint64_t seed = 1; seed <= 6; seed++)
        model_run(seed);
}

/* ---- threads ---- */

#define READERS     3
#define RACE_BYTES  1000
#define RACE_APPEND 3000

static struct {
    struct log log;
    _Atomic bool done;
    _Atomic int64_t bad, reads;
} race;

static void *reader(void *seed_ptr) {
    uint64_t seed = (uintptr_t)seed_ptr;
    int64_t offset = 0;
    while (!atomic_load(&race.done) || offset < partition_end(race.log.p)) {
        struct store_read r;
        enum status st = partition_read(race.log.p, offset, 20000, seed % 2 == 0, &r);
        if (st == ST_OUT_OF_RANGE) {
            offset = partition_start(race.log.p);
        } else if (st == ST_AGAIN) {
            st = partition_read(race.log.p, offset, 20000, true, &r);
        }
        if (!st) {
            for (int32_t i = 0; i < r.runs_count; i++)
                for (int32_t at = 0; at < r.runs[i].bytes.len; at += RACE_BYTES)
                    if (!payload_is(r.runs[i].bytes.ptr + at, offset++, RACE_BYTES))
                        atomic_fetch_add(&race.bad, 1);
            if (offset != r.next_offset)
                atomic_fetch_add(&race.bad, 1);
            atomic_fetch_add(&race.reads, 1);
        } else if (st != ST_OUT_OF_RANGE) {
            atomic_fetch_add(&race.bad, 1);
        }
        if (partition_bytes_after(race.log.p, offset) < 0)
            atomic_fetch_add(&race.bad, 1);
        store_read_release(&r);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if ((seed >> 33) % 100 == 0)
            offset = partition_start(race.log.p);
    }
    return NULL;
}

static void *retainer(void *unused) {
    while (!atomic_load(&race.done)) {
        int32_t dropped;
        struct store_retention keep = {.ms = -1, .bytes = 300000};
        if (partition_retain(race.log.p, &keep, 0, &dropped))
            atomic_fetch_add(&race.bad, 1);
        usleep(500);
    }
    return unused;
}

static void *dropper(void *unused) {
    for (int round = 1; !atomic_load(&race.done); round++) {
        int64_t start, end = partition_end(race.log.p);
        if (partition_drop(race.log.p, round % 8 == 0 ? -1 : 1, NULL))
            atomic_fetch_add(&race.bad, 1);
        if (partition_trim(race.log.p, end - end % 7, &start) || start < end - end % 7)
            atomic_fetch_add(&race.bad, 1);
        if (partition_end(race.log.p) > 0 && partition_segments_count(race.log.p) < 1)
            atomic_fetch_add(&race.bad, 1);
        usleep(2000);
    }
    return unused;
}

TEST(readers_retention_and_dropping_beside_a_writer_see_only_whole_batches) {
    pthread_t threads[READERS + 2];
    memset(&race, 0, sizeof race);
    race.log = log_open(log_dir(), 50000);
    CHECK_EQ(partition_open(race.log.p, NULL), ST_OK);
    for (uintptr_t i = 0; i < READERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, reader, (void *)(i + 1)), 0);
    CHECK_EQ(pthread_create(&threads[READERS], NULL, retainer, NULL), 0);
    CHECK_EQ(pthread_create(&threads[READERS + 1], NULL, dropper, NULL), 0);
    for (int i = 0; i < RACE_APPEND; i++) {
        CHECK_EQ(log_append(&race.log, 1, RACE_BYTES, i), ST_OK);
        if (i % 500 == 0)
            CHECK_EQ(partition_sync(race.log.p), ST_OK);
    }
    atomic_store(&race.done, true);
    for (int i = 0; i < READERS + 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(race.bad, 0);
    CHECK(race.reads > 0);
    CHECK(partition_start(race.log.p) > 0);
    log_close(&race.log);
}

static void *syncer(void *unused) {
    while (!atomic_load(&race.done)) {
        int64_t before = partition_unsynced_bytes(race.log.p);
        if (partition_sync(race.log.p))
            atomic_fetch_add(&race.bad, 1);
        atomic_fetch_add(&race.reads, before > 0);
    }
    return unused;
}

TEST(syncs_beside_appends_and_rolls_leave_nothing_unsynced) {
    pthread_t thread;
    const char *dir = log_dir();
    memset(&race, 0, sizeof race);
    race.log = log_open(dir, 20000);
    CHECK_EQ(partition_open(race.log.p, NULL), ST_OK);
    CHECK_EQ(pthread_create(&thread, NULL, syncer, NULL), 0);
    for (int i = 0; i < 300 || atomic_load(&race.reads) < 20; i++)
        CHECK_EQ(log_append(&race.log, 1, RACE_BYTES, i), ST_OK);
    atomic_store(&race.done, true);
    pthread_join(thread, NULL);
    CHECK_EQ(race.bad, 0);
    CHECK_EQ(partition_sync(race.log.p), ST_OK);
    CHECK_EQ(partition_unsynced_bytes(race.log.p), 0);
    int64_t end = partition_end(race.log.p);
    log_check_all(&race.log, 0, end, RACE_BYTES);
    log_close(&race.log);
    race.log = log_open(dir, 20000);
    log_check_all(&race.log, 0, end, RACE_BYTES);
    log_close(&race.log);
}

static void *read_until_gone(void *unused) {
    for (;;) {
        struct store_read r;
        enum status st = partition_read(race.log.p, 0, 5000, true, &r);
        store_read_release(&r);
        if (st == ST_NOT_FOUND)
            return unused;
        if (st)
            atomic_fetch_add(&race.bad, 1);
    }
}

static void *append_until_gone(void *unused) {
    while (log_append(&race.log, 1, RACE_BYTES, 0) == ST_OK)
        ;
    return unused;
}

TEST(a_topic_may_be_deleted_beside_its_readers_and_its_writer) {
    pthread_t threads[3];
    for (int round = 0; round < 5; round++) {
        memset(&race, 0, sizeof race);
        race.log = log_open(log_dir(), 20000);
        log_append_many(&race.log, 100, RACE_BYTES);
        CHECK_EQ(pthread_create(&threads[0], NULL, read_until_gone, NULL), 0);
        CHECK_EQ(pthread_create(&threads[1], NULL, read_until_gone, NULL), 0);
        CHECK_EQ(pthread_create(&threads[2], NULL, append_until_gone, NULL), 0);
        while (partition_end(race.log.p) < 110)
            sched_yield();
        CHECK_EQ(store_topic_delete(race.log.s, race.log.t), ST_OK);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        CHECK_EQ(race.bad, 0);
        CHECK_EQ(file_bytes(log_file(race.log.dir, 0, "log")), -1);
        log_close(&race.log);
    }
}
