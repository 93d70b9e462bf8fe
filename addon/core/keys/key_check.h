// What is checked of a key that comes from outside, in two steps.
//
// First the form: the structure of the encoding, the algorithm, the curve and the size of each
// number. This step compares bytes and lengths only, and the encoding has at most 16 KiB. It takes
// microseconds whatever the caller sends. Then the numbers, by arithmetic: only for a key whose
// form this core carries. That bounds the time: see CheckPrivateKey.
//
// What this leaves out: who may import a key, and the key table (keys/key_table.cc).
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace dke {

// An encoded key of any kind is shorter.
constexpr size_t kMostEncodedKey = 16384;
// What may be imported. Whether a key below 2048 bits is used is the callers' decision; none is
// generated.
constexpr int kLeastRsaBits = 1024;
constexpr int kLeastGeneratedRsaBits = 2048;
constexpr int kMostRsaBits = 4096;
// libcrypto's own limit above 3072 bits, here for all sizes: a public operation takes time in
// proportion to the exponent's length.
constexpr int kMostRsaExponentBits = 64;

// The form of a PKCS#8 (RFC 5958) and of a SubjectPublicKeyInfo (RFC 5280). kBadArgument: the
// structure is wrong. kUnsupported: the algorithm, the curve or a size is not one of this core's.
Status CheckPrivateForm(const uint8_t* pkcs8, size_t size);
Status CheckPublicForm(const uint8_t* spki, size_t size);

// Whether the numbers of a private key fit together. The form must have been checked. Takes up to 8
// ms for RSA-4096 and 2 ms on the curves. Primes are not tested:
// docs/decisions/0019-numbers-of-imported-rsa-keys.md.
Status CheckPrivateKey(EVP_PKEY* pkey);
// Whether a public key's point is on its curve. The form of an RSA key says all there is to check.
Status CheckPublicKey(EVP_PKEY* pkey);

}  // namespace dke
