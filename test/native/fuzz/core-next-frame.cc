// The framing, for any bytes: each frame that it finds is within them, and no input keeps it busy.
#include <cstdlib>

#include "frames/next_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const size_t most = static_cast<size_t>(data[0]) << 8 | data[1];
  const bool rings = (data[2] & 1) != 0;
  const uint8_t* at = data + 3;
  size_t left = size - 3;
  for (;;) {
    const dke::NextFrame next = dke::ReadFrame(at, left, most, rings);
    if (next.kind == dke::NextFrame::Kind::kIncomplete || next.kind == dke::NextFrame::Kind::kBroken) return 0;
    if (next.end < dke::kHeader || next.end > left) abort();
    if (next.kind == dke::NextFrame::Kind::kRing && !rings) abort();
    if (next.kind == dke::NextFrame::Kind::kFrame &&
        (next.call_code == 0 || next.body_at + next.body_length != next.end || next.end - dke::kHeader > most)) {
      abort();
    }
    at += next.end;
    left -= next.end;
  }
}
