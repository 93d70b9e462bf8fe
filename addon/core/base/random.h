// Random bytes from libcrypto's DRBGs, with fresh bytes of the kernel in each draw, also where
// libcrypto itself draws: new key pairs, and the padding of RSA encryption. What libcrypto draws to
// sign is safe as it is: it hashes key and message into it, or the value may repeat (salts of PSS).
// No other file generates a pair (test/house/random.test.ts).
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
// Stirs the generator from which libcrypto pads.
Status StirPublic();
// A new key pair by a context that EVP_PKEY_keygen_init has seen, or of a kind of libcrypto, with
// its group where it has several. Null on failure; the caller owns it.
EVP_PKEY* NewPair(EVP_PKEY_CTX* context);
EVP_PKEY* NewPair(const char* kind, const char* group = nullptr);
// From a given generator of libcrypto: for tests.
Status RandomFrom(EVP_RAND_CTX* generator, uint8_t* out, size_t size);

}  // namespace dke
