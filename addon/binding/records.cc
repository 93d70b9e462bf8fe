// Key records, the root file, certificates (Core in open-core.ts: "records and roots").
#include "../core/public_key/certificate.h"
#include "../core/wrapping/key_record.h"
#include "../core/root/root_file.h"
#include "arguments.h"

namespace dke {
namespace {

void ReadId(const Arguments& arguments, napi_value value, uint8_t (&out)[16]) {
  const Bytes bytes = arguments.BytesOf(value);
  if (bytes.size != sizeof out) arguments.Refuse("an id has 16 bytes");
  memcpy(out, bytes.data, sizeof out);
}

uint32_t ReadU32(const Arguments& arguments, napi_value value) {
  return static_cast<uint32_t>(arguments.IntegerOf(value, 0, 0xffffffff));
}

RecordContext ReadContext(const Arguments& arguments, size_t index) {
  napi_value object = arguments.at(index);
  RecordContext context;
  ReadId(arguments, arguments.Member(object, "tenant"), context.tenant);
  ReadId(arguments, arguments.Member(object, "object"), context.object);
  context.version = ReadU32(arguments, arguments.Member(object, "version"));
  context.epoch = ReadU32(arguments, arguments.Member(object, "epoch"));
  context.record_class = arguments.TextOf(arguments.Member(object, "class"));
  const Bytes attributes = arguments.BytesOf(arguments.Member(object, "attributes"));
  context.attributes.assign(attributes.data, attributes.data + attributes.size);
  return context;
}

napi_value Seal(const Arguments& arguments) {
  return arguments.ReturnBuffer(arguments.Unwrap(SealRecord(arguments.Key(0), ReadContext(arguments, 1), arguments.Key(2))));
}

napi_value Open(const Arguments& arguments) {
  const Bytes record = arguments.ReadBytes(2);
  return arguments.ReturnNumber(
      static_cast<double>(arguments.Unwrap(OpenRecord(arguments.Key(0), ReadContext(arguments, 1), record.data, record.size))));
}

napi_value Reseal(const Arguments& arguments) {
  const Bytes record = arguments.ReadBytes(2);
  return arguments.ReturnBuffer(arguments.Unwrap(
      ResealRecord(arguments.Key(0), ReadContext(arguments, 1), record.data, record.size, arguments.Key(3), ReadContext(arguments, 4))));
}

napi_value Peek(const Arguments& arguments) {
  const Bytes record = arguments.ReadBytes(0);
  const RecordHead head = arguments.Unwrap(PeekRecord(record.data, record.size));
  napi_value object = arguments.NewObject();
  arguments.Set(object, "epoch", arguments.ReturnNumber(head.epoch));
  arguments.Set(object, "version", arguments.ReturnNumber(head.version));
  return object;
}

napi_value RootObject(const Arguments& arguments, const RootSlot& slot) {
  napi_value object = arguments.NewObject();
  arguments.Set(object, "epoch", arguments.ReturnNumber(slot.epoch));
  arguments.Set(object, "key", arguments.ReturnNumber(static_cast<double>(slot.key)));
  return object;
}

napi_value CreateRoot(const Arguments& arguments) { return RootObject(arguments, arguments.Unwrap(CreateRootFile(arguments.Text(0)))); }
napi_value RestoreRoot(const Arguments& arguments) {
  const RootSlot given{static_cast<uint32_t>(arguments.Integer(1, 1, 0xffffffff)), arguments.Key(2)};
  return RootObject(arguments, arguments.Unwrap(CreateRootFile(arguments.Text(0), given)));
}
napi_value AddEpoch(const Arguments& arguments) { return RootObject(arguments, arguments.Unwrap(AddRootEpoch(arguments.Text(0)))); }
napi_value TakeEpoch(const Arguments& arguments) {
  const RootSlot given{static_cast<uint32_t>(arguments.Integer(1, 1, 0xffffffff)), arguments.Key(2)};
  return RootObject(arguments, arguments.Unwrap(AddRootEpoch(arguments.Text(0), given)));
}
napi_value EraseEpoch(const Arguments& arguments) {
  arguments.Unwrap(EraseRootEpoch(arguments.Text(0), static_cast<uint32_t>(arguments.Integer(1, 0, 0xffffffff))));
  return nullptr;
}
napi_value SettleRoot(const Arguments& arguments) {
  arguments.Unwrap(SettleRootFile(arguments.Text(0)));
  return nullptr;
}
napi_value OpenRoot(const Arguments& arguments) {
  const std::vector<RootSlot> slots = arguments.Unwrap(OpenRootFile(arguments.Text(0)));
  napi_value object = arguments.NewObject();
  arguments.Set(object, "current", RootObject(arguments, slots[0]));
  if (slots.size() > 1) arguments.Set(object, "previous", RootObject(arguments, slots[1]));
  return object;
}

napi_value FileSystemObject(const Arguments& arguments) {
  const FileSystem system = arguments.Unwrap(FileSystemOf(arguments.Text(0)));
  napi_value object = arguments.NewObject();
  arguments.Set(object, "name", arguments.ReturnText(system.name));
  arguments.Set(object, "overwritesInPlace", arguments.ReturnBoolean(system.overwrites_in_place));
  return object;
}

napi_value Certificate(const Arguments& arguments) {
  napi_value object = arguments.at(0);
  napi_value list = arguments.Member(object, "names");
  uint32_t count = 0;
  if (list == nullptr || napi_get_array_length(arguments.env(), list, &count) != napi_ok || count > 100) {
    arguments.Refuse("names is an array of at most 100 names");
  }
  std::vector<std::string> names;
  for (uint32_t index = 0; index < count; index++) {
    napi_value name;
    napi_get_element(arguments.env(), list, index, &name);
    names.push_back(arguments.TextOf(name));
  }
  const std::string key_path = arguments.TextOf(arguments.Member(object, "keyPath"));
  const int days = static_cast<int>(arguments.IntegerOf(arguments.Member(object, "days"), 1, 3650));
  return arguments.ReturnText(arguments.Unwrap(CreateSelfSignedCertificate(key_path, names, days)));
}

}  // namespace

void RegisterRecords(Napi::Env env, Napi::Object exports) {
  Define<Seal>(env, exports, "sealRecord");
  Define<Open>(env, exports, "openRecord");
  Define<Reseal>(env, exports, "resealRecord");
  Define<Peek>(env, exports, "peekRecord");
  Define<CreateRoot>(env, exports, "createRootFile");
  Define<OpenRoot>(env, exports, "openRootFile");
  Define<AddEpoch>(env, exports, "addRootEpoch");
  Define<RestoreRoot>(env, exports, "restoreRootFile");
  Define<TakeEpoch>(env, exports, "takeRootEpoch");
  Define<EraseEpoch>(env, exports, "eraseRootEpoch");
  Define<SettleRoot>(env, exports, "settleRootFile");
  Define<FileSystemObject>(env, exports, "fileSystem");
  Define<Certificate>(env, exports, "createSelfSignedCertificate");
}

}  // namespace dke
