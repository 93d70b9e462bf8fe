// Routines below JavaScript: which messages are answered without the handler, and what the handler is shown afterwards. That nobody can
// tell the difference, with the agent's own functions behind it, is test/unit/agent/routines.test.ts.
#include "routines.h"

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

// CBC under a key, in a place of its own session.
Routine Cbc(const std::string& name, uint64_t session, KeyRef key) {
  Routine routine;
  routine.place = {session, 0};
  routine.init = Init(name);
  routine.iv_at = 6 + name.size();
  routine.iv_length = 16;
  routine.init_answer = BytesOf("yes");
  routine.operation = BytesOf("do " + name);
  routine.operation_answer = BytesOf("done");
  routine.key = FindKey(key);
  routine.cipher.mode = CipherMode::kCbc;
  routine.cipher.iv_length = 16;
  routine.unit = 16;
  return routine;
}

ByteVector Ask(Routines& routines, const ByteVector& message, size_t capacity = kReply) {
  ByteVector reply(kReply);
  reply.resize(routines.Answer(message.data(), message.size(), reply.data(), capacity));
  return reply;
}

ByteVector Unseen(Routines& routines) {
  ByteVector message(kReply);
  message.resize(routines.TakeUnseen(message.data()));
  return message;
}

void AnswersAnInitWhateverItsIvAndItsOperation(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  assert_int_equal(routines.Learn(Cbc("a", 1, key)), -1);
  for (const uint8_t iv : {0, 1, 2}) {
    assert_true(Ask(routines, Init("a", iv)) == BytesOf("yes"));
    assert_true(routines.unseen());
    CipherParameters parameters{};
    parameters.mode = CipherMode::kCbc;
    parameters.iv_length = 16;
    memset(parameters.iv, iv, 16);
    const ByteVector data(32, 5);
    ByteVector expected(32);
    assert_true(CipherMessage(key, Direction::kEncrypt, parameters, data.data(), 32, expected.data(), 32).ok());
    assert_true(Ask(routines, Operation("a", 32, 32)) == BytesOf("done") + ByteVector{1} + Number(32) + expected);
    assert_false(routines.unseen());
  }
  ReleaseKey(key);
}

ByteVector Part(const std::string& name, size_t length, uint32_t room) {
  return BytesOf("part " + name) + ByteVector{1} + Number(static_cast<uint32_t>(length)) + ByteVector(length, 5) + Number(room);
}
ByteVector Last(const std::string& name, uint32_t room) { return BytesOf("last " + name) + Number(room); }

Routine CbcInParts(const std::string& name, uint64_t session, KeyRef key) {
  Routine routine = Cbc(name, session, key);
  routine.operation.clear();
  routine.operation_answer.clear();
  routine.update = BytesOf("part " + name);
  routine.update_answer = BytesOf("took");
  routine.last = BytesOf("last " + name);
  routine.last_answer = BytesOf("ended");
  return routine;
}

void AnswersAnOperationOfOnePart(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(CbcInParts("p", 1, key));
  for (const uint8_t iv : {0, 1}) {
    assert_true(Ask(routines, Init("p", iv)) == BytesOf("yes"));
    // It is not carried out in one piece, so far.
    assert_true(Ask(routines, Part("p", 32, 32)).size() == 4 + 5 + 32);
    assert_true(Ask(routines, Last("p", 0)) == BytesOf("ended") + ByteVector{1} + Number(0));
    assert_false(routines.unseen());
  }
  // The other way is learned beside it.
  assert_int_equal(routines.Learn(Cbc("p", 1, key)), -1);
  assert_int_equal(routines.size(), 1);
  Ask(routines, Init("p", 2));
  assert_true(Ask(routines, Operation("p", 32, 32)).size() == 4 + 5 + 32);
  assert_false(routines.unseen());
  ReleaseKey(key);
}

void ShowsTheHandlerThePartThatItHasNotSeen(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(CbcInParts("p", 1, key));
  routines.Learn(Cbc("a", 2, key));
  Ask(routines, Init("p", 3));
  Ask(routines, Part("p", 32, 32));
  Ask(routines, Init("a", 4));
  // A second part, a Final that asks for its length, and data that is no whole block are the handler's.
  for (const ByteVector& message : {Part("p", 32, 32), Last("p", 0xffffffff), BytesOf("something else")}) assert_true(Ask(routines, message).empty());
  assert_true(Unseen(routines) == Init("p", 3));
  assert_true(Unseen(routines) == Part("p", 32, 32));
  assert_true(Unseen(routines) == Init("a", 4));
  assert_false(routines.unseen());
  // Nothing of it is left.
  assert_true(Ask(routines, Last("p", 0)).empty());
  Ask(routines, Init("p", 5));
  assert_true(Ask(routines, Last("p", 0)).empty());
  assert_true(Ask(routines, Part("p", 33, 64)).empty());
  assert_true(Ask(routines, Part("p", Routines::kLongestPart, 1 << 20), 1 << 20).empty());
  assert_true(Unseen(routines) == Init("p", 5));
  assert_false(routines.unseen());
  ReleaseKey(key);
}

// How many Updates of so many operations are answered here, of which the handler has to see each after all.
int AnsweredInVain(Routines& routines, int operations) {
  int answered = 0;
  for (int i = 0; i < operations; ++i) {
    Ask(routines, Init("p", 1));
    if (!Ask(routines, Part("p", 32, 32)).empty()) ++answered;
    while (routines.unseen()) Unseen(routines);
  }
  return answered;
}

void LeavesPartsThatTheHandlerHasToSeeAnywayToIt(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(CbcInParts("p", 1, key));
  assert_int_equal(AnsweredInVain(routines, 17 + 64), 17);
  // Tried again, and left alone twice as long.
  assert_int_equal(AnsweredInVain(routines, 17 + 128), 17);
  assert_int_equal(AnsweredInVain(routines, 1), 1);
  ReleaseKey(key);
}

void AnswersPartsAgainThatCameInTurnWithOthersForATime(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(CbcInParts("p", 1, key));
  AnsweredInVain(routines, 17 + 64);
  for (int i = 0; i < 100; ++i) {
    Ask(routines, Init("p", 1));
    assert_false(Ask(routines, Part("p", 32, 32)).empty());
    assert_false(Ask(routines, Last("p", 0)).empty());
  }
  // What is gained counts, and a later loss begins from the first.
  assert_int_equal(AnsweredInVain(routines, 117 + 64), 117);
  assert_int_equal(AnsweredInVain(routines, 1), 1);
  ReleaseKey(key);
}

void GivesTheFirstBytesOfAMac(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  Routine routine = Cbc("m", 1, key);
  routine.iv_length = 0;
  routine.unit = 1;
  routine.is_mac = true;
  routine.mac_length = 10;
  routines.Learn(std::move(routine));
  assert_true(Ask(routines, Init("m", 1)).empty());
  assert_true(Ask(routines, Init("m")) == BytesOf("yes"));
  uint8_t whole[32];
  const ByteVector data(7, 5);
  assert_true(MacMessage(key, MacParameters{}, data.data(), 7, whole, sizeof whole).ok());
  assert_true(Ask(routines, Operation("m", 7, 10)) == BytesOf("done") + ByteVector{1} + Number(10) + ByteVector(whole, whole + 10));
  ReleaseKey(key);
}

void LeavesEverythingElseToTheHandlerBehindWhatWasBegun(void**) {
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
    Routines routines;
    routines.Learn(Cbc("a", 1, key));
    Ask(routines, Init("a", 9));
    assert_true(Ask(routines, other).empty());
    assert_true(routines.unseen());
    assert_true(Unseen(routines) == Init("a", 9));
    assert_false(routines.unseen());
    assert_true(Ask(routines, whole).empty());
  }
  Routines routines;
  routines.Learn(Cbc("a", 1, key));
  Ask(routines, Init("a"));
  assert_true(Ask(routines, whole, 4 + 5 + 15).empty());
  assert_false(Ask(routines, whole, 4 + 5 + 16).empty());
  ReleaseKey(key);
}

void OneOperationRunsInAPlaceAndShownInTheirOrder(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(Cbc("a", 1, key));
  routines.Learn(Cbc("b", 1, key));
  routines.Learn(Cbc("c", 2, key));
  assert_false(Ask(routines, Init("c", 3)).empty());
  assert_false(Ask(routines, Init("b", 2)).empty());
  assert_true(Ask(routines, Init("a", 1)).empty());
  assert_true(Unseen(routines) == Init("c", 3));
  assert_true(Unseen(routines) == Init("b", 2));
  assert_false(routines.unseen());
  ReleaseKey(key);
}

void WaitsWhileItIsSuspended(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(Cbc("a", 1, key));
  routines.Learn(Cbc("b", 1, key));
  routines.Learn(Cbc("c", 2, key));
  routines.Suspend({1, 0}, true);
  assert_true(Ask(routines, Init("a")).empty());
  assert_false(Ask(routines, Init("c")).empty());
  routines.Learn(Cbc("b", 1, key));
  assert_int_equal(routines.size(), 3);
  assert_false(Ask(routines, Init("a")).empty());
  assert_false(Ask(routines, Operation("a", 16, 16)).empty());
  routines.Suspend({1, 0}, true);
  assert_true(Ask(routines, Init("a")).empty());
  routines.Suspend({1, 0}, false);
  assert_false(Ask(routines, Init("a")).empty());
  ReleaseKey(key);
}

void AReleasedKeyIsTheHandlersBusiness(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(Cbc("a", 1, key));
  Ask(routines, Init("a"));
  ReleaseKey(key);
  assert_true(Ask(routines, Operation("a", 16, 16)).empty());
  assert_true(routines.unseen());
}

void AnIvThatIsUsedUpIsAnsweredOnce(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  const uint64_t owner = NewIvOwner();
  for (const char* name : {"a", "b"}) {
    Routine routine = Cbc(name, name[0], key);
    routine.iv_owner = owner;
    routine.identities = {{1, 2, 3}, {4}};
    routines.Learn(std::move(routine));
  }
  assert_false(Ask(routines, Init("a", 1)).empty());
  // Not while another has begun with it.
  assert_true(Ask(routines, Init("b", 1)).empty());
  assert_false(Ask(routines, Init("b", 2)).empty());
  assert_false(Ask(routines, Operation("a", 16, 16)).empty());
  assert_false(Ask(routines, Operation("b", 16, 16)).empty());
  for (const uint8_t iv : {1, 2}) {
    assert_true(Ask(routines, Init("a", iv)).empty());
    assert_true(IvUsed(owner, {{reinterpret_cast<const uint8_t*>("\4"), 1}}, ByteVector(16, iv).data(), 16));
    assert_false(IvUsed(NewIvOwner(), {{reinterpret_cast<const uint8_t*>("\4"), 1}}, ByteVector(16, iv).data(), 16));
  }
  // An Init alone uses nothing up.
  assert_false(Ask(routines, Init("a", 3)).empty());
  assert_true(Unseen(routines) == Init("a", 3));
  assert_false(Ask(routines, Init("a", 3)).empty());
  ReleaseKey(key);
}

void ForgetsAll(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  routines.Learn(Cbc("a", 1, key));
  routines.Forget();
  assert_int_equal(routines.size(), 0);
  assert_true(Ask(routines, Init("a")).empty());
  ReleaseKey(key);
}

void TheOneThatWasUsedLongestAgoMakesRoom(void**) {
  const KeyRef key = MakeKey();
  Routines routines;
  for (size_t i = 0; i < Routines::kMost; ++i) assert_int_equal(routines.Learn(Cbc(std::to_string(i), i, key)), -1);
  for (const char* name : {"0", "0", "1"}) {
    Ask(routines, Init(name));
    assert_false(Ask(routines, Operation(name, 16, 16)).empty());
  }
  assert_int_equal(routines.Learn(Cbc("x", 99, key)), 0);
  assert_int_equal(routines.size(), Routines::kMost);
  assert_true(Ask(routines, Init("2")).empty());
  assert_false(Ask(routines, Init("0")).empty());
  ReleaseKey(key);
}

}  // namespace
}  // namespace dke

int main() {
  using namespace dke;
  const CMUnitTest tests[] = {
      cmocka_unit_test(AnswersAnInitWhateverItsIvAndItsOperation),
      cmocka_unit_test(AnswersAnOperationOfOnePart),
      cmocka_unit_test(ShowsTheHandlerThePartThatItHasNotSeen),
      cmocka_unit_test(LeavesPartsThatTheHandlerHasToSeeAnywayToIt),
      cmocka_unit_test(AnswersPartsAgainThatCameInTurnWithOthersForATime),
      cmocka_unit_test(GivesTheFirstBytesOfAMac),
      cmocka_unit_test(LeavesEverythingElseToTheHandlerBehindWhatWasBegun),
      cmocka_unit_test(OneOperationRunsInAPlaceAndShownInTheirOrder),
      cmocka_unit_test(WaitsWhileItIsSuspended),
      cmocka_unit_test(AReleasedKeyIsTheHandlersBusiness),
      cmocka_unit_test(AnIvThatIsUsedUpIsAnsweredOnce),
      cmocka_unit_test(ForgetsAll),
      cmocka_unit_test(TheOneThatWasUsedLongestAgoMakesRoom),
  };
  return cmocka_run_group_tests(tests, UseMemory, nullptr);
}
