// The end of the process at a set time, whatever its threads are doing. `exit` waits for threads
// that are within a call of the system (a sync of a disk that hangs), which may never return.
#pragma once

#include <cstdint>

namespace dke {

// Of two times the later call's counts. False: no thread could be started.
bool EndProcessIn(uint32_t milliseconds, int exit_code);

}  // namespace dke
