// The XKS bodies (external key store proxy specification v1.0.x): which requests are read, how the
// others are refused, that ciphertext decrypts only under the same key and binding.
#include "xks/xks_body.h"

#include <openssl/evp.h>

#include <functional>

#include "base/base64.h"
#include "support.h"

namespace dke {
namespace {

std::string Base64(const ByteVector& bytes) {
  std::string text(Base64Length(bytes.size()), '#');
  EncodeBase64(bytes.data(), bytes.size(), reinterpret_cast<uint8_t*>(text.data()));
  return text;
}

using Members = std::map<std::string, std::string>;  // name to JSON text

std::string Json(const Members& members) {
  std::string text = "{";
  for (const auto& [name, value] : members) text += (text.size() == 1 ? "\"" : ",\"") + name + "\":" + value;
  return text + "}";
}
std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

const Members& Metadata() {
  static const Members metadata = {{"kmsRequestId", "\"r-1\""},
                                   {"kmsOperation", "\"Encrypt\""},
                                   {"awsPrincipalArn", "\"arn:aws:iam::1:user/a\""},
                                   {"kmsKeyArn", "\"arn:aws:kms:r:1:key/k\""}};
  return metadata;
}

Members EncryptRequest() {
  return {{"requestMetadata", Json(Metadata())},
          {"plaintext", Quoted(Base64(BytesOf("a data key")))},
          {"encryptionAlgorithm", "\"AES_GCM\""}};
}

Members DecryptRequest() {
  const Vector vector("xks ciphertext");
  const auto text = [&](const char* member) { return Quoted(Base64(vector.Bytes(member))); };
  return {{"requestMetadata", Json(Metadata())},   {"encryptionAlgorithm", "\"AES_GCM\""},
          {"ciphertext", text("ciphertext")},      {"initializationVector", text("iv")},
          {"authenticationTag", text("authenticationTag")}, {"ciphertextMetadata", text("ciphertextMetadata")},
          {"additionalAuthenticatedData", text("aad")}};
}

XksReading Read(XksOperation operation, const std::string& text) {
  const ByteVector bytes = BytesOf(text);
  return ReadXksBody(operation, bytes.data(), bytes.size());
}

std::unique_ptr<XksBody> Accepted(XksOperation operation, const Members& members) {
  XksReading reading = Read(operation, Json(members));
  if (reading.body == nullptr) fail_msg("%s: %s", reading.refusal.error_name, reading.refusal.message.c_str());
  return std::move(reading.body);
}

void RefusedAs(XksOperation operation, const std::string& text, const char* name, const char* message) {
  const XksReading reading = Read(operation, text);
  if (reading.body != nullptr) fail_msg("accepted: %s", text.substr(0, 200).c_str());
  assert_string_equal(reading.refusal.error_name, name);
  assert_string_equal(reading.refusal.message.c_str(), message);
}

constexpr char kValidation[] = "ValidationException";
constexpr char kUnsupported[] = "UnsupportedOperationException";
constexpr auto kEncrypt = XksOperation::kEncrypt;
constexpr auto kDecrypt = XksOperation::kDecrypt;

TEST(TheDocumentsCiphertextDecrypts) {
  const Vector vector("xks ciphertext");
  const ByteVector binding = vector.Bytes("binding");
  const auto body = Accepted(kDecrypt, DecryptRequest());
  assert_int_equal(body->key_version, vector.Number("version"));
  const SecureBuffer answer = Good(XksDecrypt(*body, Secret(KeyKind::kAes, vector.Bytes("key")), binding.data(), binding.size()));
  const std::string expected = "{\"plaintext\":\"" + Base64(vector.Bytes("plaintext")) + "\"}";
  AssertBytes(ByteVector(answer.data(), answer.data() + answer.size()), BytesOf(expected));
}

TEST(NothingBesideItDecrypts) {
  const Vector vector("xks ciphertext");
  const KeyRef key = Secret(KeyKind::kAes, vector.Bytes("key"));
  const ByteVector binding = vector.Bytes("binding");
  const auto fails = [&](const XksBody& body, KeyRef with, const ByteVector& bound) {
    Refused(XksDecrypt(body, with, bound.data(), bound.size()), Code::kAuthenticationFailed);
  };
  // Every bit of every member that the answer depends on.
  const std::function<ByteVector*(XksBody&)> fields[] = {[](XksBody& body) { return &body.aad; }, [](XksBody& body) { return &body.iv; },
                                                         [](XksBody& body) { return &body.tag; },
                                                         [](XksBody& body) { return &body.ciphertext_metadata; }};
  for (const auto& field : fields) {
    const size_t size = field(*Accepted(kDecrypt, DecryptRequest()))->size();
    for (size_t at = 0; at < size; at++) {
      const auto body = Accepted(kDecrypt, DecryptRequest());
      (*field(*body))[at] ^= 1;
      fails(*body, key, binding);
    }
    const auto body = Accepted(kDecrypt, DecryptRequest());
    field(*body)->pop_back();
    fails(*body, key, binding);
  }
  const auto body = Accepted(kDecrypt, DecryptRequest());
  for (size_t at = 0; at < body->text.size(); at++) {
    body->text.data()[at] ^= 1;
    fails(*body, key, binding);
    body->text.data()[at] ^= 1;
  }
  body->key_version++;
  fails(*body, key, binding);
  body->key_version--;
  for (size_t at = 0; at < binding.size(); at++) {
    ByteVector other = binding;
    other[at] ^= 1;
    fails(*body, key, other);
  }
  fails(*body, key, ByteVector());
  fails(*body, Good(GenerateAes(256)), binding);
  Good(XksDecrypt(*body, key, binding.data(), binding.size()));
}

// The members of an answer, which is flat and holds Base64 alone.
std::map<std::string, ByteVector> AnswerOf(const ByteVector& answer) {
  std::map<std::string, ByteVector> members;
  const std::string text(answer.begin(), answer.end());
  for (size_t at = 1; at < text.size() && text[at] == '"';) {
    const size_t name_end = text.find("\":\"", at);
    const size_t value_end = text.find('"', name_end + 3);
    const std::string value = text.substr(name_end + 3, value_end - name_end - 3);
    ByteVector bytes(value.size());
    const ptrdiff_t length = DecodeBase64(reinterpret_cast<const uint8_t*>(value.data()), value.size(), bytes.data());
    assert_true(length >= 0);
    bytes.resize(static_cast<size_t>(length));
    members[text.substr(at + 1, name_end - at - 1)] = bytes;
    at = value_end + 2;
  }
  return members;
}

TEST(WhatIsEncryptedDecrypts) {
  const KeyRef key = Good(GenerateAes(256));
  const ByteVector binding = Sequence(1, 32);
  for (const size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{16}, size_t{1000}, size_t{32768}}) {
    for (const size_t aad : {size_t{0}, size_t{1}, size_t{8192}, size_t{32768}}) {
      Members request = EncryptRequest();
      request["plaintext"] = Quoted(Base64(Sequence(7, size)));
      if (aad != 0) request["additionalAuthenticatedData"] = Quoted(Base64(Sequence(9, aad)));
      request["ciphertextDataIntegrityValueAlgorithm"] = "\"SHA_256\"";
      const auto made = AnswerOf(Good(XksEncrypt(*Accepted(kEncrypt, request), key, 0xabcdef, binding.data(), binding.size())));
      assert_int_equal(made.size(), 5);
      assert_int_equal(made.at("ciphertext").size(), size);
      AssertBytes(ByteVector(made.at("ciphertextMetadata").begin(), made.at("ciphertextMetadata").begin() + 4), {1, 0xab, 0xcd, 0xef});

      ByteVector covered = aad == 0 ? ByteVector() : Sequence(9, aad);
      for (const char* member : {"ciphertextMetadata", "initializationVector", "ciphertext", "authenticationTag"}) {
        covered.insert(covered.end(), made.at(member).begin(), made.at(member).end());
      }
      ByteVector digest(32);
      assert_int_equal(EVP_Digest(covered.data(), covered.size(), digest.data(), nullptr, EVP_sha256(), nullptr), 1);
      AssertBytes(made.at("ciphertextDataIntegrityValue"), digest);

      Members back = {{"requestMetadata", Json(Metadata())}, {"encryptionAlgorithm", "\"AES_GCM\""}};
      for (const auto& [name, value] : made) back[name] = Quoted(Base64(value));
      if (aad != 0) back["additionalAuthenticatedData"] = request["additionalAuthenticatedData"];
      const auto body = Accepted(kDecrypt, back);
      assert_int_equal(body->key_version, 0xabcdef);
      const SecureBuffer answer = Good(XksDecrypt(*body, key, binding.data(), binding.size()));
      AssertBytes(ByteVector(answer.data(), answer.data() + answer.size()), BytesOf("{\"plaintext\":" + request["plaintext"] + "}"));
    }
  }
}

TEST(TwoEncryptionsHaveNothingInCommon) {
  const KeyRef key = Good(GenerateAes(256));
  const auto body = Accepted(kEncrypt, EncryptRequest());
  const auto first = AnswerOf(Good(XksEncrypt(*body, key, 1, nullptr, 0)));
  const auto second = AnswerOf(Good(XksEncrypt(*body, key, 1, nullptr, 0)));
  assert_int_equal(first.size(), 4);  // no integrity value unless it is asked for
  for (const auto& [name, value] : first) assert_true(value != second.at(name));
}

TEST(AVersionHas24Bits) {
  const KeyRef key = Good(GenerateAes(256));
  const auto body = Accepted(kEncrypt, EncryptRequest());
  Refused(XksEncrypt(*body, key, 0, nullptr, 0), Code::kBadArgument);
  Refused(XksEncrypt(*body, key, 0x1000000, nullptr, 0), Code::kBadArgument);
  Good(XksEncrypt(*body, key, 0xffffff, nullptr, 0));
}

TEST(EveryRequiredMemberIsRequired) {
  const auto missing = [](XksOperation operation, Members request, const char* name) {
    request.erase(name);
    RefusedAs(operation, Json(request), kValidation, (std::string(name) + " is missing").c_str());
    request[name] = "null";  // a null is a member that is not there
    RefusedAs(operation, Json(request), kValidation,
              std::string(name) == "requestMetadata" ? "requestMetadata is not an object" : (std::string(name) + " is missing").c_str());
    request[name] = "7";
    RefusedAs(operation, Json(request), kValidation,
              (std::string(name) + (std::string(name) == "requestMetadata" ? " is not an object" : " is not a string")).c_str());
  };
  for (const char* name : {"requestMetadata", "plaintext", "encryptionAlgorithm"}) missing(kEncrypt, EncryptRequest(), name);
  for (const char* name : {"requestMetadata", "ciphertext", "encryptionAlgorithm", "initializationVector", "authenticationTag"}) {
    missing(kDecrypt, DecryptRequest(), name);
  }
  for (const auto operation : {kEncrypt, kDecrypt}) {
    for (const char* name : {"kmsRequestId", "kmsOperation", "awsPrincipalArn", "kmsKeyArn"}) {
      Members metadata = Metadata();
      metadata.erase(name);
      Members request = operation == kEncrypt ? EncryptRequest() : DecryptRequest();
      request["requestMetadata"] = Json(metadata);
      RefusedAs(operation, Json(request), kValidation, (std::string(name) + " is missing").c_str());
    }
  }
}

TEST(HealthAndMetadataAskForLess) {
  const XksReading health = Read(XksOperation::kHealth, "{}");
  assert_non_null(health.body.get());
  assert_true(health.body->empty);
  RefusedAs(XksOperation::kMetadata, "{}", kValidation, "requestMetadata is missing");
  Members metadata = Metadata();
  metadata.erase("kmsKeyArn");
  Accepted(XksOperation::kMetadata, {{"requestMetadata", Json(metadata)}});
  metadata.erase("awsPrincipalArn");
  Accepted(XksOperation::kHealth, {{"requestMetadata", Json(metadata)}});
  RefusedAs(XksOperation::kMetadata, Json({{"requestMetadata", Json(metadata)}}), kValidation, "awsPrincipalArn is missing");
}

TEST(UnknownMembersAreAccepted) {
  Members request = EncryptRequest();
  request["later"] = R"({"plaintext":"not this one","deep":[{"kmsKeyArn":1}]})";
  Members metadata = Metadata();
  metadata["kmsViaService"] = "\"s3.amazonaws.com\"";
  metadata["awsSourceVpc"] = "\"vpc-1\"";
  metadata["awsSourceVpce"] = "\"vpce-1\"";
  metadata["later"] = "[1,2]";
  request["requestMetadata"] = Json(metadata);
  const auto body = Accepted(kEncrypt, request);
  assert_memory_equal(body->text.data(), "a data key", 10);
  assert_string_equal(body->metadata->kms_via_service->c_str(), "s3.amazonaws.com");
  assert_string_equal(body->metadata->aws_source_vpc->c_str(), "vpc-1");
  assert_string_equal(body->metadata->aws_source_vpce->c_str(), "vpce-1");
  assert_string_equal(body->metadata->kms_request_id.c_str(), "r-1");
}

TEST(OtherAlgorithmsAreNotSupported) {
  Members request = EncryptRequest();
  request["encryptionAlgorithm"] = "\"AES_CBC\"";
  RefusedAs(kEncrypt, Json(request), kUnsupported, "encryptionAlgorithm is not AES_GCM");
  request["encryptionAlgorithm"] = "\"aes_gcm\"";
  RefusedAs(kEncrypt, Json(request), kUnsupported, "encryptionAlgorithm is not AES_GCM");
  request = EncryptRequest();
  request["ciphertextDataIntegrityValueAlgorithm"] = "\"SHA_512\"";
  RefusedAs(kEncrypt, Json(request), kUnsupported, "ciphertextDataIntegrityValueAlgorithm is not SHA_256");
}

TEST(LengthsHaveLimits) {
  const auto with = [](Members request, const char* name, size_t size) {
    request[name] = Quoted(Base64(Sequence(0, size)));
    return Json(request);
  };
  RefusedAs(kEncrypt, with(EncryptRequest(), "plaintext", 0), kValidation, "plaintext has the wrong length");
  RefusedAs(kEncrypt, with(EncryptRequest(), "plaintext", 32769), kUnsupported, "plaintext is longer than supported");
  RefusedAs(kEncrypt, with(EncryptRequest(), "plaintext", 500000), kUnsupported, "plaintext is longer than supported");
  RefusedAs(kEncrypt, with(EncryptRequest(), "additionalAuthenticatedData", 32769), kUnsupported, "additionalAuthenticatedData is longer than supported");
  RefusedAs(kDecrypt, with(DecryptRequest(), "ciphertext", 0), kValidation, "ciphertext has the wrong length");
  RefusedAs(kDecrypt, with(DecryptRequest(), "ciphertext", 32769), kUnsupported, "ciphertext is longer than supported");
  for (const size_t size : {0, 11, 13, 14, 15, 17, 32}) {
    RefusedAs(kDecrypt, with(DecryptRequest(), "initializationVector", size), kValidation, "initializationVector has the wrong length");
  }
  for (const size_t size : {0, 8, 12, 15, 17, 32}) {
    RefusedAs(kDecrypt, with(DecryptRequest(), "authenticationTag", size), kValidation, "authenticationTag has the wrong length");
  }
  RefusedAs(kDecrypt, with(DecryptRequest(), "ciphertextMetadata", 21), kValidation, "ciphertextMetadata has the wrong length");
  // The specification permits an IV of 16 bytes, which we never generate: the ciphertext cannot be
  // ours.
  const XksReading other = Read(kDecrypt, with(DecryptRequest(), "initializationVector", 16));
  const ByteVector binding = Vector("xks ciphertext").Bytes("binding");
  Refused(XksDecrypt(*other.body, Secret(KeyKind::kAes, Vector("xks ciphertext").Bytes("key")), binding.data(), binding.size()), Code::kAuthenticationFailed);

  Members metadata = Metadata();
  Members request = EncryptRequest();
  metadata["kmsRequestId"] = Quoted(std::string(2048, 'r'));
  request["requestMetadata"] = Json(metadata);
  Accepted(kEncrypt, request);
  metadata["kmsRequestId"] = Quoted(std::string(2049, 'r'));
  request["requestMetadata"] = Json(metadata);
  RefusedAs(kEncrypt, Json(request), kValidation, "kmsRequestId is longer than 2048 characters");
}

// The permission to use the key is checked first: a body alone does not show whether its ciphertext
// opens under our keys.
TEST(CiphertextsOfOthersHaveNoKeyVersion) {
  const Vector vector("xks ciphertext");
  const KeyRef key = Secret(KeyKind::kAes, vector.Bytes("key"));
  const ByteVector binding = vector.Bytes("binding");
  const auto has_none = [&](const Members& request) {
    const auto body = Accepted(kDecrypt, request);
    assert_int_equal(body->key_version, 0);
    Refused(XksDecrypt(*body, key, binding.data(), binding.size()), Code::kAuthenticationFailed);
  };
  Members request = DecryptRequest();
  request.erase("ciphertextMetadata");
  has_none(request);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{19}}) {
    request["ciphertextMetadata"] = Quoted(Base64(Sequence(1, size)));
    has_none(request);
  }
  request["ciphertextMetadata"] = Quoted(Base64(Sequence(2, 20)));
  has_none(request);
}

TEST(TextThatIsNotBase64IsRefusedWithoutItsData) {
  for (const char* text : {"=", "AAA", "AA==AA==", "AA*=", "AB==", "YSBkYXRhIGtleQ", "YSBkYXRhIGtleQ==\\n", "\xc3\xa9\xc3\xa9"}) {
    Members request = EncryptRequest();
    request["plaintext"] = Quoted(text);
    RefusedAs(kEncrypt, Json(request), kValidation, "plaintext is not Base64");
  }
  // Escapes are part of the JSON, not of the Base64.
  Members request = EncryptRequest();
  request["plaintext"] = R"("YS\u0042kYXRhIGtleQ\u003d\u003D")";
  assert_memory_equal(Accepted(kEncrypt, request)->text.data(), "a data key", 10);
  request["plaintext"] = R"("\/\/\/\/")";
  const uint8_t ones[] = {0xff, 0xff, 0xff};
  assert_memory_equal(Accepted(kEncrypt, request)->text.data(), ones, 3);
}

TEST(BrokenJsonIsAValidationError) {
  RefusedAs(kEncrypt, "", kValidation, "the body is not a JSON object");
  RefusedAs(kEncrypt, "[]", kValidation, "the body is not a JSON object");
  RefusedAs(kEncrypt, R"({"plaintext":"AA==","plaintext":"AA=="})", kValidation, "a member stands twice");
  RefusedAs(kEncrypt, std::string(100000, '['), kValidation, "the body is not a JSON object");
  RefusedAs(kEncrypt, "{\"a\":" + std::string(100000, '['), kValidation, "the JSON is nested too deeply");
}

TEST(ARefusedBodyLeavesNothingInTheArena) {
  const size_t used = KeyArenaStatus().used;
  Members request = EncryptRequest();
  request["plaintext"] = Quoted(Base64(Sequence(0, 30000)));
  request["additionalAuthenticatedData"] = "\"*\"";
  RefusedAs(kEncrypt, Json(request), kValidation, "additionalAuthenticatedData is not Base64");
  assert_int_equal(KeyArenaStatus().used, used);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
