// The end of the process at a set time, whatever its threads are doing. `exit` waits for threads
// that are within a call of the system (a sync of a disk that hangs), which may never return.
#pragma once

#include <cstdint>

namespace dke {

// Ends the process by _exit after so many milliseconds. A later call replaces the time and the exit
// code of an earlier one. False: the thread that waits could not be started.
bool EndProcessIn(uint32_t milliseconds, int exit_code);

}  // namespace dke
