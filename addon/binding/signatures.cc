// Signatures and OAEP (Core in core.ts: "digests, macs, signatures").
#include "../core/signature.h"

#include "arguments.h"
#include "parameters.h"

namespace dke {
namespace {

SignatureParameters ReadSignature(const Arguments& arguments, size_t index) {
  napi_value object = arguments.at(index);
  char name[16];
  const std::string_view algorithm(name, arguments.ShortText(arguments.Member(object, "algorithm"), name, sizeof name));
  SignatureParameters parameters{};
  if (algorithm == "rsa-pkcs1") {
    parameters.algorithm = SignatureAlgorithm::kRsaPkcs1;
  } else if (algorithm == "rsa-pss") {
    parameters.algorithm = SignatureAlgorithm::kRsaPss;
    parameters.mgf_digest = arguments.DigestOf(arguments.Member(object, "mgfDigest"));
    parameters.salt_length = static_cast<int>(arguments.IntegerOf(arguments.Member(object, "saltLength"), 0, 4096));
    if (napi_value prehashed = arguments.Member(object, "prehashed")) parameters.prehashed = arguments.BooleanOf(prehashed);
  } else if (algorithm == "ecdsa") {
    parameters.algorithm = SignatureAlgorithm::kEcdsa;
    char encoding[8];
    const std::string_view text(encoding, arguments.ShortText(arguments.Member(object, "encoding"), encoding, sizeof encoding));
    if (text != "p1363" && text != "der") arguments.Refuse("an ECDSA encoding is 'p1363' or 'der'");
    parameters.der = text == "der";
  } else if (algorithm == "ed25519") {
    parameters.algorithm = SignatureAlgorithm::kEd25519;
    return parameters;
  } else {
    arguments.Refuse("no such signature algorithm");
  }
  if (napi_value digest = arguments.Member(object, "digest")) parameters.digest = arguments.DigestOf(digest);
  return parameters;
}

napi_value SignMessage(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  return arguments.ReturnBuffer(arguments.Unwrap(Sign(arguments.Key(0), ReadSignature(arguments, 1), input.data, input.size)));
}

napi_value VerifyMessage(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  const Bytes signature = arguments.ReadBytes(3);
  return arguments.ReturnBoolean(arguments.Unwrap(
      Verify(arguments.Key(0), ReadSignature(arguments, 1), input.data, input.size, signature.data, signature.size)));
}

napi_value RecoverMessage(const Arguments& arguments) {
  const Bytes signature = arguments.ReadBytes(1);
  return arguments.ReturnBuffer(arguments.Unwrap(Recover(arguments.Key(0), signature.data, signature.size)));
}

napi_value EncryptOaep(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  return arguments.ReturnBuffer(arguments.Unwrap(OaepEncrypt(arguments.Key(0), ReadOaep(arguments, 1), input.data, input.size)));
}

napi_value DecryptOaep(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  const SecureBuffer plain = arguments.Unwrap(OaepDecrypt(arguments.Key(0), ReadOaep(arguments, 1), input.data, input.size));
  return arguments.ReturnBuffer(plain.data(), plain.size());
}

}  // namespace

void RegisterSignatures(Napi::Env env, Napi::Object exports) {
  Define<SignMessage>(env, exports, "sign");
  Define<VerifyMessage>(env, exports, "verify");
  Define<RecoverMessage>(env, exports, "recover");
  Define<EncryptOaep>(env, exports, "oaepEncrypt");
  Define<DecryptOaep>(env, exports, "oaepDecrypt");
}

}  // namespace dke
