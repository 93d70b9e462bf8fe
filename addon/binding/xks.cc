// SigV4 and the XKS bodies (Core in open-core.ts: "XKS"). A parsed request stays here, behind a
// number, until it is used or released.
#include "../core/xks/xks_body.h"

#include <mutex>
#include <unordered_map>

#include "../core/xks/sigv4_keys.h"
#include "arguments.h"

namespace dke {
namespace {

struct Bodies {
  std::mutex mutex;
  struct Waiting {
    std::unique_ptr<XksBody> body;
    Owner owner;
  };
  std::unordered_map<uint64_t, Waiting> waiting;
  uint64_t next = 1;
};
Bodies& Parsed() {
  static Bodies* bodies = new Bodies;
  return *bodies;
}

std::unique_ptr<XksBody> Take(const Arguments& arguments, size_t index) {
  const uint64_t number = static_cast<uint64_t>(arguments.Integer(index, 0, int64_t{1} << 53));
  Bodies& bodies = Parsed();
  std::lock_guard<std::mutex> lock(bodies.mutex);
  auto found = bodies.waiting.find(number);
  if (found == bodies.waiting.end()) return nullptr;
  std::unique_ptr<XksBody> body = std::move(found->second.body);
  bodies.waiting.erase(found);
  return body;
}

std::unique_ptr<XksBody> TakeOrRefuse(const Arguments& arguments) {
  std::unique_ptr<XksBody> body = Take(arguments, 0);
  if (body == nullptr) arguments.Refuse("no such request body");
  return body;
}

napi_value SigningKey(const Arguments& arguments) {
  return arguments.ReturnNumber(static_cast<double>(
      arguments.Unwrap(SigV4SigningKey(arguments.Key(0), arguments.Text(1), arguments.Text(2), arguments.Text(3)))));
}

napi_value VerifySignature(const Arguments& arguments) {
  const std::string head = arguments.Latin1(1);
  const Bytes body = arguments.ReadBytes(2);
  const std::string scope = arguments.Latin1(3);
  char signature[80];
  const size_t signature_length = arguments.ShortText(arguments.at(4), signature, sizeof signature);
  char stated[80];
  const size_t stated_length = arguments.ShortText(arguments.at(5), stated, sizeof stated);
  const SigV4Request request{head, body.data, body.size, scope, {stated, stated_length}, {signature, signature_length}};
  return arguments.ReturnBoolean(arguments.Unwrap(SigV4Verify(arguments.Key(0), request)));
}

napi_value SecretAccessKey(const Arguments& arguments) {
  SecureBuffer characters = arguments.Unwrap(MakeSecretAccessKey());
  napi_value object = arguments.NewObject();
  arguments.Set(object, "characters", arguments.ReturnBuffer(characters.data(), characters.size()));
  const KeyRef key = arguments.Unwrap(AddSecretKey(KeyKind::kGeneric, std::move(characters)));
  arguments.Set(object, "key", arguments.ReturnNumber(static_cast<double>(key)));
  return object;
}

XksOperation ReadOperation(const Arguments& arguments) {
  char name[12];
  const std::string_view text(name, arguments.ShortText(arguments.at(0), name, sizeof name));
  if (text == "health") return XksOperation::kHealth;
  if (text == "metadata") return XksOperation::kMetadata;
  if (text == "encrypt") return XksOperation::kEncrypt;
  if (text == "decrypt") return XksOperation::kDecrypt;
  arguments.Refuse("no such operation");
}

// open-core.ts makes objects of these arrays: naming members from here costs more than everything
// else in this call.
napi_value Parse(const Arguments& arguments) {
  const Bytes bytes = arguments.ReadBytes(1);
  XksReading reading = ReadXksBody(ReadOperation(arguments), bytes.data, bytes.size);
  if (reading.body == nullptr) {
    return arguments.ReturnArray({arguments.ReturnText(reading.refusal.error_name), arguments.ReturnText(reading.refusal.message)});
  }
  const bool empty = reading.body->empty;
  const uint32_t key_version = reading.body->key_version;
  const std::optional<XksRequestMetadata> metadata = std::move(reading.body->metadata);
  Bodies& bodies = Parsed();
  uint64_t number;
  {
    std::lock_guard<std::mutex> lock(bodies.mutex);
    number = bodies.next++;
    bodies.waiting.emplace(number, Bodies::Waiting{std::move(reading.body), ThisThread()});
  }
  const napi_value body = arguments.ReturnNumber(static_cast<double>(number));
  const napi_value version = arguments.ReturnNumber(key_version);
  if (!metadata) return arguments.ReturnArray({body, version, arguments.ReturnBoolean(empty)});
  const auto optional = [&](const std::optional<std::string>& text) -> napi_value { return text ? arguments.ReturnText(*text) : nullptr; };
  return arguments.ReturnArray({body, version, arguments.ReturnBoolean(empty), arguments.ReturnText(metadata->kms_request_id),
                                arguments.ReturnText(metadata->kms_operation), optional(metadata->aws_principal_arn),
                                optional(metadata->kms_key_arn), optional(metadata->aws_source_vpc), optional(metadata->aws_source_vpce),
                                optional(metadata->kms_via_service)});
}

napi_value Encrypt(const Arguments& arguments) {
  const std::unique_ptr<XksBody> body = TakeOrRefuse(arguments);
  const Bytes binding = arguments.ReadBytes(3);
  const uint32_t version = static_cast<uint32_t>(arguments.Integer(2, 1, 0xffffff));
  return arguments.ReturnAscii(arguments.Unwrap(XksEncrypt(*body, arguments.Key(1), version, binding.data, binding.size)));
}

napi_value Decrypt(const Arguments& arguments) {
  const std::unique_ptr<XksBody> body = TakeOrRefuse(arguments);
  const Bytes binding = arguments.ReadBytes(2);
  const SecureBuffer answer = arguments.Unwrap(XksDecrypt(*body, arguments.Key(1), binding.data, binding.size));
  return arguments.ReturnBuffer(answer.data(), answer.size());
}

napi_value ReleaseBody(const Arguments& arguments) {
  (void)Take(arguments, 0);
  return nullptr;
}

}  // namespace

void ReleaseBodies() {
  Bodies& bodies = Parsed();
  std::lock_guard<std::mutex> lock(bodies.mutex);
  for (auto entry = bodies.waiting.begin(); entry != bodies.waiting.end();) {
    entry = entry->second.owner == ThisThread() ? bodies.waiting.erase(entry) : std::next(entry);
  }
}

void RegisterXks(Napi::Env env, Napi::Object exports) {
  Define<SigningKey>(env, exports, "sigv4SigningKey");
  Define<VerifySignature>(env, exports, "sigv4Verify");
  Define<SecretAccessKey>(env, exports, "generateSecretAccessKey");
  Define<Parse>(env, exports, "xksParse");
  Define<Encrypt>(env, exports, "xksEncrypt");
  Define<Decrypt>(env, exports, "xksDecrypt");
  Define<ReleaseBody>(env, exports, "xksRelease");
}

}  // namespace dke
