// Keys behind numbers: a number is used once, a released key is unavailable to everyone
// immediately, a key from outside is checked. And the operations that run on them.
#include "keys/key_table.h"

#include <atomic>
#include <set>
#include <thread>

#include "public_key/agreement.h"
#include "ciphers/block_cipher.h"
#include "digests/digest.h"
#include "digests/kdf.h"
#include "wrapping/key_record.h"
#include "wrapping/key_wrap.h"
#include "digests/mac.h"
#include "public_key/signature.h"
#include "xks/sigv4_keys.h"
#include "support.h"
#include "xks/xks_body.h"

namespace dke {
namespace {

CipherParameters Ecb() {
  CipherParameters parameters{};
  parameters.mode = CipherMode::kEcb;
  return parameters;
}

TEST(ANumberIsGivenOnce) {
  std::set<KeyRef> seen;
  KeyRef last = 0;
  for (int round = 0; round < 20000; round++) {
    const KeyRef key = Good(GenerateSecret(KeyKind::kGeneric, 16));
    assert_true(key > last);
    last = key;
    if (round % 3 != 0) ReleaseKey(key);
    if (round % 3 == 0) seen.insert(key);
  }
  for (const KeyRef key : seen) {
    assert_non_null(FindKey(key).get());
    ReleaseKey(key);
    assert_null(FindKey(key).get());
  }
}

TEST(AReleasedNumberIsRefusedEverywhere) {
  const KeyRef alive = Good(GenerateAes(256));
  const KeyRef aes = Good(GenerateAes(256));
  const KeyRef pair = Good(GenerateEc(Curve::kP256));
  ReleaseKey(aes);
  ReleaseKey(pair);
  uint8_t block[16] = {};
  uint8_t out[64];
  uint8_t point[65] = {4};
  const RecordContext context{{}, {}, 1, 1, "class", {}};
  SignatureParameters signature{};
  signature.algorithm = SignatureAlgorithm::kEcdsa;
  signature.digest = Digest::kSha256;
  // Released numbers, and numbers that were never assigned to a key.
  for (const KeyRef key : {aes, pair, KeyRef{0}, KeyRef{1} << 40, ~KeyRef{0}}) {
    Refused(DescribeKey(key), Code::kBadKey);
    Refused(ExportPublicKey(key), Code::kBadKey);
    Refused(CheckValue(key), Code::kBadKey);
    Refused(CipherMessage(key, Direction::kEncrypt, Ecb(), block, 16, out, 16), Code::kBadKey);
    Refused(CipherOperation::Begin(key, Direction::kEncrypt, Ecb()), Code::kBadKey);
    Refused(MacMessage(key, MacParameters{}, block, 16, out, sizeof out), Code::kBadKey);
    Refused(MacOperation::Begin(key, MacParameters{}), Code::kBadKey);
    Refused(Sign(key, signature, block, 16), Code::kBadKey);
    Refused(Verify(key, signature, block, 16, out, 64), Code::kBadKey);
    Refused(RsaEncrypt(key, RsaEncryptionParameters{}, block, 16), Code::kBadKey);
    Refused(RsaDecrypt(key, RsaEncryptionParameters{}, block, 16), Code::kBadKey);
    Refused(Ecdh(key, point, sizeof point), Code::kBadKey);
    Refused(WrapKey(alive, key, {}), Code::kBadKey);
    Refused(WrapKey(key, alive, {}), Code::kBadKey);
    Refused(WrapData(key, block, 16, {}), Code::kBadKey);
    Refused(UnwrapData(key, out, 24, {}), Code::kBadKey);
    Refused(UnwrapKey(key, out, 24, {}, KeyKind::kGeneric, 0), Code::kBadKey);
    Refused(HkdfKey(key, Digest::kSha256, nullptr, 0, nullptr, 0, KeyKind::kGeneric, 16), Code::kBadKey);
    Refused(SealRecord(alive, context, key), Code::kBadKey);
    Refused(SigV4SigningKey(key, "20260101", "r", "s"), Code::kBadKey);
    ReleaseKey(key);  // nothing happens
  }
  Good(DescribeKey(alive));
  ReleaseKey(alive);
}

TEST(AReleasedSecretIsWipedAtOnceForWhoStillHoldsIt) {
  const KeyRef ref = Secret(KeyKind::kAes, Sequence(0x80, 32));
  const KeyPtr held = FindKey(ref);
  const uint8_t* memory = held->secret.data();
  const size_t used = KeyArenaStatus().used;
  assert_memory_equal(memory, Sequence(0x80, 32).data(), 32);
  ReleaseKey(ref);
  for (size_t i = 0; i < 32; i++) assert_true(memory[i] < 0x80 || memory[i] > 0x9f);
  assert_true(KeyArenaStatus().used < used);
  assert_false(static_cast<bool>(KeyUse(held)));
  Refused(ExportKey(held), Code::kBadKey);
}

TEST(ARunningOperationEndsWithItsKey) {
  const KeyRef key = Good(GenerateAes(256));
  const auto cipher = Good(CipherOperation::Begin(key, Direction::kEncrypt, Ecb()));
  const auto untouched = Good(CipherOperation::Begin(key, Direction::kEncrypt, Ecb()));
  const auto mac = Good(MacOperation::Begin(key, MacParameters{}));
  uint8_t block[16] = {};
  uint8_t out[64];
  Good(cipher->Update(block, 16, out, 16));
  Good(mac->Update(block, 16));
  ReleaseKey(key);
  for (int again = 0; again < 2; again++) {
    Refused(cipher->Update(block, 16, out, 16), Code::kBadKey);
    Refused(cipher->Final(out, 16), Code::kBadKey);
    Refused(untouched->Update(block, 16, out, 16), Code::kBadKey);
    Refused(untouched->OneShot(block, 16, out, 16), Code::kBadKey);
    Refused(mac->Update(block, 16), Code::kBadKey);
    Refused(mac->Final(out, sizeof out), Code::kBadKey);
  }
}

TEST(AKeyMayBeReleasedWhileOthersUseIt) {
  for (int round = 0; round < 50; round++) {
    const KeyRef key = Good(GenerateAes(256));
    std::atomic<int> wrong{0};
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; number++) {
      threads.emplace_back([&] {
        uint8_t data[64] = {};
        for (;;) {
          const Result<size_t> written = CipherMessage(key, Direction::kEncrypt, Ecb(), data, 16, data, 16);
          const Result<size_t> mac = MacMessage(key, MacParameters{}, data, 16, data, 32);
          done++;
          if (written.ok() && mac.ok()) continue;
          const Status& failed = written.ok() ? mac.status() : written.status();
          if (failed.code() != Code::kBadKey) wrong++;
          return;
        }
      });
    }
    while (done < 20) std::this_thread::yield();
    ReleaseKey(key);
    for (std::thread& thread : threads) thread.join();
    assert_int_equal(wrong, 0);
  }
}

TEST(WhatAThreadMadeGoesWithIt) {
  const size_t keys = KeyCount();
  const size_t operations = OperationCount();
  const KeyRef mine = Good(GenerateAes(256));
  std::vector<KeyRef> theirs;
  OperationRef foreign = 0;
  Owner owner = 0;
  std::thread([&] {
    owner = ThisThread();
    for (int i = 0; i < 10; i++) theirs.push_back(Good(GenerateAes(128)));
    theirs.push_back(Good(GenerateEc(Curve::kEd25519)));
    foreign = AddOperation(Good(DigestOperation::Begin(Digest::kSha256)));
    AddOperation(Good(CipherOperation::Begin(mine, Direction::kEncrypt, Ecb())));
  }).join();
  assert_true(owner != ThisThread());
  // A key may be used from another thread, an operation may not.
  Good(DescribeKey(theirs[0]));
  assert_null(FindOperation(foreign, OperationType::kDigest));
  DropOperation(foreign);
  assert_int_equal(OperationCount(), operations + 2);

  ReleaseKeysOf(owner);
  DropOperationsOf(owner);
  assert_int_equal(KeyCount(), keys + 1);
  assert_int_equal(OperationCount(), operations);
  for (const KeyRef key : theirs) Refused(DescribeKey(key), Code::kBadKey);
  Good(DescribeKey(mine));
  ReleaseKey(mine);
}

TEST(AnOperationsNumberIsGivenOnceToo) {
  std::set<OperationRef> seen;
  for (int round = 0; round < 20000; round++) {
    const OperationRef ref = AddOperation(Good(DigestOperation::Begin(Digest::kSha256)));
    assert_true(seen.insert(ref).second);
    assert_non_null(FindOperation(ref, OperationType::kDigest));
    assert_null(FindOperation(ref, OperationType::kCipher));
    DropOperation(ref);
    DropOperation(ref);
    assert_null(FindOperation(ref, OperationType::kDigest));
  }
  // JavaScript's numbers hold every one of them: 22 bits of slot below the count of its uses.
  assert_true(*seen.rbegin() < (OperationRef{1} << 53));
  assert_null(FindOperation(0, OperationType::kDigest));
  assert_null(FindOperation(~OperationRef{0}, OperationType::kDigest));
}

TEST(SecretKeysHaveTheirSizes) {
  for (size_t size = 0; size <= 40; size++) {
    const ByteVector value = Sequence(1, size);
    const bool aes = size == 16 || size == 24 || size == 32;
    for (const auto& [kind, good] : {std::pair(KeyKind::kAes, aes), std::pair(KeyKind::kKek, size == 32), std::pair(KeyKind::kGeneric, size > 0)}) {
      const Result<KeyRef> made = ImportSecret(kind, value.data(), value.size());
      if (!good) {
        Refused(made, Code::kBadArgument);
        continue;
      }
      assert_int_equal(Good(DescribeKey(made.value())).bits, 8 * size);
      AssertBytes(ValueOf(made.value()), value);
    }
  }
  Refused(GenerateSecret(KeyKind::kGeneric, 0), Code::kBadArgument);
  Refused(GenerateSecret(KeyKind::kGeneric, 4097), Code::kBadArgument);
  Refused(ImportSecret(KeyKind::kGeneric, Sequence(0, 4097).data(), 4097), Code::kBadArgument);
  for (const int bits : {0, 8, 64, 127, 160, 257, 512, -128}) Refused(GenerateAes(bits), Code::kBadArgument);
  for (const int bits : {0, 512, 1024, 2047, 4097, 8192}) Refused(GenerateRsa(bits), Code::kBadArgument);
}

// The PKCS#8 of a fresh key of any sort of libcrypto's.
ByteVector Pkcs8(const char* type, const char* group = nullptr, size_t bits = 0) {
  EvpPkeyPtr pkey(group != nullptr ? EVP_PKEY_Q_keygen(nullptr, nullptr, type, group)
                                   : bits != 0 ? EVP_PKEY_Q_keygen(nullptr, nullptr, type, bits) : EVP_PKEY_Q_keygen(nullptr, nullptr, type));
  assert_non_null(pkey.get());
  const KeyRef key = Good(AddPkey(std::move(pkey), true));
  return ValueOf(key);
}

TEST(APrivateKeyThatDoesNotHoldTogetherIsRefused) {
  for (const ByteVector& good : {Pkcs8("RSA", nullptr, 2048), Pkcs8("EC", "prime256v1"), Pkcs8("EC", "secp384r1"), Pkcs8("EC", "secp521r1")}) {
    assert_true(ImportPrivateKey(good.data(), good.size()).ok());
    // Each byte of the last third belongs to numbers that depend on each other (the CRT part, or
    // the public point).
    size_t accepted = 0;
    const size_t step = good.size() > 1000 ? 97 : 5;
    for (size_t at = good.size() * 2 / 3; at < good.size(); at += step) {
      ByteVector changed = good;
      changed[at] ^= 1;
      if (ImportPrivateKey(changed.data(), changed.size()).ok()) accepted++;
    }
    assert_int_equal(accepted, 0);
    for (size_t length = 0; length < good.size(); length += good.size() > 1000 ? 41 : 1) {
      const ByteVector cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
      Refused(ImportPrivateKey(cut.data(), cut.size()), Code::kBadArgument);
    }
    ByteVector longer = good;
    longer.push_back(0);
    Refused(ImportPrivateKey(longer.data(), longer.size()), Code::kBadArgument);
  }
  Refused(ImportPrivateKey(Sequence(0, 20000).data(), 20000), Code::kBadArgument);
}

TEST(KeysOfOtherSortsAreRefused) {
  const auto refused = [](EVP_PKEY* raw) {
    EvpPkeyPtr pkey(raw);
    assert_non_null(pkey.get());
    Refused(AddPkey(std::move(pkey), true), Code::kUnsupported);
  };
  refused(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", size_t{768}));
  refused(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "secp192k1"));
  refused(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "brainpoolP256t1"));
  refused(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "sect283r1"));
}

TEST(APublicKeyIsReadWholeAndChecked) {
  const ByteVector spki = Good(ExportPublicKey(Good(GenerateEc(Curve::kP256))));
  const KeyRef key = Good(ImportPublicKey(spki.data(), spki.size()));
  AssertBytes(Good(ExportPublicKey(key)), spki);
  Refused(ExportKey(FindKey(key)), Code::kKeyType);
  for (size_t at = spki.size() - 64; at < spki.size(); at++) {
    ByteVector changed = spki;
    changed[at] ^= 1;  // no longer on the curve
    Refused(ImportPublicKey(changed.data(), changed.size()), Code::kBadArgument);
  }
  for (size_t length = 0; length < spki.size(); length++) {
    const ByteVector cut(spki.begin(), spki.begin() + static_cast<std::ptrdiff_t>(length));
    Refused(ImportPublicKey(cut.data(), cut.size()), Code::kBadArgument);
  }
  ByteVector longer = spki;
  longer.push_back(0);
  Refused(ImportPublicKey(longer.data(), longer.size()), Code::kBadArgument);
}

TEST(AKekSealsAndNothingElse) {
  const KeyRef kek = Good(GenerateSecret(KeyKind::kKek, 32));
  const KeyRef aes = Good(GenerateAes(256));
  uint8_t data[32] = {};
  uint8_t out[64];
  MacParameters cmac;
  cmac.cmac = true;
  Refused(CipherMessage(kek, Direction::kEncrypt, Ecb(), data, 16, out, 16), Code::kKeyType);
  Refused(CipherOperation::Begin(kek, Direction::kEncrypt, Ecb()), Code::kKeyType);
  Refused(MacMessage(kek, MacParameters{}, data, 16, out, sizeof out), Code::kKeyType);
  Refused(MacMessage(kek, cmac, data, 16, out, sizeof out), Code::kKeyType);
  Refused(MacOperation::Begin(kek, MacParameters{}), Code::kKeyType);
  Refused(WrapData(kek, data, 16, {}), Code::kKeyType);
  Refused(WrapKey(kek, aes, {}), Code::kKeyType);
  Refused(WrapKey(aes, kek, {}), Code::kKeyType);  // it would be open to who knows the other key
  Refused(CheckValue(kek), Code::kKeyType);
  Good(HkdfKey(kek, Digest::kSha256, nullptr, 0, nullptr, 0, KeyKind::kGeneric, 32));
}

TEST(KeysOfTheWrongSortAreRefused) {
  const KeyRef generic = Good(GenerateSecret(KeyKind::kGeneric, 32));
  const KeyRef aes = Good(GenerateAes(256));
  const KeyRef ec = Good(GenerateEc(Curve::kP256));
  const KeyRef edwards = Good(GenerateEc(Curve::kEd25519));
  uint8_t data[32] = {};
  uint8_t out[64];
  MacParameters cmac;
  cmac.cmac = true;
  SignatureParameters pss{};
  pss.algorithm = SignatureAlgorithm::kRsaPss;
  pss.digest = Digest::kSha256;
  SignatureParameters ed25519{};
  ed25519.algorithm = SignatureAlgorithm::kEd25519;
  Refused(CipherMessage(generic, Direction::kEncrypt, Ecb(), data, 16, out, 16), Code::kKeyType);
  Refused(CipherMessage(ec, Direction::kEncrypt, Ecb(), data, 16, out, 16), Code::kKeyType);
  Refused(MacMessage(generic, cmac, data, 16, out, sizeof out), Code::kKeyType);
  Refused(MacMessage(edwards, MacParameters{}, data, 16, out, sizeof out), Code::kKeyType);
  Refused(WrapData(generic, data, 16, {}), Code::kKeyType);
  Refused(Sign(aes, pss, data, 32), Code::kKeyType);
  Refused(Sign(ec, pss, data, 32), Code::kKeyType);
  Refused(Sign(ec, ed25519, data, 32), Code::kKeyType);
  Refused(Verify(edwards, pss, data, 32, out, 64), Code::kKeyType);
  Refused(RsaDecrypt(ec, RsaEncryptionParameters{}, data, 32), Code::kKeyType);
  Refused(Ecdh(edwards, out, 65), Code::kKeyType);
  Refused(ExportPublicKey(aes), Code::kKeyType);
  Refused(HkdfKey(ec, Digest::kSha256, nullptr, 0, nullptr, 0, KeyKind::kGeneric, 32), Code::kKeyType);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
