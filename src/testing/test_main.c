#include "testing/test.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

#define TESTS_MAX 2000
#define DIRS_MAX  512

static struct CMUnitTest tests[TESTS_MAX];
static size_t tests_count;
static char dirs[DIRS_MAX][64];
static size_t dirs_count;

void test_add(const char *name, CMUnitTestFunction run) {
    if (tests_count == TESTS_MAX)
        abort();
    tests[tests_count++] = (struct CMUnitTest){.name = name, .test_func = run};
}

void test_oom(void (*body)(void)) {
    for (int64_t nth = 1; nth < 100000; nth++) {
        mem_fail_at(nth);
        body();
        bool all_done = mem_fail_pending();
        mem_fail_at(0);
        if (all_done)
            return;
    }
    fail_msg("the body never runs out of allocations");
}

uint64_t test_number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

const char *test_dir(void) {
    char *dir = dirs[dirs_count % DIRS_MAX];
    if (dirs_count >= DIRS_MAX)
        fail_msg("too many folders");
    dirs_count++;
    strcpy(dir, "/tmp/igk-test-XXXXXX");
    if (!mkdtemp(dir))
        fail_msg("mkdtemp");
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        char pattern[256];
        snprintf(pattern, sizeof pattern, "*%s*", argv[1]);
        cmocka_set_test_filter(pattern);
    }
    int failed = _cmocka_run_group_tests("tests", tests, tests_count, NULL, NULL);
    for (size_t i = 0; i < dirs_count; i++)
        nftw(dirs[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
