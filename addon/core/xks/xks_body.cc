#include "xks/xks_body.h"

#include <openssl/crypto.h>

#include <cstring>

#include "base/base64.h"
#include "base/bytes.h"
#include "digests/digest.h"
#include "base/json_reader.h"
#include "digests/mac.h"
#include "keys/labels.h"
#include "digests/hedge.h"

namespace dke {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxText = 32768;
constexpr size_t kMaxAad = 32768;
constexpr size_t kMaxArn = 2048;
constexpr size_t kMaxMetadata = 20;
constexpr size_t kIv = 12;
constexpr size_t kTag = 16;
constexpr size_t kSalt = 16;
constexpr uint8_t kLayout = 1;
constexpr size_t kOurMetadata = 1 + 3 + kSalt;
constexpr std::string_view kLabel = TextOf(Label::kXksMessage);

constexpr char kValidation[] = "ValidationException";
constexpr char kUnsupported[] = "UnsupportedOperationException";

// A member as found, or not.
struct Found {
  bool present = false;
  bool is_string = false;
  std::string_view text;
};

// The members that the protocol names. Unknown ones are accepted.
struct Members final : JsonVisitor {
  bool any = false;
  bool has_metadata = false;
  bool metadata_is_object = false;
  Found plaintext, ciphertext, aad, iv, tag, algorithm, cdiv, ciphertext_metadata;
  Found request_id, operation, principal, key_arn, vpc, vpce, via;

  bool Member(size_t depth, std::string_view parent, std::string_view name, const JsonValue& value) override {
    static constexpr struct {
      size_t depth;
      std::string_view name;
      Found Members::*found;
    } kNames[] = {
        {1, "plaintext", &Members::plaintext},
        {1, "ciphertext", &Members::ciphertext},
        {1, "additionalAuthenticatedData", &Members::aad},
        {1, "initializationVector", &Members::iv},
        {1, "authenticationTag", &Members::tag},
        {1, "encryptionAlgorithm", &Members::algorithm},
        {1, "ciphertextDataIntegrityValueAlgorithm", &Members::cdiv},
        {1, "ciphertextMetadata", &Members::ciphertext_metadata},
        {2, "kmsRequestId", &Members::request_id},
        {2, "kmsOperation", &Members::operation},
        {2, "awsPrincipalArn", &Members::principal},
        {2, "kmsKeyArn", &Members::key_arn},
        {2, "awsSourceVpc", &Members::vpc},
        {2, "awsSourceVpce", &Members::vpce},
        {2, "kmsViaService", &Members::via},
    };
    if (depth == 1) any = true;
    if (depth == 1 && name == "requestMetadata") {
      has_metadata = true;
      metadata_is_object = value.type == JsonType::kObject;
    }
    if (depth == 2 && parent != "requestMetadata") return true;
    Found* found = nullptr;
    for (const auto& row : kNames) {
      if (row.depth == depth && row.name == name) found = &(this->*row.found);
    }
    // A JSON null is a member that is not there.
    if (found != nullptr && value.type != JsonType::kNull) *found = {true, value.type == JsonType::kString, value.text};
    return true;
  }
};

// Collects the first thing that is wrong.
class Check {
 public:
  bool failed() const { return refusal_.error_name != nullptr; }
  XksRefusal refusal() const { return refusal_; }
  void Refuse(const char* error_name, std::string message) {
    if (!failed()) refusal_ = {error_name, std::move(message)};
  }

  std::string RequiredText(const Found& found, const char* name) {
    if (!found.present) Refuse(kValidation, std::string(name) + " is missing");
    return OptionalText(found, name).value_or(std::string());
  }

  std::optional<std::string> OptionalText(const Found& found, const char* name) {
    if (!found.present) return std::nullopt;
    if (!found.is_string) {
      Refuse(kValidation, std::string(name) + " is not a string");
      return std::nullopt;
    }
    std::string text(found.text.size(), '\0');
    text.resize(UnescapeJson(found.text, reinterpret_cast<uint8_t*>(text.data())));
    if (text.size() > kMaxArn) Refuse(kValidation, std::string(name) + " is longer than 2048 characters");
    return text;
  }

  // Decodes into arena memory, which is wiped: the text may be a plaintext.
  SecureBuffer Base64(const Found& found, const char* name, size_t least, size_t most, bool required, const char* too_long = kValidation) {
    if (!found.present) {
      if (required) Refuse(kValidation, std::string(name) + " is missing");
      return SecureBuffer();
    }
    if (!found.is_string) {
      Refuse(kValidation, std::string(name) + " is not a string");
      return SecureBuffer();
    }
    if (found.text.empty()) {
      if (least > 0) Refuse(kValidation, std::string(name) + " has the wrong length");
      return SecureBuffer();
    }
    // Longer than any member that is allowed, even with many escapes.
    if (found.text.size() > SecureBuffer::kLargest) {
      Refuse(too_long, std::string(name) + " is longer than supported");
      return SecureBuffer();
    }
    Result<SecureBuffer> memory = SecureBuffer::Make(found.text.size());
    if (!memory.ok()) {
      Refuse("InternalException", "out of memory for keys");
      return SecureBuffer();
    }
    SecureBuffer bytes = memory.Take();
    const size_t characters = UnescapeJson(found.text, bytes.data());
    const ptrdiff_t length = DecodeBase64(bytes.data(), characters, bytes.data());
    if (length < 0) {
      Refuse(kValidation, std::string(name) + " is not Base64");
      return SecureBuffer();
    }
    bytes.Truncate(static_cast<size_t>(length));
    if (bytes.size() < least) Refuse(kValidation, std::string(name) + " has the wrong length");
    if (bytes.size() > most) Refuse(too_long, std::string(name) + (too_long == kValidation ? " has the wrong length" : " is longer than supported"));
    return bytes;
  }

  std::vector<uint8_t> PublicBase64(const Found& found, const char* name, size_t least, size_t most, bool required,
                                    const char* too_long = kValidation) {
    const SecureBuffer bytes = Base64(found, name, least, most, required, too_long);
    return {bytes.data(), bytes.data() + bytes.size()};
  }

 private:
  XksRefusal refusal_{nullptr, ""};
};

void ReadMetadata(const Members& members, XksOperation operation, XksBody& body, Check& check) {
  if (!members.has_metadata) {
    check.Refuse(kValidation, "requestMetadata is missing");
    return;
  }
  if (!members.metadata_is_object) {
    check.Refuse(kValidation, "requestMetadata is not an object");
    return;
  }
  XksRequestMetadata metadata;
  metadata.kms_request_id = check.RequiredText(members.request_id, "kmsRequestId");
  metadata.kms_operation = check.RequiredText(members.operation, "kmsOperation");
  metadata.aws_principal_arn = check.OptionalText(members.principal, "awsPrincipalArn");
  metadata.kms_key_arn = check.OptionalText(members.key_arn, "kmsKeyArn");
  metadata.aws_source_vpc = check.OptionalText(members.vpc, "awsSourceVpc");
  metadata.aws_source_vpce = check.OptionalText(members.vpce, "awsSourceVpce");
  metadata.kms_via_service = check.OptionalText(members.via, "kmsViaService");
  if (operation != XksOperation::kHealth && !metadata.aws_principal_arn) check.Refuse(kValidation, "awsPrincipalArn is missing");
  const bool uses_key = operation == XksOperation::kEncrypt || operation == XksOperation::kDecrypt;
  if (uses_key && !metadata.kms_key_arn) check.Refuse(kValidation, "kmsKeyArn is missing");
  body.metadata = std::move(metadata);
}

void ReadAlgorithm(const Members& members, Check& check) {
  const std::string algorithm = check.RequiredText(members.algorithm, "encryptionAlgorithm");
  if (!check.failed() && algorithm != "AES_GCM") check.Refuse(kUnsupported, "encryptionAlgorithm is not AES_GCM");
}

// len16(aad) || aad || len8(metadata) || metadata
std::vector<uint8_t> GcmAdditionalData(const std::vector<uint8_t>& aad, const uint8_t* metadata, size_t metadata_size) {
  std::vector<uint8_t> out;
  out.reserve(3 + aad.size() + metadata_size);
  out.push_back(static_cast<uint8_t>(aad.size() >> 8));
  out.push_back(static_cast<uint8_t>(aad.size()));
  out.insert(out.end(), aad.begin(), aad.end());
  out.push_back(static_cast<uint8_t>(metadata_size));
  out.insert(out.end(), metadata, metadata + metadata_size);
  return out;
}

Status MessageKey(KeyRef key, const uint8_t* binding, size_t binding_size, uint32_t version, const uint8_t* salt, SecureBuffer& out) {
  std::vector<uint8_t> input(kLabel.begin(), kLabel.end());
  input.push_back(static_cast<uint8_t>(binding_size >> 8));
  input.push_back(static_cast<uint8_t>(binding_size));
  input.insert(input.end(), binding, binding + binding_size);
  AppendU32(input, version);
  input.insert(input.end(), salt, salt + kSalt);
  Result<size_t> written = MacMessage(key, MacParameters{false, Digest::kSha256}, input.data(), input.size(), out.data(), out.size());
  return written.ok() ? Status() : written.status();
}

// Writes JSON members into a buffer of a size worked out beforehand.
class Writer {
 public:
  explicit Writer(uint8_t* out) : cursor_(out) {}
  void Text(std::string_view text) {
    memcpy(cursor_, text.data(), text.size());
    cursor_ += text.size();
  }
  void Base64(const uint8_t* data, size_t size) {
    EncodeBase64(data, size, cursor_);
    cursor_ += Base64Length(size);
  }
  uint8_t* cursor() const { return cursor_; }

 private:
  uint8_t* cursor_;
};

// One context a thread. Between requests it holds the schedule of the last message's key, which
// opens that one message only, in libcrypto's locked memory.
EVP_CIPHER_CTX* ScratchCipherContext() {
  static thread_local const EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
  return context.get();
}

bool Encipher(EVP_CIPHER_CTX* context, const SecureBuffer& message_key, const uint8_t* iv, const std::vector<uint8_t>& aad,
              const SecureBuffer& plain, uint8_t* out, uint8_t* tag) {
  int written = 0;
  int last = 0;
  return EVP_EncryptInit_ex(context, AesCipher(Row(CipherMode::kGcm), 32), nullptr, message_key.data(), iv) == 1 &&
         EVP_EncryptUpdate(context, nullptr, &written, aad.data(), static_cast<int>(aad.size())) == 1 &&
         (plain.empty() || EVP_EncryptUpdate(context, out, &written, plain.data(), static_cast<int>(plain.size())) == 1) &&
         EVP_EncryptFinal_ex(context, out + plain.size(), &last) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTag, tag) == 1;
}

// False for what does not authenticate and for what libcrypto refuses: they look alike from
// outside.
bool Decipher(EVP_CIPHER_CTX* context, const SecureBuffer& message_key, const uint8_t* iv, const std::vector<uint8_t>& aad,
              const uint8_t* ciphertext, size_t size, const uint8_t* tag, uint8_t* out) {
  int written = 0;
  int last = 0;
  const bool done = EVP_DecryptInit_ex(context, AesCipher(Row(CipherMode::kGcm), 32), nullptr, message_key.data(), iv) == 1 &&
                    EVP_DecryptUpdate(context, nullptr, &written, aad.data(), static_cast<int>(aad.size())) == 1 &&
                    (size == 0 || EVP_DecryptUpdate(context, out, &written, ciphertext, static_cast<int>(size)) == 1) &&
                    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTag, const_cast<uint8_t*>(tag)) == 1 &&
                    EVP_DecryptFinal_ex(context, out + size, &last) == 1;
  if (!done) (void)CryptoFailure("");
  return done;
}

}  // namespace

Status CiphertextDataIntegrityValue(const std::vector<uint8_t>& aad, const uint8_t* metadata, size_t metadata_size, const uint8_t* iv,
                                    size_t iv_size, const uint8_t* ciphertext, size_t ciphertext_size, const uint8_t* tag,
                                    size_t tag_size, uint8_t (&out)[32]) {
  EVP_MD_CTX* const context = ScratchDigestContext();
  unsigned length = 0;
  if (context == nullptr || EVP_DigestInit_ex(context, Row(Digest::kSha256).md(), nullptr) != 1 ||
      EVP_DigestUpdate(context, aad.data(), aad.size()) != 1 || EVP_DigestUpdate(context, metadata, metadata_size) != 1 ||
      EVP_DigestUpdate(context, iv, iv_size) != 1 || EVP_DigestUpdate(context, ciphertext, ciphertext_size) != 1 ||
      EVP_DigestUpdate(context, tag, tag_size) != 1 || EVP_DigestFinal_ex(context, out, &length) != 1) {
    return CryptoFailure("integrity value");
  }
  return {};
}

XksReading ReadXksBody(XksOperation operation, const uint8_t* data, size_t size) {
  Members members;
  if (const char* broken = ReadJsonObject(data, size, kMaxDepth, members)) return {nullptr, {kValidation, broken}};
  auto body = std::make_unique<XksBody>();
  Check check;
  if (!members.any) {
    body->empty = true;
    if (operation == XksOperation::kHealth) return {std::move(body), {nullptr, ""}};
  }
  ReadMetadata(members, operation, *body, check);
  if (operation == XksOperation::kEncrypt) {
    body->text = check.Base64(members.plaintext, "plaintext", 1, kMaxText, true, kUnsupported);
    ReadAlgorithm(members, check);
    body->aad = check.PublicBase64(members.aad, "additionalAuthenticatedData", 0, kMaxAad, false, kUnsupported);
    const std::optional<std::string> cdiv = check.OptionalText(members.cdiv, "ciphertextDataIntegrityValueAlgorithm");
    if (!check.failed() && cdiv && *cdiv != "SHA_256") check.Refuse(kUnsupported, "ciphertextDataIntegrityValueAlgorithm is not SHA_256");
    body->wants_cdiv = cdiv.has_value();
  } else if (operation == XksOperation::kDecrypt) {
    body->text = check.Base64(members.ciphertext, "ciphertext", 1, kMaxText, true, kUnsupported);
    ReadAlgorithm(members, check);
    body->aad = check.PublicBase64(members.aad, "additionalAuthenticatedData", 0, kMaxAad, false, kUnsupported);
    body->iv = check.PublicBase64(members.iv, "initializationVector", 12, 16, true);
    if (!check.failed() && body->iv.size() != 12 && body->iv.size() != 16) check.Refuse(kValidation, "initializationVector has the wrong length");
    body->tag = check.PublicBase64(members.tag, "authenticationTag", kTag, kTag, true);
    body->ciphertext_metadata = check.PublicBase64(members.ciphertext_metadata, "ciphertextMetadata", 0, kMaxMetadata, false);
    const std::vector<uint8_t>& metadata = body->ciphertext_metadata;
    if (metadata.size() == kOurMetadata && metadata[0] == kLayout) {
      body->key_version = static_cast<uint32_t>(metadata[1]) << 16 | static_cast<uint32_t>(metadata[2]) << 8 | metadata[3];
    }
  }
  if (check.failed()) return {nullptr, check.refusal()};
  return {std::move(body), {nullptr, ""}};
}

Result<std::vector<uint8_t>> XksEncrypt(const XksBody& body, KeyRef key, uint32_t key_version, const uint8_t* binding, size_t binding_size) {
  if (key_version == 0 || key_version > 0xffffff) return BadArgument("a key version has 1 to 24 bits");
  uint8_t metadata[kOurMetadata] = {kLayout, static_cast<uint8_t>(key_version >> 16), static_cast<uint8_t>(key_version >> 8),
                                    static_cast<uint8_t>(key_version)};
  uint8_t tag[kTag];
  uint8_t random[kSalt + kIv];
  {
    KeyUse sealing(key);
    if (!sealing) return BadKey();
    if (!sealing.is_data_key()) return WrongKeyType();
    DKE_RETURN_IF_ERROR(HedgedRandom(sealing->secret, body.text.data(), body.text.size(), random, sizeof random));
  }
  memcpy(metadata + 4, random, kSalt);
  const uint8_t* const iv = random + kSalt;
  Result<SecureBuffer> message_key = SecureBuffer::Make(32);
  if (!message_key.ok()) return message_key.status();
  DKE_RETURN_IF_ERROR(MessageKey(key, binding, binding_size, key_version, metadata + 4, message_key.value()));

  const std::vector<uint8_t> aad = GcmAdditionalData(body.aad, metadata, sizeof metadata);
  const size_t size = body.text.size();
  std::vector<uint8_t> ciphertext(size);
  EVP_CIPHER_CTX* const context = ScratchCipherContext();
  if (context == nullptr || !Encipher(context, message_key.value(), iv, aad, body.text, ciphertext.data(), tag)) return CryptoFailure("GCM");

  // The integrity value is of what was produced, and comes before the trial decryption: a fault
  // between the two shows.
  uint8_t cdiv[32];
  if (body.wants_cdiv) {
    DKE_RETURN_IF_ERROR(CiphertextDataIntegrityValue(body.aad, metadata, sizeof metadata, iv, kIv, ciphertext.data(), size, tag,
                                                     sizeof tag, cdiv));
  }
  Result<SecureBuffer> again = SecureBuffer::Make(size);
  if (!again.ok()) return again.status();
  if (!Decipher(context, message_key.value(), iv, aad, ciphertext.data(), size, tag, again.value().data()) ||
      CRYPTO_memcmp(again.value().data(), body.text.data(), size) != 0) {
    return Status(Code::kInternal, "what was encrypted does not decrypt to the same");
  }

  static constexpr std::string_view kCiphertext = "{\"ciphertext\":\"";
  static constexpr std::string_view kMetadata = "\",\"ciphertextMetadata\":\"";
  static constexpr std::string_view kIvName = "\",\"initializationVector\":\"";
  static constexpr std::string_view kTagName = "\",\"authenticationTag\":\"";
  static constexpr std::string_view kCdivName = "\",\"ciphertextDataIntegrityValue\":\"";
  static constexpr std::string_view kEnd = "\"}";
  std::vector<uint8_t> answer(kCiphertext.size() + Base64Length(size) + kMetadata.size() + Base64Length(sizeof metadata) + kIvName.size() +
                              Base64Length(kIv) + kTagName.size() + Base64Length(kTag) +
                              (body.wants_cdiv ? kCdivName.size() + Base64Length(sizeof cdiv) : 0) + kEnd.size());
  Writer writer(answer.data());
  writer.Text(kCiphertext);
  writer.Base64(ciphertext.data(), size);
  writer.Text(kMetadata);
  writer.Base64(metadata, sizeof metadata);
  writer.Text(kIvName);
  writer.Base64(iv, kIv);
  writer.Text(kTagName);
  writer.Base64(tag, sizeof tag);
  if (body.wants_cdiv) {
    writer.Text(kCdivName);
    writer.Base64(cdiv, sizeof cdiv);
  }
  writer.Text(kEnd);
  return answer;
}

Result<SecureBuffer> XksDecrypt(const XksBody& body, KeyRef key, const uint8_t* binding, size_t binding_size) {
  if (body.iv.size() != kIv || body.tag.size() != kTag || body.ciphertext_metadata.size() != kOurMetadata) return AuthenticationFailed();
  Result<SecureBuffer> message_key = SecureBuffer::Make(32);
  if (!message_key.ok()) return message_key.status();
  DKE_RETURN_IF_ERROR(MessageKey(key, binding, binding_size, body.key_version, body.ciphertext_metadata.data() + 4, message_key.value()));
  const std::vector<uint8_t> aad = GcmAdditionalData(body.aad, body.ciphertext_metadata.data(), body.ciphertext_metadata.size());
  const size_t size = body.text.size();
  Result<SecureBuffer> plain = SecureBuffer::Make(size);
  if (!plain.ok()) return plain.status();
  EVP_CIPHER_CTX* const context = ScratchCipherContext();
  if (context == nullptr) return CryptoFailure("GCM");
  if (!Decipher(context, message_key.value(), body.iv.data(), aad, body.text.data(), size, body.tag.data(), plain.value().data())) {
    return AuthenticationFailed();
  }
  static constexpr std::string_view kPlaintext = "{\"plaintext\":\"";
  static constexpr std::string_view kEnd = "\"}";
  Result<SecureBuffer> answer = SecureBuffer::Make(kPlaintext.size() + Base64Length(size) + kEnd.size());
  if (!answer.ok()) return answer;
  Writer writer(answer.value().data());
  writer.Text(kPlaintext);
  writer.Base64(plain.value().data(), size);
  writer.Text(kEnd);
  return answer;
}

}  // namespace dke
