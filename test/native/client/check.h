/* Checks of the programs in this folder: each that fails prints its line and counts. */
#ifndef DKE_TEST_CLIENT_CHECK_H
#define DKE_TEST_CLIENT_CHECK_H
#include <stdio.h>

static int faults;

#define IS(call, wanted)                                                                                                 \
  do {                                                                                                                   \
    const CK_RV is_ = (call);                                                                                            \
    if (is_ != (wanted)) {                                                                                               \
      faults++;                                                                                                          \
      printf("line %d: %s is 0x%lx and not %s\n", __LINE__, #call, is_, #wanted);                                        \
    }                                                                                                                    \
  } while (0)
#define HOLDS(condition)                                                                                                 \
  do {                                                                                                                   \
    if (!(condition)) {                                                                                                  \
      faults++;                                                                                                          \
      printf("line %d: %s does not hold\n", __LINE__, #condition);                                                       \
    }                                                                                                                    \
  } while (0)

#endif
