// Replays: messages that a frame server's handler has carried out, and that this side carries out
// again without the handler.
//
// A database encrypts or signs message after message, each with an Init and an operation, under a
// few keys; Java makes that an Init, an Update with all of the data and a Final with nothing left.
// What such calls mean is the handler's business (provider/agent/sessions/replays.ts). When it has
// answered one, it may say: while I say nothing else, the same Init is to be answered so, and its
// operation by this cipher under this key. That saves the way into JavaScript and back.
//
// What this leaves out: every decision. An Init that is not the one described, byte for byte but
// for its IV, or whose IV was used, an operation that is in several parts, asks for a length, has
// too little room or fails: all that goes to the handler, and before it every Init and every Update
// that was answered here and whose end has not come, so that the handler finds itself where it
// would be had it seen everything. What it never sees are operations that went well, and those
// leave nothing behind.
//
// Layout of the messages: provider/PROTOCOL.md. One thread owns a connection's replays, the loop's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ciphers/block_cipher.h"
#include "digests/mac.h"
#include "keys/used_ivs.h"

namespace dke {

// Where an operation runs: one of each kind in a session.
struct OperationSlot {
  uint64_t session = 0;
  uint32_t kind = 0;
  bool operator==(const OperationSlot& other) const { return session == other.session && kind == other.kind; }
};

struct Replay {
  OperationSlot slot;
  // The Init, and the offset of its IV, which may differ each time; a length of 0 when it has none.
  std::vector<uint8_t> init;
  size_t iv_at = 0;
  size_t iv_length = 0;
  std::vector<uint8_t> init_answer;
  // What the operation's message and its answer begin with. There follow the data and the room; the
  // result. Empty when it is not carried out here in one piece, or
  std::vector<uint8_t> operation;
  std::vector<uint8_t> operation_answer;
  // not as one Update and a Final, which has the room alone and no result. A cipher's only, one
  // that keeps nothing back.
  std::vector<uint8_t> update;
  std::vector<uint8_t> update_answer;
  std::vector<uint8_t> last;
  std::vector<uint8_t> last_answer;

  KeyPtr key;
  // A MAC of which the first `mac_length` bytes are given, or else a cipher.
  bool is_mac = false;
  MacParameters mac;
  size_t mac_length = 0;
  Direction direction = Direction::kEncrypt;
  CipherParameters cipher{};
  // Data that is not a multiple of so many bytes is not a replay's.
  size_t unit = 1;
  // An encryption that uses its IV up: for whom, and as what the key is known (used_ivs.h). None
  // when a repeat does no harm.
  uint64_t iv_owner = 0;
  std::vector<std::vector<uint8_t>> identities;
};

class ReplayCache {
 public:
  // Replays of one connection at a time. Who uses more keys in turn has them carried out by the
  // handler.
  static constexpr size_t kMost = 16;
  // A longer Update is the handler's: what was answered is kept until the Final, in case that the
  // handler has to see it.
  static constexpr size_t kLongestPart = 16 * 1024;

  // Answers a message into `reply`: the length, or 0 when the handler has to. Only while the
  // handler has no message of the connection.
  size_t Answer(const uint8_t* message, size_t length, uint8_t* reply, size_t capacity);
  // Whether something was answered here that the handler has not seen.
  bool unseen() const { return !running_.empty(); }
  // Takes out the next of it and writes it to `into`, which holds any message. Its length.
  size_t TakeUnseen(uint8_t* into);

  // From now on `replay` is carried out here, and those of its slot again after Suspend. How often
  // the one was used that had to make room for it; -1 when none had to.
  int64_t Learn(Replay replay);
  // Lets the replays of a slot wait, because the handler has an operation running there, until it
  // has none or teaches a replay of the slot again.
  void Suspend(const OperationSlot& slot, bool suspended);
  // Something has changed that an Init reads.
  void Forget();
  size_t size() const { return known_.size(); }

 private:
  struct Known {
    Replay replay;
    bool suspended = false;
    uint64_t uses = 0;
    uint64_t last_use = 0;
    // While running: the Update that was answered, and whether the handler has seen the Init.
    std::vector<uint8_t> part;
    bool init_seen = false;
    // Operations in parts that ended here, less those that the handler had to see; how many Updates
    // it is still to be given because they were too many, and how many the next time.
    int64_t parts_gain = 0;
    uint32_t parts_rest = 0;
    uint32_t parts_next_rest = 0;
    ~Known() { DropPart(); }
    void DropPart();
    void LosePart();
  };
  size_t Begin(const uint8_t* message, size_t length, uint8_t* reply, size_t capacity);
  size_t Finish(Known* known, const uint8_t* message, size_t length, uint8_t* reply, size_t capacity);
  size_t Update(Known* known, const uint8_t* message, size_t length, uint8_t* reply, size_t capacity);
  size_t Last(Known* known, const uint8_t* message, size_t length, uint8_t* reply, size_t capacity);
  void End(Known* known);
  bool IsRunning(const OperationSlot& slot) const;
  bool MayStart(const Replay& replay, const uint8_t* iv) const;

  std::vector<std::unique_ptr<Known>> known_;
  std::vector<Known*> running_;  // oldest first
  uint64_t clock_ = 0;
};

}  // namespace dke
