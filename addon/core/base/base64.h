// Base64 (RFC 4648, section 4): the standard alphabet, padded, canonical, nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dke {

constexpr size_t Base64Length(size_t bytes) { return (bytes + 2) / 3 * 4; }
// `out` has Base64Length(size) bytes.
void EncodeBase64(const uint8_t* data, size_t size, uint8_t* out);
// The decoded length, or -1 when the text is not exactly what EncodeBase64 writes. `out` has size /
// 4 * 3 bytes; it may be the same memory as `text`.
ptrdiff_t DecodeBase64(const uint8_t* text, size_t size, uint8_t* out);

}  // namespace dke
