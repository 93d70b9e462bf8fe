// An RSA private key from fewer numbers than PKCS#8 has: the modulus and the private exponent
// suffice (SP 800-56B, appendix C). The other numbers, which make every use of the key several
// times faster, are computed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "keys/key_table.h"
#include "base/status.h"

namespace dke {

// Unsigned, most significant byte first. Null and 0: not known.
struct RsaNumber {
  const uint8_t* data;
  size_t size;
};
struct RsaNumbers {
  RsaNumber modulus;
  RsaNumber public_exponent;
  RsaNumber private_exponent;
  RsaNumber prime1;
  RsaNumber prime2;
};

// kUnsupported: a size is not one of this core's, which is compared before any arithmetic.
// kBadArgument: the numbers are not those of a key. An unknown public exponent is found if it is at
// most 65537. Takes up to 0.3 s.
Result<EvpPkeyPtr> CompleteRsaKey(const RsaNumbers& numbers);

}  // namespace dke
