// scrypt returns the published bytes (RFC 7914, 12), and the parameters in a file cannot exhaust
// the machine.
#include "digests/kdf.h"

#include "public_key/agreement.h"

#include "support.h"

namespace dke {
namespace {

struct Row {
  const char* passphrase;
  const char* salt;
  uint32_t cost, r, p;
  const char* derived;
};
constexpr Row kRows[] = {
    {"", "", 4, 1, 1,
     "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"},
    {"password", "NaCl", 10, 8, 16,
     "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"},
    {"pleaseletmein", "SodiumChloride", 14, 8, 1,
     "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"},
};

TEST(ScryptGivesThePublishedBytes) {
  for (const Row& row : kRows) {
    const ByteVector passphrase = BytesOf(row.passphrase);
    const ByteVector salt = BytesOf(row.salt);
    uint8_t derived[64];
    const Status status =
        ScryptInto(passphrase.data(), passphrase.size(), salt.data(), salt.size(), row.cost, row.r, row.p, derived, sizeof derived);
    assert_true(status.ok());
    assert_memory_equal(derived, Hex(row.derived).data(), sizeof derived);
  }
}

TEST(WhatWouldTakeMoreThanAGigabyteIsRefused) {
  const ByteVector text = BytesOf("passphrase");
  const auto refused = [&](uint32_t cost, uint32_t r, uint32_t p) {
    Refused(ScryptKey(text.data(), text.size(), text.data(), text.size(), cost, r, p), Code::kBadArgument);
  };
  refused(0, 8, 1);
  refused(24, 64, 1);
  refused(20, 8, 1);
  refused(10, 65, 1);
  refused(10, 8, 17);
  assert_int_equal(Good(ScryptKey(text.data(), text.size(), text.data(), text.size(), 10, 8, 1)).secret.size(), 32);
}

// The info of HKDF, and the shared info of ECDH, are hashed once for each block of the derived key.
TEST(LongInfoIsRefused) {
  const KeyRef key = Good(GenerateSecret(KeyKind::kGeneric, 32));
  const ByteVector info(32769, 1);
  const auto derive = [&](size_t info_length, size_t bytes) {
    return HkdfKey(key, Digest::kSha1, nullptr, 0, info.data(), info_length, KeyKind::kGeneric, bytes);
  };
  Refused(derive(32769, 32), Code::kBadArgument);
  Refused(derive(32768, 4096), Code::kBadArgument);
  // 26 blocks.
  assert_int_equal(ValueOf(Good(derive(32768, 512))).size(), 512);
  assert_int_equal(ValueOf(Good(derive(4096, 4096))).size(), 4096);
}

TEST(LongSharedInfoIsRefused) {
  const KeyRef own = Good(GenerateEc(Curve::kP256));
  const ByteVector spki = Good(ExportPublicKey(own));
  const ByteVector point(spki.end() - 65, spki.end());
  const ByteVector info(32769, 1);
  EcdhDerivation derivation;
  derivation.kind = KeyKind::kGeneric;
  derivation.bytes = 512;
  derivation.kdf = Digest::kSha1;
  derivation.shared_info = info.data();
  derivation.shared_info_length = info.size();
  Refused(EcdhKey(own, point.data(), point.size(), derivation), Code::kBadArgument);
  derivation.shared_info_length--;
  assert_int_equal(ValueOf(Good(EcdhKey(own, point.data(), point.size(), derivation))).size(), 512);
  derivation.bytes = 4096;
  Refused(EcdhKey(own, point.data(), point.size(), derivation), Code::kBadArgument);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
