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

/* The numbers that group/coordinator.h names. */
TEST(the_coordinators_outcomes_have_their_codes) {
    static const struct {
        enum group_outcome outcome;
        int16_t code, number;
    } table[] = {
        {GROUP_OK, KERR_NONE, 0},
        {GROUP_NOT_AVAILABLE, KERR_COORDINATOR_NOT_AVAILABLE, 15},
        {GROUP_NOT_COORDINATOR, KERR_NOT_COORDINATOR, 16},
        {GROUP_ILLEGAL_GENERATION, KERR_ILLEGAL_GENERATION, 22},
        {GROUP_INCONSISTENT_PROTOCOL, KERR_INCONSISTENT_GROUP_PROTOCOL, 23},
        {GROUP_INVALID_ID, KERR_INVALID_GROUP_ID, 24},
        {GROUP_UNKNOWN_MEMBER, KERR_UNKNOWN_MEMBER_ID, 25},
        {GROUP_INVALID_SESSION_TIMEOUT, KERR_INVALID_SESSION_TIMEOUT, 26},
        {GROUP_REBALANCE_IN_PROGRESS, KERR_REBALANCE_IN_PROGRESS, 27},
        {GROUP_UNSUPPORTED_VERSION, KERR_UNSUPPORTED_VERSION, 35},
        {GROUP_INVALID_REQUEST, KERR_INVALID_REQUEST, 42},
        {GROUP_NON_EMPTY, KERR_NON_EMPTY_GROUP, 68},
        {GROUP_ID_NOT_FOUND, KERR_GROUP_ID_NOT_FOUND, 69},
        {GROUP_MEMBER_ID_REQUIRED, KERR_MEMBER_ID_REQUIRED, 79},
        {GROUP_MAX_SIZE_REACHED, KERR_GROUP_MAX_SIZE_REACHED, 81},
        {GROUP_FENCED_INSTANCE, KERR_FENCED_INSTANCE_ID, 82},
        {GROUP_FENCED_EPOCH, KERR_FENCED_MEMBER_EPOCH, 110},
        {GROUP_UNRELEASED_INSTANCE, KERR_UNRELEASED_INSTANCE_ID, 111},
        {GROUP_UNSUPPORTED_ASSIGNOR, KERR_UNSUPPORTED_ASSIGNOR, 112},
        {GROUP_STALE_EPOCH, KERR_STALE_MEMBER_EPOCH, 113},
        {GROUP_INVALID_REGULAR_EXPRESSION, KERR_INVALID_REGULAR_EXPRESSION, 128},
        {GROUP_CANCELED, KERR_NOT_COORDINATOR, 16},
    };
    CHECK_EQ(COUNT_OF(table), GROUP_CANCELED + 1);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        CHECK_EQ(table[i].outcome, i);
        CHECK_EQ(kerr_of_group(table[i].outcome), table[i].code);
        CHECK_EQ(table[i].code, table[i].number);
    }
}

TEST(a_status_that_stands_in_no_table_is_an_unknown_error) {
    CHECK_EQ(kerr_of(ST_NO_MEMORY), -1);
    CHECK_EQ(kerr_of((enum status)10000), -1);
}
