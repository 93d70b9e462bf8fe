/*
 * Native tests: `TEST(its_rule) { ... }` is a test of its file, and runs in the order in which they
 * stand. What has a name here is all that a file says of cmocka besides its assertions.
 */
#ifndef DKE_TESTS_H
#define DKE_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#include <cmocka.h>
}
#define TEST_STATE void **
#else
#include <cmocka.h>
#define TEST_STATE __attribute__((unused)) void **state
#endif

enum { MOST_TESTS = 64 };
static struct CMUnitTest written_tests[MOST_TESTS];
static size_t written_count;

static inline void write_test(struct CMUnitTest test) {
  if (written_count == MOST_TESTS) abort();
  written_tests[written_count++] = test;
}

/* `before` and `after` run around the test. */
#define TEST_WITH(name, before, after)                                                                    \
  static void name(TEST_STATE);                                                                           \
  __attribute__((constructor)) static void write_##name(void) {                                           \
    struct CMUnitTest test = {#name, name, before, after, NULL};                                          \
    write_test(test);                                                                                     \
  }                                                                                                       \
  static void name(TEST_STATE)
#define TEST(name) TEST_WITH(name, NULL, NULL)

/* For main: `before` and `after` run around all of them. */
static inline int run_written_tests(CMFixtureFunction before, CMFixtureFunction after) {
  return _cmocka_run_group_tests("tests", written_tests, written_count, before, after);
}

#endif
