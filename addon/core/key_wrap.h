// AES key wrap, RFC 3394 (KW), and with padding, RFC 5649 (KWP): over keys, and over a caller's data.
#pragma once

#include <vector>

#include "key_table.h"

namespace dke {

Result<std::vector<uint8_t>> WrapKey(KeyRef wrapping, KeyRef key, bool padded);
Result<KeyRef> UnwrapKey(KeyRef wrapping, const uint8_t* wrapped, size_t length, bool padded, KeyKind kind);
Result<std::vector<uint8_t>> WrapData(KeyRef wrapping, const uint8_t* data, size_t length, bool padded);
Result<SecureBuffer> UnwrapData(KeyRef wrapping, const uint8_t* wrapped, size_t length, bool padded);

}  // namespace dke
