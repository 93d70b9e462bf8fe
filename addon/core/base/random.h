// Random bytes from libcrypto's DRBGs, which seed from the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace dke {

// For values that may be public: IVs, salts, C_GenerateRandom.
Status RandomPublic(uint8_t* out, size_t size);
// For keys: libcrypto's private generator.
Status RandomSecret(uint8_t* out, size_t size);

}  // namespace dke
