// Logs in to a PKCS#11 token by a library that this process has loaded: the one call of Cryptoki
// that takes a PIN. Others make it from a string; here it is bytes, which the caller wipes. Leaves
// out everything else of Cryptoki (PKCS#11 2.40, section 5.6).
#pragma once

#include <string>

#include "base/status.h"

namespace dke {

// The library's return value. kIo: it is not loaded, or has no such function.
Result<unsigned long> LoginToken(const std::string& module, unsigned long session, const uint8_t* pin, size_t length);

}  // namespace dke
