// Random bytes from libcrypto's DRBGs, with fresh bytes of the kernel in each draw.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace dke {

// For values that may be public: IVs, salts, C_GenerateRandom.
Status RandomPublic(uint8_t* out, size_t size);
// For keys: libcrypto's private generator.
Status RandomSecret(uint8_t* out, size_t size);
// From a given generator of libcrypto: for tests.
Status RandomFrom(EVP_RAND_CTX* generator, uint8_t* out, size_t size);

}  // namespace dke
