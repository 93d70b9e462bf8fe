#include "frames/next_frame.h"

#include "base/assert.h"
#include "base/bytes.h"

namespace dke {

NextFrame ReadFrame(const uint8_t* data, size_t length, size_t most, bool rings) {
  NextFrame next;
  if (length < kHeader) return next;
  next.call_code = GetU32(data);
  const uint64_t options = GetU32(data + 4);
  const uint64_t body = GetU32(data + 8);
  if (next.call_code == 0 && options == 0 && body == 0 && rings) {
    next.kind = NextFrame::Kind::kRing;
    next.end = kHeader;
    return next;
  }
  // Call code 0 means "no frame" to p11-kit's clients, so no reply could carry it.
  if (next.call_code == 0 || options + body > most) {
    next.kind = NextFrame::Kind::kBroken;
    return next;
  }
  if (length - kHeader < options + body) return next;
  next.kind = NextFrame::Kind::kFrame;
  next.body_at = kHeader + static_cast<size_t>(options);
  next.body_length = static_cast<size_t>(body);
  next.end = next.body_at + next.body_length;
  DKE_ASSERT(next.end <= length);
  return next;
}

}  // namespace dke
