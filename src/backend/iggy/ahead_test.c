#include "backend/iggy/ahead.h"

#include "backend/iggy/reader_test.h"
#include "iggy/errors.h"
#include "testing/test.h"

#define PAGE_BYTES 100000
#define BUDGET     (INT64_C(1) << 30) /* the rig's */
#define TRIES_MAX  200 /* a machine that stops for 100 ms between two reads makes the next one a first one */

static struct bridge_rig rig;
static struct reader reader;

static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_12_0, IGGY_0_11};

static uint32_t command_of(uint32_t version) {
    return version >= IGGY_0_12_1 ? IGGY_CMD_fetch_messages : IGGY_CMD_poll_messages;
}

static void write_messages(char letter) {
    for (int i = 0; i < 100; i++)
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 10, .len = 1000, .letter = letter});
    fake_write(&rig.server, "t", 1, (struct fake_messages){.letter = 'z'});
}

static void open_with(uint32_t version) {
    rig_open(&rig, (struct rig_options){.version = version});
    rig.server.message_bytes = 1100;
    fake_add_topic(&rig.server, "kafka", "t", 2);
    write_messages('a');
}

struct page {
    enum status status;
    int64_t base;
    int32_t records;
    char letter;
};

/* The first record's value is all one letter; frames before it are shorter than 100 bytes. */
static struct page read_page_of(int32_t partition, int64_t offset) {
    reader_init(&reader, &rig, 0);
    struct backend_read_part *p = reader_add(&reader, "t", partition, offset);
    p->bytes_max = PAGE_BYTES;
    reader_run(&reader);
    struct page page = {.status = p->status, .base = part_base(p), .records = part_records(p)};
    if (page.records > 0)
        page.letter = (char)p->records[0].ptr[p->records[0].len / 2];
    reader_release(&reader);
    return page;
}

static struct page read_page(int64_t offset) {
    return read_page_of(0, offset);
}

/* Two pages one after the other, from the offset on. What was sent for the third is with the server, since a later request is answered. */
static int64_t read_two(int64_t offset) {
    for (int i = 0; i < 2; i++) {
        struct page page = read_page(offset);
        CHECK_EQ(page.status, ST_OK);
        CHECK_EQ(page.base, offset);
        CHECK(page.records > 0);
        offset += page.records;
    }
    CHECK_EQ(read_page_of(1, 0).records, 1);
    return offset;
}

/* A third page that comes although the server, by now, has nothing. */
static struct page read_ahead(void) {
    struct page page = {.records = 0};
    for (int i = 0; i < TRIES_MAX && page.records == 0; i++) {
        fake_mute(&rig.server, "t", 0, false);
        int64_t offset = read_two(0);
        fake_mute(&rig.server, "t", 0, true);
        page = read_page(offset);
        CHECK(page.records == 0 || page.base == offset);
    }
    fake_mute(&rig.server, "t", 0, false);
    return page;
}

TEST(the_third_page_is_there_before_it_is_read) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        struct page page = read_ahead();
        CHECK(page.records > 0);
        CHECK_EQ(page.letter, 'a');
        rig_close(&rig);
    }
}

TEST(all_pages_come_in_order_to_the_end) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        for (int64_t offset = 0; offset < 1000;) {
            struct page page = read_page(offset);
            CHECK_EQ(page.status, ST_OK);
            CHECK_EQ(page.base, offset);
            CHECK(page.records > 0);
            offset += page.records;
        }
        CHECK_EQ(read_page(1000).status, ST_OK);
        CHECK_EQ(read_page(1000).records, 0);
        rig_close(&rig);
    }
}

/* Of so many reads each asks once; nothing more is asked for. */
TEST(nobody_reads_ahead_for_who_jumps_about) {
    static const int64_t offsets[] = {500, 0, 700, 100, 300, 0, 600, 2};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        for (size_t i = 0; i < COUNT_OF(offsets); i++)
            CHECK_EQ(read_page(offsets[i]).base, offsets[i]);
        CHECK_EQ(fake_seen(&rig.server, command_of(versions[v])), COUNT_OF(offsets));
        rig_close(&rig);
    }
}

static void forget_topic(struct bridge_loop *l, void *arg) {
    (void)arg;
    views_forget(l->bridge, STR("t"));
}

TEST(a_topic_that_was_made_anew_is_not_read_from_what_came_ahead) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        int64_t offset = read_two(0);
        fake_remove_topic(&rig.server, "t");
        fake_add_topic(&rig.server, "kafka", "t", 2);
        write_messages('b');
        rig_run(&rig, forget_topic, NULL);
        CHECK_EQ(read_page(offset).letter, 'b');
        rig_close(&rig);
    }
}

/* What was asked for ahead is refused, or its connection is lost: the read asks itself. */
TEST(a_page_that_failed_ahead_is_asked_for_again) {
    static const uint32_t codes[] = {IGGY_ERR_TOPIC_ID_NOT_FOUND, 0};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        for (size_t c = 0; c < COUNT_OF(codes); c++) {
            open_with(versions[v]);
            int64_t offset = read_page(0).records;
            offset += read_page(offset).records;
            fake_refuse(&rig.server, command_of(versions[v]), codes[c], 1);
            struct page page = read_page(offset);
            for (int i = 0; i < TRIES_MAX && page.status; i++)
                page = read_page(offset);
            CHECK_EQ(page.status, ST_OK);
            CHECK_EQ(page.base, offset);
            rig_close(&rig);
        }
    }
}

static void note_free(struct bridge_loop *l, void *arg) {
    (void)l;
    *(int64_t *)arg = budget_free_bytes(rig.budget);
}

TEST(what_nobody_takes_is_given_back) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        int64_t free_bytes = 0;
        open_with(versions[v]);
        (void)read_two(0);
        while (free_bytes != BUDGET) /* the test binary's time limit ends what doesn't end */
            rig_run(&rig, note_free, &free_bytes);
        rig_close(&rig);
    }
}

TEST(pages_that_are_under_way_end_with_the_bridge) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        int64_t offset = read_page(0).records;
        fake_hold(&rig.server, command_of(versions[v]));
        reader_init(&reader, &rig, 0);
        reader_add(&reader, "t", 0, offset)->bytes_max = PAGE_BYTES;
        reader_begin(&reader);
        fake_expect(&rig.server, command_of(versions[v]), 2);
        fake_let_go(&rig.server);
        reader_end(&reader);
        reader_release(&reader);
        rig_close(&rig);
    }
}

static void read_without_memory(void) {
    for (int64_t offset = 0; offset < 400;) {
        struct page page = read_page(offset);
        CHECK(page.status == ST_OK || page.status == ST_UNAVAILABLE || page.status == ST_LOGIN_REFUSED);
        CHECK(page.records == 0 || page.base == offset);
        if (page.records == 0)
            return;
        offset += page.records;
    }
}

TEST(reading_ahead_survives_any_failed_allocation) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        test_oom(read_without_memory);
        CHECK(read_page(0).records > 0);
        rig_close(&rig);
    }
}
