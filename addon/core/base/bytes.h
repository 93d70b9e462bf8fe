// Big-endian numbers, as every format of ours writes them.
#pragma once

#include <cstdint>
#include <vector>

namespace dke {

inline void PutU32(uint8_t* out, uint32_t value) {
  out[0] = static_cast<uint8_t>(value >> 24);
  out[1] = static_cast<uint8_t>(value >> 16);
  out[2] = static_cast<uint8_t>(value >> 8);
  out[3] = static_cast<uint8_t>(value);
}

inline uint32_t GetU32(const uint8_t* in) {
  return static_cast<uint32_t>(in[0]) << 24 | static_cast<uint32_t>(in[1]) << 16 | static_cast<uint32_t>(in[2]) << 8 | in[3];
}

inline void PutU64(uint8_t* out, uint64_t value) {
  PutU32(out, static_cast<uint32_t>(value >> 32));
  PutU32(out + 4, static_cast<uint32_t>(value));
}
inline uint64_t GetU64(const uint8_t* in) { return uint64_t{GetU32(in)} << 32 | GetU32(in + 4); }

inline void AppendU32(std::vector<uint8_t>& out, uint32_t value) {
  const size_t at = out.size();
  out.resize(at + 4);
  PutU32(out.data() + at, value);
}

// u32 length, then the bytes: no two lists of fields give the same encoding.
inline void AppendField(std::vector<uint8_t>& out, const void* data, size_t size) {
  AppendU32(out, static_cast<uint32_t>(size));
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

}  // namespace dke
