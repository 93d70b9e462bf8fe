#include "base/base64.h"

#include <array>

namespace dke {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<uint8_t, 256> MakeValues() {
  std::array<uint8_t, 256> values{};
  for (auto& value : values) value = 0xff;
  for (uint8_t i = 0; i < 64; i++) values[static_cast<uint8_t>(kAlphabet[i])] = i;
  return values;
}
constexpr std::array<uint8_t, 256> kValues = MakeValues();

}  // namespace

void EncodeBase64(const uint8_t* data, size_t size, uint8_t* out) {
  size_t i = 0;
  for (; i + 3 <= size; i += 3) {
    const uint32_t group = static_cast<uint32_t>(data[i]) << 16 | static_cast<uint32_t>(data[i + 1]) << 8 | data[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) *out++ = static_cast<uint8_t>(kAlphabet[group >> shift & 63]);
  }
  const size_t rest = size - i;
  if (rest == 0) return;
  const uint32_t group = static_cast<uint32_t>(data[i]) << 16 | (rest == 2 ? static_cast<uint32_t>(data[i + 1]) << 8 : 0);
  *out++ = static_cast<uint8_t>(kAlphabet[group >> 18 & 63]);
  *out++ = static_cast<uint8_t>(kAlphabet[group >> 12 & 63]);
  *out++ = rest == 2 ? static_cast<uint8_t>(kAlphabet[group >> 6 & 63]) : '=';
  *out++ = '=';
}

ptrdiff_t DecodeBase64(const uint8_t* text, size_t size, uint8_t* out) {
  if (size % 4 != 0) return -1;
  uint8_t* const start = out;
  for (size_t i = 0; i < size; i += 4) {
    const bool last = i + 4 == size;
    const bool two = last && text[i + 3] == '=';
    const bool one = two && text[i + 2] == '=';
    const uint8_t a = kValues[text[i]];
    const uint8_t b = kValues[text[i + 1]];
    const uint8_t c = one ? 0 : kValues[text[i + 2]];
    const uint8_t d = two ? 0 : kValues[text[i + 3]];
    if ((a | b | c | d) > 63) return -1;
    // Canonical: the bits that padding leaves over are zero.
    if ((one && (b & 15) != 0) || (two && !one && (c & 3) != 0)) return -1;
    const uint32_t group = static_cast<uint32_t>(a) << 18 | static_cast<uint32_t>(b) << 12 | static_cast<uint32_t>(c) << 6 | d;
    *out++ = static_cast<uint8_t>(group >> 16);
    if (!one) *out++ = static_cast<uint8_t>(group >> 8);
    if (!two) *out++ = static_cast<uint8_t>(group);
  }
  return out - start;
}

}  // namespace dke
