// What a writer guarantees and a reader relies on, checked in release builds, too. A failed check
// is a defect of this code, and memory can no longer be trusted: the process ends at once. It names
// the place and no value, and leaves no core dump.
#pragma once

namespace dke {

[[noreturn]] void EndAt(const char* place);

}  // namespace dke

#define DKE_TEXT_OF(line) #line
#define DKE_PLACE(file, line) file ":" DKE_TEXT_OF(line)
#define DKE_ASSERT(condition) \
  do {                        \
    if (!(condition)) [[unlikely]] ::dke::EndAt(DKE_PLACE(__FILE__, __LINE__)); \
  } while (false)
