#include "kafka/errors.h"

#include "testing/test.h"

/* What the bridge's statuses are to a producer and to a consumer: F's table, its second half. */
TEST(the_statuses_of_an_iggy_server_have_their_codes) {
    static const struct {
        enum status st;
        int16_t append, read;
    } table[] = {
        {ST_OK, 0, 0},
        {ST_NOT_FOUND, 3, 3},
        {ST_DENIED, 29, 29},
        {ST_LOGIN_REFUSED, -1, -1},
        {ST_UNAVAILABLE, 6, 6},
        {ST_TIMED_OUT, 7, 6},
        {ST_REFUSED, -1, -1},
        {ST_UNMAPPABLE, -1, -1},
        {ST_NO_GROUP, -1, -1},
        {ST_BAD_NAME, 17, 3},
        {ST_EXISTS, 36, 36},
        {ST_BAD_PARTITIONS, 37, 37},
        {ST_POLICY, 44, 44},
        {ST_TOO_BIG, 10, 10},
        {ST_BAD_SEQUENCE, 45, 45},
        {ST_FENCED, 47, 47},
        {ST_UNKNOWN_PRODUCER, 59, 59},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        CHECK_EQ(kerr_of_append(table[i].st), table[i].append);
        CHECK_EQ(kerr_of_read(table[i].st), table[i].read);
    }
}

/* F's last column, D12-4. */
TEST(what_can_be_tried_again_with_offsets_is_14) {
    static const struct {
        enum status st;
        int16_t code;
    } table[] = {
        {ST_OK, 0},           {ST_NOT_FOUND, 3},  {ST_DENIED, 29},      {ST_LOGIN_REFUSED, -1},
        {ST_UNAVAILABLE, 14}, {ST_TIMED_OUT, 14}, {ST_CANCELED, 14},    {ST_NO_MEMORY, 14},
        {ST_REFUSED, -1},     {ST_BAD_NAME, 17},  {ST_POLICY, -1},      {ST_TOO_BIG, 12},
        {ST_IO, 16},          {ST_NO_SPACE, 16},  {ST_UNKNOWN_ID, 100}, {ST_INVALID, -1},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++)
        CHECK_EQ(kerr_of_offsets(table[i].st), table[i].code);
}

TEST(a_status_that_stands_in_no_table_is_an_unknown_error) {
    CHECK_EQ(kerr_of(ST_NO_MEMORY), -1);
    CHECK_EQ(kerr_of((enum status)10000), -1);
}
