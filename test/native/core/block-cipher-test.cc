// AES-CCM and AES-GCM, whole and in parts, in buffers that are exactly as large as they have to be,
// so that a sanitizer sees the first byte too many. And keys that are derived by encryption.
#include "ciphers/block_cipher.h"

#include <algorithm>

#include "support.h"

namespace dke {
namespace {

CipherParameters Ccm(const ByteVector& nonce, const ByteVector& aad, size_t tag, size_t data) {
  CipherParameters parameters{};
  parameters.mode = CipherMode::kCcm;
  memcpy(parameters.iv, nonce.data(), nonce.size());
  parameters.iv_length = nonce.size();
  parameters.aad = aad.data();
  parameters.aad_length = aad.size();
  parameters.tag_length = tag;
  parameters.data_length = data;
  return parameters;
}

ByteVector Whole(KeyRef key, Direction direction, const CipherParameters& parameters, const ByteVector& input) {
  ByteVector out(CipherLength(direction, parameters, input.size()));
  assert_int_equal(Good(CipherMessage(key, direction, parameters, input.data(), input.size(), out.data(), out.size())), out.size());
  return out;
}

// Decryption returns nothing before the end; encryption returns each piece.
ByteVector InPieces(KeyRef key, Direction direction, const CipherParameters& parameters, const ByteVector& input, size_t piece) {
  const bool opens = direction == Direction::kDecrypt;
  std::unique_ptr<CipherOperation> operation = Good(CipherOperation::Begin(key, direction, parameters));
  ByteVector all;
  for (size_t at = 0; at < input.size(); at += piece) {
    const ByteVector part(input.begin() + static_cast<long>(at), input.begin() + static_cast<long>(std::min(at + piece, input.size())));
    ByteVector out(opens ? 0 : part.size());
    assert_int_equal(operation->UpdateLength(part.size()), out.size());
    assert_int_equal(Good(operation->Update(part.data(), part.size(), out.data(), out.size())), out.size());
    all.insert(all.end(), out.begin(), out.end());
  }
  ByteVector out(operation->FinalLength());
  if (!out.empty()) Refused(operation->Final(out.data(), out.size() - 1), Code::kBufferTooSmall);
  assert_int_equal(Good(operation->Final(out.data(), out.size())), out.size());
  all.insert(all.end(), out.begin(), out.end());
  return all;
}

// Decryption that gives plaintext out before the tag was checked, all but the last bytes, which may
// be the tag.
ByteVector Unchecked(KeyRef key, const CipherParameters& parameters, const ByteVector& input, size_t piece, Code code) {
  std::unique_ptr<CipherOperation> operation =
      Good(CipherOperation::Begin(key, Direction::kDecrypt, parameters, CipherOperation::Unchecked::kGivenOut));
  ByteVector all;
  for (size_t at = 0; at < input.size(); at += piece) {
    const ByteVector part(input.begin() + static_cast<long>(at), input.begin() + static_cast<long>(std::min(at + piece, input.size())));
    ByteVector out(operation->UpdateLength(part.size()));
    assert_int_equal(Good(operation->Update(part.data(), part.size(), out.data(), out.size())), out.size());
    all.insert(all.end(), out.begin(), out.end());
  }
  assert_int_equal(operation->FinalLength(), 0);
  if (code == Code::kOk) assert_int_equal(Good(operation->Final(nullptr, 0)), 0);
  else Refused(operation->Final(nullptr, 0), code);
  return all;
}

// SP 800-38C, example 3.
TEST(CcmGivesWhatTheStandardPublishes) {
  const KeyRef key = Secret(KeyKind::kAes, Sequence(0x40, 16));
  const ByteVector nonce = Sequence(0x10, 12);
  const ByteVector aad = Sequence(0, 20);
  const ByteVector data = Sequence(0x20, 24);
  const ByteVector sealed = Hex("e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5484392fbc1b09951");
  const CipherParameters parameters = Ccm(nonce, aad, 8, data.size());
  AssertBytes(Whole(key, Direction::kEncrypt, parameters, data), sealed);
  AssertBytes(Whole(key, Direction::kDecrypt, parameters, sealed), data);
  for (size_t piece : {size_t{1}, size_t{7}, size_t{32}}) {
    AssertBytes(InPieces(key, Direction::kEncrypt, parameters, data, piece), sealed);
    AssertBytes(InPieces(key, Direction::kDecrypt, parameters, sealed, piece), data);
  }
}

// Nonces and tags of different lengths follow each other on one key: the context keeps no state of
// the last message.
TEST(CcmMessagesOnOneKeyDoNotDisturbEachOther) {
  const KeyRef key = Good(GenerateAes(256));
  std::vector<std::pair<CipherParameters, ByteVector>> made;
  const ByteVector aad = Sequence(1, 40);
  for (size_t nonce = 7; nonce <= 13; nonce++) {
    for (size_t tag = 8; tag <= 16; tag += 2) {
      const CipherParameters parameters = Ccm(Sequence(1, nonce), aad, tag, 4 * tag + nonce);
      made.emplace_back(parameters, Whole(key, Direction::kEncrypt, parameters, Sequence(9, parameters.data_length)));
    }
  }
  for (auto each = made.rbegin(); each != made.rend(); ++each) {
    AssertBytes(Whole(key, Direction::kDecrypt, each->first, each->second), Sequence(9, each->first.data_length));
    ByteVector changed = each->second;
    changed[changed.size() / 2] ^= 0x80;
    ByteVector out(each->first.data_length);
    Refused(CipherMessage(key, Direction::kDecrypt, each->first, changed.data(), changed.size(), out.data(), out.size()),
            Code::kAuthenticationFailed);
    AssertBytes(out, ByteVector(out.size()));
  }
}

TEST(AnEmptyMessageIsAuthenticatedToo) {
  const KeyRef key = Good(GenerateAes(128));
  const ByteVector aad = Sequence(3, 5);
  const CipherParameters parameters = Ccm(Sequence(0, 13), aad, 16, 0);
  ByteVector tag = Whole(key, Direction::kEncrypt, parameters, {});
  assert_int_equal(tag.size(), 16);
  AssertBytes(InPieces(key, Direction::kEncrypt, parameters, {}, 1), tag);
  assert_int_equal(Whole(key, Direction::kDecrypt, parameters, tag).size(), 0);
  tag[15] ^= 1;
  Refused(CipherMessage(key, Direction::kDecrypt, parameters, tag.data(), tag.size(), nullptr, 0), Code::kAuthenticationFailed);
}

TEST(WhatIsHeldBackEndsWithItsKey) {
  const KeyRef key = Good(GenerateAes(256));
  const ByteVector aad;
  const CipherParameters parameters = Ccm(Sequence(0, 12), aad, 16, 5000);
  const ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, Sequence(0, 5000));
  std::unique_ptr<CipherOperation> operation = Good(CipherOperation::Begin(key, Direction::kDecrypt, parameters));
  assert_int_equal(Good(operation->Update(sealed.data(), 3000, nullptr, 0)), 0);
  assert_true(operation->started());
  Refused(operation->Update(sealed.data(), 2017, nullptr, 0), Code::kDataLength);
  ReleaseKey(key);
  Refused(operation->Update(sealed.data() + 3000, 2016, nullptr, 0), Code::kBadKey);
  ByteVector out(operation->FinalLength());
  Refused(operation->Final(out.data(), out.size()), Code::kBadKey);
}

// Against libcrypto's own CCM, which `Whole` uses: every length of nonce and tag, and additional
// data on both sides of where their length is written differently.
TEST(CcmInPartsIsCcm) {
  const KeyRef key = Good(GenerateAes(256));
  for (size_t nonce = 7; nonce <= 13; nonce++) {
    for (size_t length : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{4095}, size_t{4097}, size_t{60'000}}) {
      for (size_t associated : {size_t{0}, size_t{13}, size_t{14}, size_t{0xfeff}, size_t{0xff00}}) {
        const ByteVector aad = Sequence(7, associated);
        const size_t tag = 8 + 2 * (length % 5);
        const CipherParameters parameters = Ccm(Sequence(static_cast<uint8_t>(length), nonce), aad, tag, length);
        const ByteVector data = Sequence(9, length);
        const ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, data);
        AssertBytes(InPieces(key, Direction::kEncrypt, parameters, data, 5000), sealed);
        AssertBytes(InPieces(key, Direction::kDecrypt, parameters, sealed, 5000), data);
      }
    }
  }
}

TEST(AMessageInPartsThatIsShorterThanItWasSaidToBeHasNoTag) {
  const KeyRef key = Good(GenerateAes(256));
  const ByteVector aad;
  const CipherParameters parameters = Ccm(Sequence(0, 12), aad, 16, 100);
  std::unique_ptr<CipherOperation> operation = Good(CipherOperation::Begin(key, Direction::kEncrypt, parameters));
  const ByteVector data = Sequence(0, 99);
  ByteVector out(100);
  assert_int_equal(Good(operation->Update(data.data(), 99, out.data(), out.size())), 99);
  Refused(operation->Final(out.data(), out.size()), Code::kDataLength);
}

TEST(PlaintextThatIsGivenOutEarlyIsCheckedAtTheEnd) {
  const KeyRef key = Good(GenerateAes(256));
  CipherParameters gcm{};
  gcm.mode = CipherMode::kGcm;
  gcm.iv_length = 12;
  const ByteVector data = Sequence(0, 3001);
  const ByteVector aad = Sequence(1, 5);
  for (const CipherParameters& parameters : {gcm, Ccm(Sequence(0, 12), aad, 12, data.size())}) {
    ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, data);
    for (size_t piece : {size_t{1}, size_t{15}, size_t{1000}, sealed.size()}) {
      AssertBytes(Unchecked(key, parameters, sealed, piece, Code::kOk), data);
    }
    sealed[17] ^= 1;
    Unchecked(key, parameters, sealed, 1000, Code::kAuthenticationFailed);
    sealed[17] ^= 1;
    sealed.back() ^= 1;
    AssertBytes(Unchecked(key, parameters, sealed, 1000, Code::kAuthenticationFailed), data);
  }
}

// In pieces of any size, and not one byte before the tag was checked.
TEST(WhatIsHeldBackIsTakenInPieces) {
  const KeyRef key = Good(GenerateAes(256));
  CipherParameters parameters{};
  parameters.mode = CipherMode::kGcm;
  parameters.iv_length = 12;
  const ByteVector data = Sequence(0, 700'001);
  const ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, data);
  std::unique_ptr<CipherOperation> operation = Good(CipherOperation::Begin(key, Direction::kDecrypt, parameters));
  for (size_t at = 0; at < sealed.size(); at += 9001) {
    Good(operation->Update(sealed.data() + at, std::min(size_t{9001}, sealed.size() - at), nullptr, 0));
  }
  ByteVector piece(65'537);
  Refused(operation->Take(piece.data(), piece.size()), Code::kBadArgument);
  assert_int_equal(operation->FinalLength(), data.size());
  Good(operation->Check());
  ByteVector all;
  while (operation->FinalLength() > piece.size()) {
    assert_int_equal(Good(operation->Take(piece.data(), piece.size())), piece.size());
    all.insert(all.end(), piece.begin(), piece.end());
  }
  const size_t rest = operation->FinalLength();
  assert_int_equal(Good(operation->Final(piece.data(), piece.size())), rest);
  all.insert(all.end(), piece.begin(), piece.begin() + static_cast<long>(rest));
  AssertBytes(all, data);
}

TEST(GcmDecryptionHoldsBackWhatItWasGiven) {
  const KeyRef key = Good(GenerateAes(256));
  CipherParameters parameters{};
  parameters.mode = CipherMode::kGcm;
  parameters.iv_length = 12;
  const ByteVector data = Sequence(0, 3001);
  const ByteVector sealed = Whole(key, Direction::kEncrypt, parameters, data);
  for (size_t piece : {size_t{1}, size_t{1000}, sealed.size()}) {
    AssertBytes(InPieces(key, Direction::kDecrypt, parameters, sealed, piece), data);
  }
}

// SP 800-38A, F.1.1.
TEST(AKeyByEncryptionIsItsFront) {
  const KeyRef base = Secret(KeyKind::kAes, Hex("2b7e151628aed2a6abf7158809cf4f3c"));
  const ByteVector data = Hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
  const ByteVector all = Hex("3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf");
  CipherParameters parameters{};
  parameters.mode = CipherMode::kEcb;
  const auto derive = [&](KeyKind kind, size_t length, size_t bytes) {
    return DeriveByEncryption(base, parameters, data.data(), length, kind, bytes);
  };
  for (size_t bytes = 1; bytes <= 32; bytes++) {
    AssertBytes(ValueOf(Good(derive(KeyKind::kGeneric, 32, bytes))), ByteVector(all.begin(), all.begin() + static_cast<long>(bytes)));
  }
  AssertBytes(ValueOf(Good(derive(KeyKind::kAes, 32, 24))), ByteVector(all.begin(), all.begin() + 24));
  Refused(derive(KeyKind::kAes, 32, 17), Code::kBadArgument);
  Refused(derive(KeyKind::kGeneric, 32, 33), Code::kDataLength);
  Refused(derive(KeyKind::kGeneric, 31, 16), Code::kDataLength);
  Refused(derive(KeyKind::kGeneric, 32, 0), Code::kDataLength);
  parameters.mode = CipherMode::kCtr;
  parameters.iv_length = 16;
  Refused(derive(KeyKind::kGeneric, 32, 16), Code::kBadArgument);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
