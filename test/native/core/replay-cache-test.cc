// The replay cache below JavaScript: which messages are answered without the handler, and what the
// handler gets afterwards. That callers cannot tell the difference, with the agent's own functions
// behind it, is test/unit/agent/replays.test.ts.
#include "frames/replay_cache.h"

#include "support.h"

namespace dke {
namespace {

constexpr size_t kReply = 4096;

KeyRef MakeKey() {
  Result<KeyRef> key = GenerateAes(256);
  assert_true(key.ok());
  return key.value();
}

ByteVector operator+(ByteVector left, const ByteVector& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

ByteVector Number(uint32_t value) {
  return {static_cast<uint8_t>(value >> 24), static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value)};
}

ByteVector Init(const std::string& name, uint8_t iv = 0) { return BytesOf("init " + name + " ") + ByteVector(16, iv) + BytesOf(" end"); }

ByteVector Operation(const std::string& name, size_t length, uint32_t room) {
  return BytesOf("do " + name) + ByteVector{1} + Number(static_cast<uint32_t>(length)) + ByteVector(length, 5) + Number(room);
}

// CBC under a key, in a slot of its own session.
Replay Cbc(const std::string& name, uint64_t session, KeyRef key) {
  Replay replay;
  replay.slot = {session, 0};
  replay.init = Init(name);
  replay.iv_at = 6 + name.size();
  replay.iv_length = 16;
  replay.init_answer = BytesOf("yes");
  replay.operation = BytesOf("do " + name);
  replay.operation_answer = BytesOf("done");
  replay.key = FindKey(key);
  replay.cipher.mode = CipherMode::kCbc;
  replay.cipher.iv_length = 16;
  replay.unit = 16;
  return replay;
}

ByteVector Ask(ReplayCache& replays, const ByteVector& message, size_t capacity = kReply) {
  ByteVector reply(kReply);
  reply.resize(replays.Answer(message.data(), message.size(), reply.data(), capacity));
  return reply;
}

ByteVector Unseen(ReplayCache& replays) {
  ByteVector message(kReply);
  message.resize(replays.TakeUnseen(message.data()));
  return message;
}

TEST(AnswersAnInitWhateverItsIvAndItsOperation) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  assert_int_equal(replays.Learn(Cbc("a", 1, key)), -1);
  for (const uint8_t iv : {0, 1, 2}) {
    assert_true(Ask(replays, Init("a", iv)) == BytesOf("yes"));
    assert_true(replays.unseen());
    CipherParameters parameters{};
    parameters.mode = CipherMode::kCbc;
    parameters.iv_length = 16;
    memset(parameters.iv, iv, 16);
    const ByteVector data(32, 5);
    ByteVector expected(32);
    assert_true(CipherMessage(key, Direction::kEncrypt, parameters, data.data(), 32, expected.data(), 32).ok());
    assert_true(Ask(replays, Operation("a", 32, 32)) == BytesOf("done") + ByteVector{1} + Number(32) + expected);
    assert_false(replays.unseen());
  }
  ReleaseKey(key);
}

ByteVector Part(const std::string& name, size_t length, uint32_t room) {
  return BytesOf("part " + name) + ByteVector{1} + Number(static_cast<uint32_t>(length)) + ByteVector(length, 5) + Number(room);
}
ByteVector Last(const std::string& name, uint32_t room) { return BytesOf("last " + name) + Number(room); }

Replay CbcInParts(const std::string& name, uint64_t session, KeyRef key) {
  Replay replay = Cbc(name, session, key);
  replay.operation.clear();
  replay.operation_answer.clear();
  replay.update = BytesOf("part " + name);
  replay.update_answer = BytesOf("took");
  replay.last = BytesOf("last " + name);
  replay.last_answer = BytesOf("ended");
  return replay;
}

TEST(AnswersAnOperationOfOnePart) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(CbcInParts("p", 1, key));
  for (const uint8_t iv : {0, 1}) {
    assert_true(Ask(replays, Init("p", iv)) == BytesOf("yes"));
    // Only the calls in parts were learned so far: the operation is not carried out in one piece.
    assert_true(Ask(replays, Part("p", 32, 32)).size() == 4 + 5 + 32);
    assert_true(Ask(replays, Last("p", 0)) == BytesOf("ended") + ByteVector{1} + Number(0));
    assert_false(replays.unseen());
  }
  // The other way is learned next to it.
  assert_int_equal(replays.Learn(Cbc("p", 1, key)), -1);
  assert_int_equal(replays.size(), 1);
  Ask(replays, Init("p", 2));
  assert_true(Ask(replays, Operation("p", 32, 32)).size() == 4 + 5 + 32);
  assert_false(replays.unseen());
  ReleaseKey(key);
}

TEST(ShowsTheHandlerThePartThatItHasNotSeen) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(CbcInParts("p", 1, key));
  replays.Learn(Cbc("a", 2, key));
  Ask(replays, Init("p", 3));
  Ask(replays, Part("p", 32, 32));
  Ask(replays, Init("a", 4));
  // The handler gets a second part, a Final that queries its length, and data that is not a whole
  // block.
  for (const ByteVector& message : {Part("p", 32, 32), Last("p", 0xffffffff), BytesOf("something else")}) assert_true(Ask(replays, message).empty());
  assert_true(Unseen(replays) == Init("p", 3));
  assert_true(Unseen(replays) == Part("p", 32, 32));
  assert_true(Unseen(replays) == Init("a", 4));
  assert_false(replays.unseen());
  // All of it is removed.
  assert_true(Ask(replays, Last("p", 0)).empty());
  Ask(replays, Init("p", 5));
  assert_true(Ask(replays, Last("p", 0)).empty());
  assert_true(Ask(replays, Part("p", 33, 64)).empty());
  assert_true(Ask(replays, Part("p", ReplayCache::kLongestPart, 1 << 20), 1 << 20).empty());
  assert_true(Unseen(replays) == Init("p", 5));
  assert_false(replays.unseen());
  ReleaseKey(key);
}

// How many Updates of so many operations are answered here, of which the handler has to see each
// after all.
int AnsweredInVain(ReplayCache& replays, int operations) {
  int answered = 0;
  for (int i = 0; i < operations; ++i) {
    Ask(replays, Init("p", 1));
    if (!Ask(replays, Part("p", 32, 32)).empty()) ++answered;
    while (replays.unseen()) Unseen(replays);
  }
  return answered;
}

TEST(LeavesPartsThatTheHandlerHasToSeeAnywayToIt) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(CbcInParts("p", 1, key));
  assert_int_equal(AnsweredInVain(replays, 17 + 64), 17);
  // Tried again, then with twice the delay.
  assert_int_equal(AnsweredInVain(replays, 17 + 128), 17);
  assert_int_equal(AnsweredInVain(replays, 1), 1);
  ReleaseKey(key);
}

TEST(AnswersPartsAgainThatCameInTurnWithOthersForATime) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(CbcInParts("p", 1, key));
  AnsweredInVain(replays, 17 + 64);
  for (int i = 0; i < 100; ++i) {
    Ask(replays, Init("p", 1));
    assert_false(Ask(replays, Part("p", 32, 32)).empty());
    assert_false(Ask(replays, Last("p", 0)).empty());
  }
  // What is gained counts, and a later loss begins from the first.
  assert_int_equal(AnsweredInVain(replays, 117 + 64), 117);
  assert_int_equal(AnsweredInVain(replays, 1), 1);
  ReleaseKey(key);
}

TEST(GivesTheFirstBytesOfAMac) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  Replay replay = Cbc("m", 1, key);
  replay.iv_length = 0;
  replay.unit = 1;
  replay.is_mac = true;
  replay.mac_length = 10;
  replays.Learn(std::move(replay));
  assert_true(Ask(replays, Init("m", 1)).empty());
  assert_true(Ask(replays, Init("m")) == BytesOf("yes"));
  uint8_t whole[32];
  const ByteVector data(7, 5);
  assert_true(MacMessage(key, MacParameters{}, data.data(), 7, whole, sizeof whole).ok());
  assert_true(Ask(replays, Operation("m", 7, 10)) == BytesOf("done") + ByteVector{1} + Number(10) + ByteVector(whole, whole + 10));
  ReleaseKey(key);
}

TEST(LeavesEverythingElseToTheHandlerBehindWhatWasStarted) {
  const KeyRef key = MakeKey();
  const ByteVector whole = Operation("a", 16, 16);
  ByteVector absent = whole;
  absent[4] = 0;
  ByteVector longer = whole;
  longer.push_back(0);
  ByteVector lying = whole;
  lying[8] = 32;
  const ByteVector others[] = {
      Operation("b", 16, 16),  Operation("a", 16, 15), Operation("a", 16, 0),          Operation("a", 15, 64),
      Operation("a", 0, 16),   absent,                 longer,                          lying,
      BytesOf("do a"),         BytesOf("do"),          ByteVector(whole.begin(), whole.end() - 1), Init("a", 2),
      Operation("a", 16, 0xffffffff), ByteVector(),
  };
  for (const ByteVector& other : others) {
    ReplayCache replays;
    replays.Learn(Cbc("a", 1, key));
    Ask(replays, Init("a", 9));
    assert_true(Ask(replays, other).empty());
    assert_true(replays.unseen());
    assert_true(Unseen(replays) == Init("a", 9));
    assert_false(replays.unseen());
    assert_true(Ask(replays, whole).empty());
  }
  ReplayCache replays;
  replays.Learn(Cbc("a", 1, key));
  Ask(replays, Init("a"));
  assert_true(Ask(replays, whole, 4 + 5 + 15).empty());
  assert_false(Ask(replays, whole, 4 + 5 + 16).empty());
  ReleaseKey(key);
}

TEST(OneOperationRunsInASlotAndIsShownInTheirOrder) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(Cbc("a", 1, key));
  replays.Learn(Cbc("b", 1, key));
  replays.Learn(Cbc("c", 2, key));
  assert_false(Ask(replays, Init("c", 3)).empty());
  assert_false(Ask(replays, Init("b", 2)).empty());
  assert_true(Ask(replays, Init("a", 1)).empty());
  assert_true(Unseen(replays) == Init("c", 3));
  assert_true(Unseen(replays) == Init("b", 2));
  assert_false(replays.unseen());
  ReleaseKey(key);
}

TEST(WaitsWhileItIsSuspended) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(Cbc("a", 1, key));
  replays.Learn(Cbc("b", 1, key));
  replays.Learn(Cbc("c", 2, key));
  replays.Suspend({1, 0}, true);
  assert_true(Ask(replays, Init("a")).empty());
  assert_false(Ask(replays, Init("c")).empty());
  replays.Learn(Cbc("b", 1, key));
  assert_int_equal(replays.size(), 3);
  assert_false(Ask(replays, Init("a")).empty());
  assert_false(Ask(replays, Operation("a", 16, 16)).empty());
  replays.Suspend({1, 0}, true);
  assert_true(Ask(replays, Init("a")).empty());
  replays.Suspend({1, 0}, false);
  assert_false(Ask(replays, Init("a")).empty());
  ReleaseKey(key);
}

TEST(AReleasedKeyIsTheHandlersBusiness) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(Cbc("a", 1, key));
  Ask(replays, Init("a"));
  ReleaseKey(key);
  assert_true(Ask(replays, Operation("a", 16, 16)).empty());
  assert_true(replays.unseen());
}

TEST(AnIvThatIsUsedUpIsAnsweredOnce) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  const uint64_t owner = NewIvOwner();
  for (const char* name : {"a", "b"}) {
    Replay replay = Cbc(name, name[0], key);
    replay.iv_owner = owner;
    replay.identities = {{1, 2, 3}, {4}};
    replays.Learn(std::move(replay));
  }
  assert_false(Ask(replays, Init("a", 1)).empty());
  // Not while another runs with it.
  assert_true(Ask(replays, Init("b", 1)).empty());
  assert_false(Ask(replays, Init("b", 2)).empty());
  assert_false(Ask(replays, Operation("a", 16, 16)).empty());
  assert_false(Ask(replays, Operation("b", 16, 16)).empty());
  for (const uint8_t iv : {1, 2}) {
    assert_true(Ask(replays, Init("a", iv)).empty());
    assert_true(IvUsed(owner, {{reinterpret_cast<const uint8_t*>("\4"), 1}}, ByteVector(16, iv).data(), 16));
    assert_false(IvUsed(NewIvOwner(), {{reinterpret_cast<const uint8_t*>("\4"), 1}}, ByteVector(16, iv).data(), 16));
  }
  // An Init alone uses nothing up.
  assert_false(Ask(replays, Init("a", 3)).empty());
  assert_true(Unseen(replays) == Init("a", 3));
  assert_false(Ask(replays, Init("a", 3)).empty());
  ReleaseKey(key);
}

const KeyIdentity kSomeKey{reinterpret_cast<const uint8_t*>("key"), 3};

bool Claim(uint64_t owner, uint32_t number) {
  return ClaimIv(owner, {kSomeKey}, reinterpret_cast<const uint8_t*>(&number), sizeof number);
}
bool IsUsed(uint64_t owner, uint32_t number) {
  return IvUsed(owner, {kSomeKey}, reinterpret_cast<const uint8_t*>(&number), sizeof number);
}

TEST(AnOwnerKeepsItsShareOfUsedIvsWhateverOthersUse) {
  const uint64_t quiet = NewIvOwner();
  const uint64_t busy = NewIvOwner();
  for (uint32_t i = 0; i < 1000; ++i) assert_true(Claim(quiet, i));
  // Enough to have pushed out everything, when all owners shared one memory.
  for (uint32_t i = 0; i < 2 * kMostIvs + 2; ++i) assert_true(Claim(busy, i));
  for (uint32_t i = 0; i < 1000; ++i) {
    assert_true(IsUsed(quiet, i));
    assert_false(Claim(quiet, i));
  }
  // The busy one has at least the last of its own, across all growth, and forgot its first. Another
  // test has an owner, too.
  const auto last = static_cast<uint32_t>(2 * kMostIvs + 1);
  for (uint32_t i = 0; i < IvsEach(3); ++i) assert_true(IsUsed(busy, last - i));
  assert_false(IsUsed(busy, 0));
  // Not those of others, and nothing after the end.
  EndIvOwner(busy);
  assert_false(IsUsed(busy, last));
  assert_false(Claim(busy, 1));
  assert_true(IsUsed(quiet, 1));
  EndIvOwner(quiet);
  EndIvOwner(quiet);
}

TEST(EachOwnerHasALeastShare) {
  assert_int_equal(IvsEach(0), kMostIvs);
  assert_int_equal(IvsEach(1), kMostIvs);
  assert_int_equal(IvsEach(16), kMostIvs / 16);
  assert_int_equal(IvsEach(1'000'000), kLeastIvs);
}

TEST(RemovesAll) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  replays.Learn(Cbc("a", 1, key));
  replays.Forget();
  assert_int_equal(replays.size(), 0);
  assert_true(Ask(replays, Init("a")).empty());
  ReleaseKey(key);
}

TEST(TheOneThatWasUsedLongestAgoMakesRoom) {
  const KeyRef key = MakeKey();
  ReplayCache replays;
  for (size_t i = 0; i < ReplayCache::kMost; ++i) assert_int_equal(replays.Learn(Cbc(std::to_string(i), i, key)), -1);
  for (const char* name : {"0", "0", "1"}) {
    Ask(replays, Init(name));
    assert_false(Ask(replays, Operation(name, 16, 16)).empty());
  }
  assert_int_equal(replays.Learn(Cbc("x", 99, key)), 0);
  assert_int_equal(replays.size(), ReplayCache::kMost);
  assert_true(Ask(replays, Init("2")).empty());
  assert_false(Ask(replays, Init("0")).empty());
  ReleaseKey(key);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
