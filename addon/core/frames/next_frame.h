// The framing, and nothing else: what stands at the beginning of bytes that a peer has sent. A pure
// function, whose result is proven to lie within those bytes; everything that a frame is measured
// by is here.
//
// The peer chooses every byte, also one that was admitted. A header is believed only as far as
// `most` goes, which the loop chooses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dke {

constexpr size_t kHeader = 12;

struct NextFrame {
  enum class Kind {
    kIncomplete,  // more bytes are needed
    kRing,        // an empty frame that only wakes
    kFrame,
    kBroken,  // nothing that follows can be a frame
  };
  Kind kind = Kind::kIncomplete;
  uint32_t call_code = 0;
  // Offsets in `data`: where the body of a kFrame is, and where a kFrame or a kRing ends and the
  // next frame begins.
  size_t body_at = 0;
  size_t body_length = 0;
  size_t end = 0;
};

// `most`: of options and body together. `rings`: whether the peer may send such frames.
NextFrame ReadFrame(const uint8_t* data, size_t length, size_t most, bool rings);

}  // namespace dke
