#include "base/assert.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace dke {

void EndAt(const char* place) {
  static constexpr char kFront[] = "dke: a check of the core failed, and the process ends: ";
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // No allocation and no stream: nothing here relies on memory that may be damaged.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kFront, sizeof kFront - 1);
  written = write(STDERR_FILENO, place, strlen(place));
  written = write(STDERR_FILENO, "\n", 1);
  abort();
}

}  // namespace dke
