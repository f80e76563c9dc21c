/*
 * Tests: TEST(name_is_the_claim) { ... } in x_test.c, on cmocka. A test binary is the tests it was linked with, plus test_main.c.
 * Usage of a binary: x_tests [part of a test's name]
 */
#ifndef TESTING_TEST_H
#define TESTING_TEST_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void test_add(const char *name, CMUnitTestFunction run);

#define TEST(name)                                                   \
    static void test_##name(void **state);                           \
    __attribute__((constructor)) static void test_add_##name(void) { \
        test_add(#name, test_##name);                                \
    }                                                                \
    static void test_##name(void **state __attribute__((unused)))

#define CHECK(cond)        assert_true(cond)
#define CHECK_EQ(a, b)     assert_int_equal((a), (b))
#define CHECK_TEXT(a, b)   assert_string_equal((a), (b))
#define CHECK_MEM(a, b, n) assert_memory_equal((a), (b), (n))

/* The body runs again and again, with the 1st, 2nd, ... allocation failing, until one run needs no more. */
#define TEST_OOM(name)                 \
    static void oom_body_##name(void); \
    TEST(name) {                       \
        test_oom(oom_body_##name);     \
    }                                  \
    static void oom_body_##name(void)
void test_oom(void (*body)(void));

/* The number in a variable of the environment: seeds, and how much to do. */
uint64_t test_number(const char *name, uint64_t otherwise);

/* A new folder, removed with all in it when the binary ends; at most 512. Static text. */
const char *test_dir(void);
#endif
