#include "backend/iggy/reader_test.h"

#include "backend/iggy/view.h"
#include "base/clock.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "net/loop.h"
#include "testing/test.h"

static struct bridge_rig rig;
static struct reader reader;

static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_12_0,
                                    IGGY_0_11}; /* fetches, polls with contexts, polls */

static void open_with(uint32_t version, const char *topic, uint32_t partitions) {
    rig_open(&rig, (struct rig_options){.version = version});
    fake_add_topic(&rig.server, "kafka", topic, partitions);
}

static struct part_found read_at(int64_t offset) {
    return read_one(&rig, "t", 0, offset);
}

static void check_at(int64_t offset, enum status st, int64_t end, int64_t base, int32_t records) {
    struct part_found found = read_at(offset);
    CHECK_EQ(found.status, st);
    CHECK_EQ(found.end, end);
    CHECK_EQ(found.base, base);
    CHECK_EQ(found.records, records);
}

/* ---- where an offset lies ---- */

TEST(messages_are_read_as_records_from_the_offset_on) { /* D2-10, D2-12, D2-22 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 3, .letter = 'a'});
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'b'});
        check_at(0, ST_OK, 5, 0, 5);
        check_at(2, ST_OK, 5, 2, 3);
        check_at(4, ST_OK, 5, 4, 1);
        check_at(5, ST_OK, 5, -1, 0);
        rig_close(&rig);
    }
}

static void age_view(struct bridge_loop *l, void *arg) {
    struct topic_view *v = view_peek(l, STR("t"));
    if (v)
        v->asked_ms -= *(const int64_t *)arg;
}

/* What was seen of the topic is so much older. */
static void pass_ms(int64_t ms) {
    rig_run(&rig, age_view, &ms);
}

/* What get_topic and polls say is the same for no message and for one. */
TEST(an_empty_partition_ends_at_0_and_one_with_one_message_at_1) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        bool old = versions[v] == IGGY_0_11;
        open_with(versions[v], "t", 1);
        check_at(0, ST_OK, 0, -1, 0);
        /* D2-26: 0.11 shows an empty partition also while it loads one */
        check_at(1, old ? ST_UNAVAILABLE : ST_OUT_OF_RANGE, -1, -1, 0);
        check_at(2, old ? ST_UNAVAILABLE : ST_OUT_OF_RANGE, -1, -1, 0);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.letter = 'a'});
        pass_ms(101);
        check_at(0, ST_OK, 1, 0, 1);
        check_at(1, ST_OK, 1, -1, 0);
        check_at(2, old ? ST_UNAVAILABLE : ST_OUT_OF_RANGE, -1, -1, 0);
        rig_close(&rig);
    }
}

TEST(an_offset_beyond_the_end_or_below_0_is_out_of_range) { /* D2-21, D2-26 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 3, .letter = 'a'});
        check_at(4, ST_OUT_OF_RANGE, -1, -1, 0);
        check_at(INT64_MAX, ST_OUT_OF_RANGE, -1, -1, 0);
        check_at(-1, ST_OUT_OF_RANGE, -1, -1, 0);
        rig_close(&rig);
    }
}

TEST(an_offset_below_the_oldest_message_is_out_of_range_unless_it_is_to_be_read) { /* D2-23, D2-24 */
    for (size_t v = 0; v < COUNT_OF(versions); v++)
        for (int below = 0; below <= 1; below++) {
            rig_prepare(&rig, (struct rig_options){.version = versions[v]});
            rig.settings.read_below_start = below;
            rig_begin(&rig);
            fake_add_topic(&rig.server, "kafka", "t", 1);
            fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 9, .letter = 'a'});
            fake_trim(&rig.server, "t", 0, 4);
            if (below)
                check_at(1, ST_OK, 9, 4, 5);
            else
                check_at(1, ST_OUT_OF_RANGE, -1, -1, 0);
            check_at(4, ST_OK, 9, 4, 5);
            fake_trim(&rig.server, "t", 0, 9); /* nothing is kept */
            check_at(1, below ? ST_OK : ST_OUT_OF_RANGE, below ? 9 : -1, -1, 0);
            check_at(9, ST_OK, 9, -1, 0);
            check_at(10, ST_OUT_OF_RANGE, -1, -1, 0);
            rig_close(&rig);
        }
}

TEST(an_empty_poll_below_the_end_is_no_end) { /* D2-25 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 9, .letter = 'a'});
        fake_mute(&rig.server, "t", 0, true);
        check_at(3, ST_UNAVAILABLE, -1, -1, 0);
        fake_mute(&rig.server, "t", 0, false);
        check_at(3, ST_OK, 9, 3, 6);
        rig_close(&rig);
    }
}

/* ---- what isn't there ---- */

static enum status look_up(struct str name, struct uuid id, struct backend_topic *out) {
    struct backend_topics_part part = {.name = name, .id = id};
    struct turn turn = {.topics = {.parts = &part, .parts_count = 1}};
    turn_run(&rig, &turn, start_topics);
    *out = part.topic;
    return part.status;
}

static struct uuid id_of(const char *topic) {
    struct backend_topic found;
    CHECK_EQ(look_up(str_of(topic), (struct uuid){{0}}, &found), ST_OK);
    return found.id;
}

static struct part_found read_by_id(struct uuid id, int32_t partition, int64_t offset) {
    reader_init(&reader, &rig, 0);
    struct backend_read_part *p = reader_add(&reader, "", partition, offset);
    p->topic = STR_NULL;
    p->id = id;
    reader_run(&reader);
    struct part_found found = {.status = p->status, .end = p->high_watermark, .base = part_base(p)};
    reader_release(&reader);
    return found;
}

TEST(topics_and_partitions_that_are_missing_are_not_found) { /* D2-20 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 2);
        CHECK_EQ(read_one(&rig, "t", 2, 0).status, ST_NOT_FOUND);
        CHECK_EQ(read_one(&rig, "t", -1, 0).status, ST_NOT_FOUND);
        CHECK_EQ(read_one(&rig, "u", 0, 0).status, ST_NOT_FOUND);
        CHECK_EQ(read_by_id((struct uuid){{1}}, 0, 0).status, ST_UNKNOWN_ID);
        struct uuid id = id_of("t");
        CHECK_EQ(read_by_id(id, 2, 0).status, ST_NOT_FOUND);
        fake_write(&rig.server, "t", 1, (struct fake_messages){.count = 3, .letter = 'a'});
        CHECK_EQ(read_by_id(id, 1, 1).base, 1);
        fake_remove_topic(&rig.server, "t");
        struct part_found found = {0};
        for (int i = 0; i < 2; i++) /* 0.11 has seen it less than 100 ms ago, but polls it */
            found = read_by_id(id, 1, 1);
        CHECK_EQ(found.status, ST_UNKNOWN_ID);
        CHECK_EQ(read_one(&rig, "t", 1, 1).status, ST_NOT_FOUND);
        rig_close(&rig);
    }
}

TEST(a_partition_that_came_since_the_last_look_is_found) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 1);
        check_at(0, ST_OK, 0, -1, 0);
        fake_grow(&rig.server, "t", 4);
        fake_write(&rig.server, "t", 3, (struct fake_messages){.letter = 'a'});
        CHECK_EQ(read_one(&rig, "t", 3, 0).records, 1);
        rig_close(&rig);
    }
}

TEST(a_topic_that_was_made_anew_is_read_by_name_and_no_more_by_id) { /* 87 */
    open_with(IGGY_0_12_2, "t", 1);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 5, .letter = 'a'});
    check_at(3, ST_OK, 5, 3, 2);
    struct uuid id = id_of("t");
    fake_remove_topic(&rig.server, "t");
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'b'});
    check_at(0, ST_OK, 2, 0, 2);
    check_at(3, ST_OUT_OF_RANGE, -1, -1, 0);
    CHECK_EQ(read_by_id(id, 0, 0).status, ST_UNKNOWN_ID);
    rig_close(&rig);
}

TEST(a_server_that_always_calls_the_topic_another_one_is_asked_twice) {
    open_with(IGGY_0_12_2, "t", 1);
    fake_refuse_part(&rig.server, "t", 0, IGGY_ERR_NOT_PRIMARY);
    check_at(0, ST_UNAVAILABLE, -1, -1, 0);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_fetch_messages), 2);
    rig_close(&rig);
}

/* ---- errors ---- */

TEST(each_partition_has_its_own_error) { /* F */
    static const struct {
        uint32_t code;
        enum status status;
    } rows[] = {{0, ST_OK},
                {IGGY_ERR_UNAUTHORIZED, ST_DENIED},
                {IGGY_ERR_NOT_CONNECTED, ST_UNAVAILABLE},
                {IGGY_ERR_PARTITION_NOT_FOUND, ST_NOT_FOUND},
                {IGGY_ERR_INVALID_OFFSET, ST_REFUSED},
                {0, ST_OK}};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", COUNT_OF(rows));
        reader_init(&reader, &rig, 0);
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            fake_write(&rig.server, "t", (uint32_t)i, (struct fake_messages){.count = 2, .letter = 'a'});
            reader_add(&reader, "t", (int32_t)i, 1);
        }
        id_of("t");
        for (size_t i = 0; i < COUNT_OF(rows); i++)
            fake_refuse_part(&rig.server, "t", (uint32_t)i, rows[i].code);
        reader_run(&reader);
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            CHECK_EQ(reader.parts[i].status, rows[i].status);
            CHECK_EQ(reader.parts[i].high_watermark, rows[i].code ? -1 : 2);
            CHECK_EQ(part_records(&reader.parts[i]), rows[i].code ? 0 : 1);
        }
        reader_release(&reader);
        rig_close(&rig);
    }
}

TEST(a_connection_that_is_lost_in_a_read_is_made_again) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'a'});
        fake_refuse(&rig.server,
                    versions[v] == IGGY_0_12_2 ? IGGY_CMD_fetch_messages : IGGY_CMD_poll_messages, 0, 1);
        check_at(0, ST_OK, 2, 0, 2);
        rig_close(&rig);
    }
}

TEST(a_read_ends_with_its_deadline_whatever_the_server_does) { /* D2-30 */
    static const uint32_t silent[] = {IGGY_CMD_get_topic, IGGY_CMD_fetch_messages, IGGY_CMD_poll_messages};
    for (size_t v = 0; v < COUNT_OF(versions); v++)
        for (size_t i = 0; i < COUNT_OF(silent); i++) {
            open_with(versions[v], "t", 1);
            fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'a'});
            fake_hold(&rig.server, silent[i]);
            reader_init(&reader, &rig, 0);
            bool used = (silent[i] == IGGY_CMD_get_topic) ||
                        (versions[v] == IGGY_0_12_2) == (silent[i] == IGGY_CMD_fetch_messages);
            if (used)
                reader.patience_ms = 100;
            reader_add(&reader, "t", 0, 0);
            reader_run(&reader);
            CHECK_EQ(reader.parts[0].status, used ? ST_UNAVAILABLE : ST_OK);
            reader_release(&reader);
            rig_close(&rig);
        }
}

TEST(a_server_that_lets_nobody_in_is_said_to_do_so) {
    open_with(IGGY_0_12_2, "t", 1);
    fake_lock(&rig.server);
    rig.server.password = "changed";
    fake_unlock(&rig.server);
    CHECK_EQ(read_at(0).status, ST_LOGIN_REFUSED);
    rig_close(&rig);
}

TEST(what_was_known_of_a_topic_serves_for_30_s_but_proves_no_end) { /* D2-51 */
    open_with(IGGY_0_11, "t", 1);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'a'});
    check_at(2, ST_OK, 2, -1, 0);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_poll_messages), 0);
    pass_ms(25000);
    fake_refuse(&rig.server, IGGY_CMD_get_topic, IGGY_ERR_NOT_CONNECTED, 100);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 3, .letter = 'b'});
    check_at(2, ST_OK, 5, 2, 3);
    pass_ms(25000);
    CHECK_EQ(read_at(2).status, ST_UNAVAILABLE);
    rig_close(&rig);
}

TEST(topics_that_were_seen_are_known_while_the_server_is_away) { /* as a broker answers from what it knows */
    struct backend_topic found;
    open_with(IGGY_0_12_2, "t", 3);
    struct uuid id = id_of("t");
    fake_refuse(&rig.server, IGGY_CMD_get_topic, IGGY_ERR_NOT_CONNECTED, 100);
    pass_ms(3600000);
    CHECK_EQ(look_up(STR("t"), id, &found), ST_OK);
    CHECK_EQ(found.partitions_count, 3);
    CHECK_EQ(look_up(STR_NULL, id, &found), ST_OK);
    CHECK(str_equal(found.name, STR("t")));
    CHECK_EQ(look_up(STR("u"), id, &found), ST_UNAVAILABLE);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_get_topic), 4);
    rig_close(&rig);
}

/* ---- how much ---- */

TEST(records_end_where_the_bytes_do_but_one_comes_in_any_case) { /* D2-33, D2-34 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 3);
        for (uint32_t i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++)
                fake_write(&rig.server, "t", i,
                           (struct fake_messages){.count = 3, .len = 1000, .letter = 'a'});
        rig.server.message_bytes = 1100;
        reader_init(&reader, &rig, 0);
        for (int32_t i = 0; i < 3; i++)
            reader_add(&reader, "t", i, 0);
        reader.parts[0].bytes_max = 2500;
        reader.read.bytes_max = 6000;
        reader_run(&reader);
        CHECK_EQ(part_records(&reader.parts[0]), 2);
        CHECK(part_records(&reader.parts[1]) >= 2);
        CHECK(reader.read.bytes <= 6000);
        for (int32_t i = 0; i < 3; i++)
            CHECK_EQ(reader.parts[i].high_watermark, 9);
        reader_release(&reader);

        reader_init(&reader, &rig, 0);
        for (int32_t i = 0; i < 3; i++)
            reader_add(&reader, "t", i, 0);
        reader.read.bytes_max = 1;
        reader_run(&reader);
        CHECK_EQ(part_records(&reader.parts[0]), 1);
        CHECK_EQ(reader.read.bytes, reader.parts[0].bytes);
        for (int32_t i = 0; i < 3; i++)
            CHECK_EQ(reader.parts[i].status, ST_OK);
        reader_release(&reader);
        rig_close(&rig);
    }
}

TEST(many_messages_are_converted_beside_the_loop) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 1);
        for (int i = 0; i < 4; i++)
            fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 1000, .len = 100, .letter = 'a'});
        check_at(1500, ST_OK, 4000, 1500, 2500);
        rig_close(&rig);
    }
}

/* 0.11 is asked for a number of messages: an answer that is too large ends the connection. */
TEST(a_page_that_is_too_large_is_asked_for_again_in_smaller_ones) {
    open_with(IGGY_0_11, "t", 2);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 1000, .letter = 'a'});
    fake_write(&rig.server, "t", 1, (struct fake_messages){.count = 1000, .letter = 'a'});
    rig.server.poll_count_max = 10;
    reader_init(&reader, &rig, 0);
    reader_add(&reader, "t", 0, 10);
    reader_add(&reader, "t", 1, 900);
    reader_run(&reader);
    CHECK(part_records(&reader.parts[0]) >= 1);
    CHECK(part_records(&reader.parts[1]) >= 1);
    reader_release(&reader);
    rig_close(&rig);
}

TEST(a_message_that_is_no_record_ends_the_batch_and_stops_the_partition) { /* D2-35, H-15 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'a'});
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'b', .no_record = true});
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'c'});
        check_at(0, ST_OK, 6, 0, 2);
        check_at(2, ST_UNMAPPABLE, -1, -1, 0);
        check_at(4, ST_OK, 6, 4, 2);
        rig_close(&rig);
    }
}

TEST(a_message_that_is_no_record_can_be_passed_over) { /* H-15 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        rig_prepare(&rig, (struct rig_options){.version = versions[v]});
        rig.settings.skip_unmappable = true;
        rig_begin(&rig);
        fake_add_topic(&rig.server, "kafka", "t", 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'a'});
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'b', .no_record = true});
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'c'});
        check_at(0, ST_OK, 6, 0, 4);
        check_at(3, ST_OK, 6, 3, 2);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 1, .letter = 'b', .no_record = true});
        pass_ms(101);
        check_at(6, ST_OK, 7, 6, 0); /* a batch without a record, so that readers go on behind it */
        rig_close(&rig);
    }
}

/* ---- many ---- */

TEST(thousands_of_partitions_are_read_at_once) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 2500);
        for (uint32_t i = 0; i < 2500; i += 500)
            fake_write(&rig.server, "t", i, (struct fake_messages){.count = 2, .letter = 'a'});
        reader_init(&reader, &rig, 0);
        for (int32_t i = 0; i < 2500; i++)
            reader_add(&reader, "t", i, 0);
        reader_run(&reader);
        for (int32_t i = 0; i < 2500; i++) {
            CHECK_EQ(reader.parts[i].status, ST_OK);
            CHECK_EQ(reader.parts[i].high_watermark, i % 500 ? 0 : 2);
            CHECK_EQ(part_records(&reader.parts[i]), i % 500 ? 0 : 2);
        }
        reader_release(&reader);
        bool fetches = versions[v] == IGGY_0_12_2;
        CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_fetch_messages), fetches ? 3 : 0);
        CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_poll_messages),
                 fetches ? 0 : 5); /* what has nothing isn't polled */
        CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_get_topic), 1);
        rig_close(&rig);
    }
}

TEST(topics_of_one_read_are_asked_for_beside_each_other) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        rig_open(&rig, (struct rig_options){.version = versions[v], .mapped = "mapped"});
        reader_init(&reader, &rig, 0);
        const char *names[] = {"a", "b", "c", "d", "e", "f", "place"};
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            fake_add_topic(&rig.server, i < 6 ? "kafka" : "other", names[i], 1);
            fake_write(&rig.server, names[i], 0,
                       (struct fake_messages){.count = (uint32_t)i + 1, .letter = 'a'});
            reader_add(&reader, i < 6 ? names[i] : "mapped", 0, 0);
        }
        reader_add(&reader, "missing", 0, 0);
        reader_run(&reader);
        for (size_t i = 0; i < COUNT_OF(names); i++)
            CHECK_EQ(part_records(&reader.parts[i]), i + 1);
        CHECK_EQ(reader.parts[COUNT_OF(names)].status, ST_NOT_FOUND);
        reader_release(&reader);
        rig_close(&rig);
    }
}

TEST(a_read_may_be_given_back_that_never_began_and_one_of_nothing_ends) {
    open_with(IGGY_0_12_2, "t", 1);
    reader_init(&reader, &rig, 0);
    reader_release(&reader);
    reader_run(&reader);
    CHECK_EQ(reader.read.bytes, 0);
    reader_release(&reader);
    rig_close(&rig);
}

/* ---- without memory ---- */

static void read_without_memory(void) {
    for (int i = 0; i < 3; i++)
        reader.parts[i].status = ST_CORRUPT;
    reader_run(&reader);
    for (int i = 0; i < 3; i++) {
        const struct backend_read_part *p = &reader.parts[i];
        CHECK(p->status == ST_OK || p->status == ST_UNAVAILABLE || p->status == ST_LOGIN_REFUSED);
        if (p->status == ST_OK)
            (void)part_records(p);
    }
    reader_release(&reader);
}

TEST(a_read_survives_any_failed_allocation) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], "t", 2);
        fake_add_topic(&rig.server, "kafka", "u", 1);
        for (uint32_t i = 0; i < 2; i++)
            fake_write(&rig.server, "t", i, (struct fake_messages){.count = 500, .len = 100, .letter = 'a'});
        reader_init(&reader, &rig, 0);
        reader_add(&reader, "t", 0, 0);
        reader_add(&reader, "t", 1, 0);
        reader_add(&reader, "u", 0, 0);
        test_oom(read_without_memory);
        reader_run(&reader);
        CHECK_EQ(part_records(&reader.parts[0]), 500);
        CHECK_EQ(part_records(&reader.parts[1]), 500);
        reader_release(&reader);
        rig_close(&rig);
    }
}
