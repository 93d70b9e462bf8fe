// Fuzzes the messages that a connection sends to the replay cache, with three operations that it
// knows. The input is a row of messages: a byte that chooses how each begins, a byte for the length
// of what follows.
#include <stdlib.h>
#include <string.h>

#include "frames/replay_cache.h"

namespace {

constexpr size_t kReply = 512;

std::vector<uint8_t> Text(const char* text) { return {text, text + strlen(text)}; }

dke::Replay Known(dke::KeyPtr key, uint64_t session, bool is_mac, bool in_parts) {
  dke::Replay replay;
  replay.slot = {session, 0};
  replay.init = Text(is_mac ? "init mac" : "init 0123456789abcdef");
  replay.iv_at = is_mac ? 0 : 5;
  replay.iv_length = is_mac ? 0 : 16;
  replay.init_answer = Text("yes");
  replay.operation = Text(is_mac ? "mac" : "do");
  replay.operation_answer = Text("done");
  if (in_parts) {
    replay.update = Text("part");
    replay.update_answer = Text("some");
    replay.last = Text("last");
    replay.last_answer = Text("end");
  }
  replay.key = std::move(key);
  replay.is_mac = is_mac;
  replay.mac_length = 20;
  replay.cipher.mode = dke::CipherMode::kCbc;
  replay.cipher.iv_length = 16;
  replay.unit = is_mac ? 1 : 16;
  return replay;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const dke::KeyPtr key = [] {
    if (!dke::AdoptCryptoAllocations() || !dke::InitializeMemory(size_t{4} << 20, true).ok()) abort();
    return dke::FindKey(dke::GenerateAes(256).value());
  }();
  static constexpr const char* kStarts[] = {"init 0123456789abcdef", "init mac", "do", "mac", "part", "last", ""};
  dke::ReplayCache replays;
  (void)replays.Learn(Known(key, 1, false, true));
  (void)replays.Learn(Known(key, 2, true, false));
  (void)replays.Learn(Known(key, 3, false, false));
  while (size >= 2) {
    std::vector<uint8_t> message = Text(kStarts[data[0] % std::size(kStarts)]);
    const size_t length = data[1] < size - 2 ? data[1] : size - 2;
    const size_t capacity = (data[0] & 0x80) != 0 ? data[1] : kReply;
    message.insert(message.end(), data + 2, data + 2 + length);
    data += 2 + length;
    size -= 2 + length;
    // Each buffer is exactly as long as it is said to be, so that the sanitizer finds what is read
    // or written behind it.
    const std::vector<uint8_t> exact(message);
    std::vector<uint8_t> reply(capacity);
    if (replays.Answer(exact.data(), exact.size(), reply.data(), capacity) > capacity) abort();
    std::vector<uint8_t> seen(4096);
    if ((data[-1] & 0x40) != 0 && replays.unseen()) (void)replays.TakeUnseen(seen.data());
  }
  return 0;
}
