// The two secret steps of SigV4, against the examples that AWS publishes, and invalid signatures.
#include "xks/sigv4_keys.h"

#include <cctype>

#include "support.h"

namespace dke {
namespace {

const char kSecret[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const char kHead[] =
    "GET\n/\nAction=ListUsers&Version=2010-05-08\n"
    "content-type:application/x-www-form-urlencoded; charset=utf-8\nhost:iam.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
    "content-type;host;x-amz-date\n";
const char kScope[] = "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n";
const char kEmptyHash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const char kSignature[] = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";

KeyRef SecretKey() { return Secret(KeyKind::kGeneric, BytesOf(kSecret)); }
KeyRef SigningKey() { return Good(SigV4SigningKey(SecretKey(), "20150830", "us-east-1", "iam")); }

// The published request, with a test's changes.
struct Published {
  std::string head = kHead;
  std::string body;
  std::string scope = kScope;
  std::string stated_hash;
};

bool Verified(KeyRef key, const std::string& signature, const Published& request = {}) {
  return Good(SigV4Verify(key, {request.head, reinterpret_cast<const uint8_t*>(request.body.data()), request.body.size(), request.scope,
                                request.stated_hash, signature}));
}

TEST(TheSigningKeyIsThePublishedOne) {
  AssertBytes(ValueOf(SigningKey()), Hex("c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"));
  AssertBytes(ValueOf(Good(SigV4SigningKey(SecretKey(), "20120215", "us-east-1", "iam"))),
              Hex("f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"));
}

TEST(ThePublishedSignatureVerifies) { assert_true(Verified(SigningKey(), kSignature)); }

TEST(EveryOtherSignatureIsWrong) {
  const KeyRef key = SigningKey();
  const std::string good = kSignature;
  for (size_t at = 0; at < good.size(); at++) {
    for (const char c : {'0', 'f', 'A', 'F', 'g', ' ', '\0'}) {
      if (good[at] == c) continue;
      std::string changed = good;
      changed[at] = c;
      assert_false(Verified(key, changed));
    }
  }
  std::string upper = good;
  for (char& c : upper) c = static_cast<char>(toupper(c));
  assert_false(Verified(key, upper));
  assert_false(Verified(key, ""));
  assert_false(Verified(key, good.substr(0, 63)));
  assert_false(Verified(key, good + "0"));
  assert_false(Verified(key, good + std::string(1, '\0')));
}

TEST(EveryPartOfTheRequestCounts) {
  const KeyRef key = SigningKey();
  assert_true(Verified(key, kSignature, {kHead, "", kScope, kEmptyHash}));
  assert_false(Verified(key, kSignature, {"", "", kScope, ""}));
  assert_false(Verified(key, kSignature, {std::string(kHead) + "\n", "", kScope, ""}));
  assert_false(Verified(key, kSignature, {kHead, "x", kScope, ""}));
  assert_false(Verified(key, kSignature, {kHead, "", std::string(kScope) + "\n", ""}));
  assert_false(Verified(key, kSignature, {kHead, "", "", ""}));
  // A stated hash that is not the body's, though the signature is good.
  std::string other = kEmptyHash;
  other.back() ^= 1;
  assert_false(Verified(key, kSignature, {kHead, "", kScope, other}));
  assert_false(Verified(key, kSignature, {kHead, "", kScope, "e3b0"}));
}

TEST(DateRegionServiceAndSecretAllCount) {
  for (const auto& [date, region, service] : {std::tuple("20150831", "us-east-1", "iam"), std::tuple("20150830", "us-east-2", "iam"),
                                              std::tuple("20150830", "us-east-1", "kms-xks-proxy"), std::tuple("20150830", "us-east-1", "")}) {
    assert_false(Verified(Good(SigV4SigningKey(SecretKey(), date, region, service)), kSignature));
  }
  ByteVector other = BytesOf(kSecret);
  other.back() ^= 1;
  assert_false(Verified(Good(SigV4SigningKey(Secret(KeyKind::kGeneric, other), "20150830", "us-east-1", "iam")), kSignature));
}

TEST(OnlyALiveSecretKeyDerives) {
  const KeyRef released = SecretKey();
  ReleaseKey(released);
  Refused(SigV4SigningKey(released, "20150830", "us-east-1", "iam"), Code::kBadKey);
  Refused(SigV4SigningKey(Good(GenerateEc(Curve::kEd25519)), "20150830", "us-east-1", "iam"), Code::kKeyType);
  Refused(SigV4SigningKey(Good(GenerateSecret(KeyKind::kKek, 32)), "20150830", "us-east-1", "iam"), Code::kKeyType);
  const KeyRef signing = SigningKey();
  ReleaseKey(signing);
  Refused(SigV4Verify(signing, {kHead, nullptr, 0, kScope, "", kSignature}), Code::kBadKey);
}

TEST(AFreshSecretAccessKeyHas64CharactersOfTheAlphabet) {
  int seen[256] = {};
  for (int round = 0; round < 200; round++) {
    const SecureBuffer characters = Good(MakeSecretAccessKey());
    assert_int_equal(characters.size(), 64);
    for (size_t i = 0; i < characters.size(); i++) seen[characters.data()[i]]++;
  }
  int used = 0;
  for (int c = 0; c < 256; c++) {
    if (seen[c] == 0) continue;
    used++;
    assert_true(isalnum(c) || c == '+' || c == '/');
  }
  // 12,800 draws from 64: that one is missing has a chance of 64 / e^200.
  assert_int_equal(used, 64);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
