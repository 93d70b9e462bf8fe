// Ciphers, digests and MACs, whole and in pieces (Core in open-core.ts: "one-shot ciphers",
// "multi-part", "digests, macs").
#include "../core/ciphers/block_cipher.h"
#include "../core/digests/digest.h"
#include "../core/digests/mac.h"
#include "../core/ciphers/part_state.h"
#include "arguments.h"

namespace dke {
namespace {

MacParameters ReadMac(const Arguments& arguments, size_t index) { return MacOf(arguments, arguments.at(index)); }

template <typename T>
T& Find(const Arguments& arguments, OperationType type) {
  Operation* operation = FindOperation(arguments.Running(0), type);
  if (operation == nullptr) arguments.Refuse("no such operation");
  return *static_cast<T*>(operation);
}

template <typename T>
napi_value Begin(const Arguments& arguments, Result<std::unique_ptr<T>> operation) {
  const OperationRef ref = AddOperation(arguments.Unwrap(std::move(operation)));
  if (ref == 0) Fail(arguments.env(), Status(Code::kInternal, "too many operations at once"));
  return arguments.ReturnNumber(static_cast<double>(ref));
}

// A final call ends its operation, unless the caller has only brought too short a buffer.
napi_value End(const Arguments& arguments, Result<size_t> written) {
  if (written.ok() || written.status().code() != Code::kBufferTooSmall) DropOperation(arguments.Running(0));
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(std::move(written))));
}

napi_value Count(const Arguments& arguments, Result<size_t> written) {
  return arguments.ReturnNumber(static_cast<double>(arguments.Unwrap(std::move(written))));
}

napi_value Cipher(const Arguments& arguments) {
  const CipherParameters parameters = ReadCipher(arguments, 2);
  const Bytes input = arguments.ReadBytes(3);
  const Bytes output = arguments.ReadBytes(4);
  return Count(arguments, CipherMessage(arguments.Key(0), arguments.ReadDirection(1), parameters, input.data, input.size, output.data,
                                        output.size));
}

napi_value Length(const Arguments& arguments) {
  const CipherParameters parameters = ReadCipher(arguments, 1);
  const size_t input = static_cast<size_t>(arguments.Integer(2, 0, int64_t{1} << 40));
  return arguments.ReturnNumber(static_cast<double>(CipherLength(arguments.ReadDirection(0), parameters, input)));
}

napi_value CipherBegin(const Arguments& arguments) {
  return Begin(arguments, CipherOperation::Begin(arguments.Key(0), arguments.ReadDirection(1), ReadCipher(arguments, 2)));
}
napi_value CipherBeginUnchecked(const Arguments& arguments) {
  return Begin(arguments, CipherOperation::Begin(arguments.Key(0), arguments.ReadDirection(1), ReadCipher(arguments, 2),
                                                 CipherOperation::Unchecked::kGivenOut));
}
napi_value CipherCheck(const Arguments& arguments) {
  Status checked = Find<CipherOperation>(arguments, OperationType::kCipher).Check();
  if (!checked.ok()) DropOperation(arguments.Running(0));
  arguments.Unwrap(std::move(checked));
  return nullptr;
}
napi_value CipherTake(const Arguments& arguments) {
  const Bytes output = arguments.ReadBytes(1);
  return Count(arguments, Find<CipherOperation>(arguments, OperationType::kCipher).Take(output.data, output.size));
}
napi_value CipherOneShot(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(1);
  const Bytes output = arguments.ReadBytes(2);
  return End(arguments, Find<CipherOperation>(arguments, OperationType::kCipher).OneShot(input.data, input.size, output.data, output.size));
}
napi_value CipherOneShotLength(const Arguments& arguments) {
  const size_t input = static_cast<size_t>(arguments.Integer(1, 0, int64_t{1} << 40));
  return arguments.ReturnNumber(static_cast<double>(Find<CipherOperation>(arguments, OperationType::kCipher).OneShotLength(input)));
}
napi_value CipherUpdateLength(const Arguments& arguments) {
  const size_t input = static_cast<size_t>(arguments.Integer(1, 0, int64_t{1} << 40));
  return arguments.ReturnNumber(static_cast<double>(Find<CipherOperation>(arguments, OperationType::kCipher).UpdateLength(input)));
}
napi_value CipherUpdate(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(1);
  const Bytes output = arguments.ReadBytes(2);
  return Count(arguments, Find<CipherOperation>(arguments, OperationType::kCipher).Update(input.data, input.size, output.data, output.size));
}
napi_value CipherFinalLength(const Arguments& arguments) {
  return arguments.ReturnNumber(static_cast<double>(Find<CipherOperation>(arguments, OperationType::kCipher).FinalLength()));
}
napi_value CipherFinal(const Arguments& arguments) {
  const Bytes output = arguments.ReadBytes(1);
  return End(arguments, Find<CipherOperation>(arguments, OperationType::kCipher).Final(output.data, output.size));
}

napi_value DigestBegin(const Arguments& arguments) { return Begin(arguments, DigestOperation::Begin(arguments.ReadDigest(0))); }
napi_value DigestUpdate(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(1);
  arguments.Unwrap(Find<DigestOperation>(arguments, OperationType::kDigest).Update(input.data, input.size));
  return nullptr;
}
napi_value DigestFinal(const Arguments& arguments) {
  const Bytes output = arguments.ReadBytes(1);
  return End(arguments, Find<DigestOperation>(arguments, OperationType::kDigest).Final(output.data, output.size));
}
napi_value DigestWhole(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(1);
  const Bytes output = arguments.ReadBytes(2);
  return Count(arguments, DigestMessage(arguments.ReadDigest(0), input.data, input.size, output.data, output.size));
}

napi_value MacBegin(const Arguments& arguments) { return Begin(arguments, MacOperation::Begin(arguments.Key(0), ReadMac(arguments, 1))); }
napi_value MacUpdate(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(1);
  arguments.Unwrap(Find<MacOperation>(arguments, OperationType::kMac).Update(input.data, input.size));
  return nullptr;
}
napi_value MacFinal(const Arguments& arguments) {
  const Bytes output = arguments.ReadBytes(1);
  return End(arguments, Find<MacOperation>(arguments, OperationType::kMac).Final(output.data, output.size));
}
napi_value MacWhole(const Arguments& arguments) {
  const Bytes input = arguments.ReadBytes(2);
  const Bytes output = arguments.ReadBytes(3);
  return Count(arguments, MacMessage(arguments.Key(0), ReadMac(arguments, 1), input.data, input.size, output.data, output.size));
}

MessagePart ReadPart(const Arguments& arguments, size_t index) {
  napi_value object = arguments.at(index);
  const Bytes state = arguments.BytesOf(arguments.Member(object, "state"));
  const Bytes input = arguments.BytesOf(arguments.Member(object, "input"));
  return {state.data, state.size, arguments.BooleanOf(arguments.Member(object, "last")), input.data, input.size};
}

// The key of the service that seals the states of this message.
ServiceKey PartKey(const Arguments& arguments, size_t index) {
  napi_value object = arguments.at(index);
  const KeyRef kek = static_cast<KeyRef>(arguments.IntegerOf(arguments.Member(object, "kek"), 0, int64_t{1} << 53));
  const Bytes owner = arguments.BytesOf(arguments.Member(object, "owner"));
  return arguments.Unwrap(ServiceKey::Of(kek, Label::kMessagePart, owner.data, owner.size));
}

napi_value OnePartOfCipher(const Arguments& arguments) {
  char name[8];
  const std::string_view use(name, arguments.ShortText(arguments.at(1), name, sizeof name));
  const bool known = use == "encrypt" || use == "decrypt" || use == "check";
  if (!known) arguments.Refuse("a part is encrypted, decrypted or checked");
  const PartUse part_use = use == "encrypt" ? PartUse::kEncrypt : use == "decrypt" ? PartUse::kDecrypt : PartUse::kCheck;
  const CipherParameters parameters = ReadCipher(arguments, 2);
  const MessagePart part = ReadPart(arguments, 3);
  const Bytes output = arguments.ReadBytes(4);
  const ServiceKey service = PartKey(arguments, 3);
  const CipherPartDone done =
      arguments.Unwrap(CipherPart(arguments.Key(0), service, part_use, parameters, part, output.data, output.size));
  return arguments.ReturnArray({arguments.ReturnBuffer(done.state), arguments.ReturnNumber(static_cast<double>(done.at))});
}

napi_value OnePartOfMac(const Arguments& arguments) {
  return arguments.ReturnBuffer(arguments.Unwrap(MacPart(arguments.Key(0), PartKey(arguments, 2), ReadMac(arguments, 1), ReadPart(arguments, 2))));
}

napi_value Cancel(const Arguments& arguments) {
  DropOperation(arguments.Running(0));
  return nullptr;
}

}  // namespace

void RegisterCiphers(Napi::Env env, Napi::Object exports) {
  Define<Cipher>(env, exports, "cipher");
  Define<Length>(env, exports, "cipherLength");
  Define<CipherBegin>(env, exports, "cipherBegin");
  Define<CipherBeginUnchecked>(env, exports, "cipherBeginUnchecked");
  Define<CipherCheck>(env, exports, "cipherCheck");
  Define<CipherTake>(env, exports, "cipherTake");
  Define<CipherOneShot>(env, exports, "cipherOneShot");
  Define<CipherOneShotLength>(env, exports, "cipherOneShotLength");
  Define<CipherUpdateLength>(env, exports, "cipherUpdateLength");
  Define<CipherUpdate>(env, exports, "cipherUpdate");
  Define<CipherFinalLength>(env, exports, "cipherFinalLength");
  Define<CipherFinal>(env, exports, "cipherFinal");
  Define<DigestBegin>(env, exports, "digestBegin");
  Define<DigestUpdate>(env, exports, "digestUpdate");
  Define<DigestFinal>(env, exports, "digestFinal");
  Define<DigestWhole>(env, exports, "digest");
  Define<MacBegin>(env, exports, "macBegin");
  Define<MacUpdate>(env, exports, "macUpdate");
  Define<MacFinal>(env, exports, "macFinal");
  Define<MacWhole>(env, exports, "mac");
  Define<OnePartOfCipher>(env, exports, "cipherPart");
  Define<OnePartOfMac>(env, exports, "macPart");
  Define<Cancel>(env, exports, "operationCancel");
}

}  // namespace dke
