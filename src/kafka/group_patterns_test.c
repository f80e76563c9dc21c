/* Which topics the patterns of consumer groups match: D11-99. On a loop with a coordinator, matching in the pool. */
#include "kafka/group_patterns.h"

#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/work.h"
#include "testing/test.h"

#define PATIENCE_S 60
#define START_MS   rig.start_ms /* groups_call has the real clock: times are from there on */
#define TOPICS_MAX 2000

static struct rig {
    struct backend backend;
    struct loop *loop;
    struct groups *groups;
    struct group_topics *topics;
    struct group_patterns *patterns;
    int64_t start_ms;
    struct backend_topic known[TOPICS_MAX];
    int32_t known_count;
    enum status status;
    _Atomic int32_t looks;
} rig;

static void fake_topics(struct backend *b, struct backend_topics *call) {
    (void)b;
    for (int32_t i = 0; i < call->parts_count; i++) /* group_topics.h asks too */
        call->parts[i].status = ST_UNAVAILABLE;
    rig.looks += call->all;
    call->topics = rig.known;
    call->topics_count = rig.known_count;
    call->status = rig.status;
    op_start(&call->op, NULL);
    op_complete(&call->op, ST_OK);
}

static const struct backend_ops fake_ops = {.name = "fake", .topics = fake_topics};

static void fake_random(void *ctx, uint8_t out[16]) {
    (void)ctx;
    memset(out, 1, 16);
}

/* "a,b": with one partition each, in that order. */
static void topics_are(const char *names) {
    rig.known_count = 0;
    while (*names) {
        const char *comma = strchr(names, ',');
        int32_t len = comma ? (int32_t)(comma - names) : (int32_t)strlen(names);
        rig.known[rig.known_count++] =
            (struct backend_topic){.name = {names, len}, .id = {{1}}, .partitions_count = 1};
        names += len + (comma != NULL);
    }
}

static void rig_open(const char *names) {
    memset(&rig, 0, sizeof rig);
    rig.backend.ops = &fake_ops;
    rig.start_ms = clock_ms();
    topics_are(names);
    CHECK_EQ(work_start(1), ST_OK);
    CHECK_EQ(loop_new(0, &rig.loop), ST_OK);
    CHECK_EQ(loop_start(rig.loop), ST_OK);
    const struct group_topics_settings settings = {&rig.backend, rig.loop, &rig.groups};
    CHECK_EQ(group_topics_new(&settings, &rig.topics), ST_OK);
    rig.patterns = group_topics_patterns(rig.topics);
    struct coordinator_settings groups;
    coordinator_settings_default(&groups);
    groups.random = fake_random;
    CHECK_EQ(groups_new(&groups, rig.loop, &rig.groups), ST_OK);
}

static void rig_close(void) {
    work_stop();
    loop_stop(rig.loop);
    groups_free(rig.groups);
    group_topics_free(rig.topics);
    loop_free(rig.loop);
}

/* ---- something to do on the coordinator's loop ---- */

struct visit {
    struct groups_call hop;
    const char *pattern; /* to find */
    int64_t tend_ms;     /* or when to tend */
    enum status offered;
    int64_t version; /* in and out */
    enum group_pattern found;
    char names[300]; /* "a,b,"; "-": not told */
    sem_t ended;
};

static void visit_find(struct visit *v) {
    struct group_matches matches = {.version = v->version, .count = -1};
    group_patterns_offer(rig.patterns, str_of(v->pattern), v->offered, START_MS);
    v->found = group_patterns_find(rig.patterns, str_of(v->pattern), &matches);
    v->version = matches.version;
    strcpy(v->names, matches.count < 0 ? "-" : "");
    for (int32_t i = 0; i < matches.count; i++)
        snprintf(v->names + strlen(v->names), sizeof v->names - strlen(v->names), "%.*s,",
                 matches.names[i].len, matches.names[i].ptr);
}

static void visit_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    (void)now_ms;
    (void)c;
    struct visit *v = container_of(hop, struct visit, hop);
    if (v->pattern)
        visit_find(v);
    else
        group_topics_tend(rig.topics, v->tend_ms);
    groups_call_end(hop);
}

static void visit_on_back(struct op *op) {
    sem_post(&container_of(op, struct visit, hop.op)->ended);
}

static void visit_start(struct op *op) {
    groups_call(rig.groups, &container_of(op, struct visit, hop.back)->hop);
}

static void visit(struct visit *v) {
    v->hop = (struct groups_call){.begin = visit_begin};
    sem_init(&v->ended, 0, 0);
    op_init(&v->hop.op, rig.loop, visit_on_back);
    op_init(&v->hop.back, rig.loop, visit_start); /* not in use before the call's end */
    loop_post(&v->hop.back);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int failed;
    do
        failed = sem_timedwait(&v->ended, &until);
    while (failed && errno == EINTR);
    CHECK_EQ(failed, 0);
    sem_destroy(&v->ended);
}

static struct visit found;

static enum group_pattern find(const char *pattern, enum status offered, int64_t version) {
    found = (struct visit){.pattern = pattern, .offered = offered, .version = version};
    visit(&found);
    return found.found;
}

static void tend(int64_t now_ms) {
    struct visit v = {.tend_ms = now_ms};
    visit(&v);
}

/* Asks until it is another version than that, or refused. */
static void find_until(const char *pattern, int64_t version) {
    int64_t until_ms = clock_ms() + PATIENCE_S * 1000;
    do {
        CHECK(clock_ms() < until_ms);
        find(pattern, ST_OK, version);
    } while (found.found == GROUP_PATTERN_NOT_KNOWN_YET ||
             (found.found == GROUP_PATTERN_KNOWN && found.version == version));
}

/* ---- rules ---- */

TEST(a_pattern_is_matched_with_the_next_round_and_told_when_it_is_another_version) {
    rig_open("a,b,ba");
    CHECK_EQ(find("b.*", ST_OK, 0), GROUP_PATTERN_NOT_KNOWN_YET);
    tend(START_MS);
    find_until("b.*", 0);
    CHECK_EQ(found.found, GROUP_PATTERN_KNOWN);
    CHECK_TEXT(found.names, "b,ba,");
    CHECK_EQ(find("b.*", ST_OK, found.version), GROUP_PATTERN_KNOWN);
    CHECK_TEXT(found.names, "-");
    CHECK_EQ(rig.looks, 1);
    rig_close();
}

TEST(topics_that_come_and_go_are_seen_when_it_is_time_or_they_are_stirred) { /* D11-97 */
    rig_open("a,b");
    find("b.*", ST_OK, 0);
    tend(START_MS);
    find_until("b.*", 0);
    int64_t version = found.version;
    topics_are("a,b,bb");
    tend(START_MS + GROUP_PATTERNS_STIR_MS);
    CHECK_EQ(rig.looks, 1); /* nobody said so */
    group_topics_stir(rig.topics);
    tend(START_MS + GROUP_PATTERNS_STIR_MS);
    find_until("b.*", version);
    CHECK_TEXT(found.names, "b,bb,");
    version = found.version;
    topics_are("bb");
    tend(START_MS + GROUP_PATTERNS_STIR_MS + GROUP_PATTERNS_LIST_MS - 1);
    CHECK_EQ(rig.looks, 2);
    tend(START_MS + PATIENCE_S * 1000);
    find_until("b.*", version);
    CHECK_TEXT(found.names, "bb,");
    CHECK_EQ(rig.looks, 3);
    rig_close();
}

TEST(other_topics_are_no_news_for_a_pattern) {
    rig_open("a,b,x");
    find("b.*", ST_OK, 0);
    find(".*", ST_OK, 0);
    tend(START_MS);
    find_until("b.*", 0);
    int64_t version = found.version;
    find_until(".*", 0);
    int64_t all_version = found.version;
    topics_are("b,c,d,x"); /* the places of bits are other ones */
    tend(START_MS + PATIENCE_S * 1000);
    find_until(".*", all_version);
    CHECK_TEXT(found.names, "b,c,d,x,");
    CHECK_EQ(find("b.*", ST_OK, version), GROUP_PATTERN_KNOWN);
    CHECK_EQ(found.version, version);
    CHECK_EQ(find("b.*", ST_OK, 0), GROUP_PATTERN_KNOWN);
    CHECK_TEXT(found.names, "b,");
    rig_close();
}

TEST(what_the_backend_can_not_list_changes_nothing) { /* D11-97 */
    rig_open("a");
    find(".*", ST_OK, 0);
    tend(START_MS);
    find_until(".*", 0);
    int64_t version = found.version;
    topics_are("a,b");
    rig.status = ST_UNAVAILABLE;
    tend(START_MS + GROUP_PATTERNS_LIST_MS);
    while (rig.looks < 2)
        find(".*", ST_OK, version);
    CHECK_EQ(find(".*", ST_OK, version), GROUP_PATTERN_KNOWN);
    CHECK_EQ(found.version, version);
    rig.status = ST_OK;
    tend(START_MS + 2 * GROUP_PATTERNS_LIST_MS);
    find_until(".*", version);
    CHECK_TEXT(found.names, "a,b,");
    rig_close();
}

TEST(topics_without_id_or_with_a_bad_name_are_not_matched) {
    rig_open("a b,c,d,e");
    rig.known[2].id = (struct uuid){{0}};
    find(".*", ST_OK, 0);
    tend(START_MS);
    find_until(".*", 0);
    CHECK_TEXT(found.names, "c,e,");
    rig_close();
}

TEST(a_pattern_that_is_not_valid_or_has_no_room_is_not_kept) {
    char text[16];
    rig_open("a");
    CHECK_EQ(find("(", ST_INVALID, 0), GROUP_PATTERN_INVALID);
    CHECK_EQ(find("a", ST_NO_MEMORY, 0), GROUP_PATTERN_NOT_AVAILABLE);
    CHECK_EQ(find("", ST_OK, 0), GROUP_PATTERN_NOT_AVAILABLE);
    tend(START_MS);
    CHECK_EQ(rig.looks, 0); /* nothing is listed for nobody */
    for (int i = 0; i < GROUP_PATTERNS_MAX; i++) {
        snprintf(text, sizeof text, "a%d", i);
        CHECK_EQ(find(text, ST_OK, 0), GROUP_PATTERN_NOT_KNOWN_YET);
    }
    CHECK_EQ(find("b", ST_OK, 0), GROUP_PATTERN_NOT_AVAILABLE);
    tend(START_MS + GROUP_TOPICS_UNWANTED_MS + 1); /* nobody has asked for so long */
    CHECK_EQ(find("b", ST_OK, 0), GROUP_PATTERN_NOT_KNOWN_YET);
    rig_close();
}

TEST(a_pattern_that_nobody_checked_is_refused_when_it_is_matched) {
    rig_open("a");
    CHECK_EQ(find("(", ST_OK, 0), GROUP_PATTERN_NOT_KNOWN_YET);
    tend(START_MS);
    find_until("(", 0);
    CHECK_EQ(found.found, GROUP_PATTERN_INVALID);
    rig_close();
}

/* Each state of the automaton is another one, so that each byte costs as much as the pattern is long. */
TEST(a_pattern_that_takes_too_long_is_refused_and_the_others_are_not) {
    static char names[TOPICS_MAX][250];
    uint32_t seed = 1;
    rig_open("");
    for (int i = 0; i < TOPICS_MAX; i++) {
        for (int j = 0; j < 249; j++)
            names[i][j] = "ab"[(seed = seed * 1664525 + 1013904223) >> 31];
        rig.known[rig.known_count++] =
            (struct backend_topic){.name = str_of(names[i]), .id = {{1}}, .partitions_count = 1};
    }
    find("(.*)(a|b|c|d|e){800}", ST_OK, 0);
    find("a.*", ST_OK, 0);
    tend(START_MS);
    find_until("(.*)(a|b|c|d|e){800}", 0);
    CHECK_EQ(found.found, GROUP_PATTERN_INVALID);
    find_until("a.*", 0);
    CHECK_EQ(found.found, GROUP_PATTERN_KNOWN);
    rig_close();
}

TEST(a_server_that_stops_matches_nothing) {
    rig_open("a");
    find("a", ST_OK, 0);
    group_topics_stop(rig.topics);
    tend(START_MS);
    CHECK_EQ(rig.looks, 0);
    CHECK_EQ(find("a", ST_OK, 0), GROUP_PATTERN_NOT_KNOWN_YET);
    rig_close();
}

TEST_OOM(a_table_of_patterns_without_memory_says_so) {
    const struct group_topics_settings settings = {0};
    struct group_patterns *t;
    struct group_matches matches = {0};
    if (group_patterns_new(&settings, NULL, &t) != ST_OK)
        return;
    enum group_pattern a = group_patterns_find(t, STR("a"), &matches);
    enum group_pattern b = group_patterns_find(t, STR("b"), &matches);
    CHECK(a == GROUP_PATTERN_NOT_KNOWN_YET || b == GROUP_PATTERN_NOT_KNOWN_YET ||
          (a == GROUP_PATTERN_NOT_AVAILABLE && b == GROUP_PATTERN_NOT_AVAILABLE));
    group_patterns_free(t);
    group_patterns_free(NULL);
}
