// Memory that has been freed, and that the C library keeps for later: after a wave of requests it
// is as much as what is in use.
#pragma once

namespace dke {

// Gives whole pages of it back to the system, of every thread's share. Takes milliseconds, in
// which threads that allocate may wait: for a thread that no one waits for. False: there was none,
// or the C library keeps none.
bool ReturnFreeMemory();

}  // namespace dke
