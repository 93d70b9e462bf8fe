// Key records, format 1, against the vectors of addon/FORMAT.md: exact bytes both ways, and nothing
// else opens.
#include "wrapping/key_record.h"

#include <openssl/x509.h>

#include <algorithm>

#include "support.h"

namespace dke {
namespace {

RecordContext ContextOf(const Vector& vector) {
  RecordContext context;
  memcpy(context.tenant, vector.Bytes("tenant").data(), 16);
  memcpy(context.object, vector.Bytes("object").data(), 16);
  context.version = vector.Number("version");
  context.epoch = vector.Number("epoch");
  context.record_class = vector.Text("class");
  context.attributes = vector.Bytes("attributes");
  return context;
}

KeyRef KeyOf(const Vector& vector) {
  const KeyKind kind = static_cast<KeyKind>(vector.Number("kind"));
  const ByteVector value = vector.Bytes("value");
  return Row(kind).secret ? Secret(kind, value) : Good(ImportPrivateKey(value.data(), value.size()));
}

KeyRef KekOf(const Vector& vector) { return Secret(KeyKind::kKek, vector.Bytes("kek")); }

const char* const kVectors[] = {"record aes", "record kek", "record generic", "record ed25519"};

TEST(SealingWithTheGivenSaltGivesTheDocumentsBytes) {
  for (const char* name : kVectors) {
    const Vector vector(name);
    uint8_t salt[kRecordSalt];
    memcpy(salt, vector.Bytes("salt").data(), sizeof salt);
    AssertBytes(Good(SealRecordWithSalt(KekOf(vector), ContextOf(vector), KeyOf(vector), salt)), vector.Bytes("record"));
  }
}

TEST(TheDocumentsRecordsGiveTheirKeysBack) {
  for (const char* name : kVectors) {
    const Vector vector(name);
    const ByteVector record = vector.Bytes("record");
    const KeyRef key = Good(OpenRecord(KekOf(vector), ContextOf(vector), record.data(), record.size()));
    AssertBytes(ValueOf(key), vector.Bytes("value"));
    assert_int_equal(static_cast<int>(Good(DescribeKey(key)).kind), vector.Number("kind"));
    const RecordHead head = Good(PeekRecord(record.data(), record.size()));
    assert_int_equal(head.epoch, vector.Number("epoch"));
    assert_int_equal(head.version, vector.Number("version"));
  }
}

TEST(EveryChangedByteIsRefused) {
  for (const char* name : kVectors) {
    const Vector vector(name);
    const KeyRef kek = KekOf(vector);
    const RecordContext context = ContextOf(vector);
    const ByteVector record = vector.Bytes("record");
    for (size_t at = 0; at < record.size(); at++) {
      for (int change = 1; change < 256; change++) {
        ByteVector changed = record;
        changed[at] = static_cast<uint8_t>(changed[at] ^ change);
        // Magic, suite and flags say what cannot be read; everything else does not authenticate.
        Refused(OpenRecord(kek, context, changed.data(), changed.size()), at < 6 ? Code::kFormat : Code::kAuthenticationFailed);
      }
    }
  }
}

TEST(EveryOtherLengthIsRefused) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  const RecordContext context = ContextOf(vector);
  ByteVector record = vector.Bytes("record");
  const size_t size = record.size();
  for (size_t length = 0; length < size; length++) {
    // Copied, so that a sanitizer sees a read beyond the end.
    const ByteVector cut(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(length));
    Refused(OpenRecord(kek, context, cut.data(), cut.size()), length < 122 + 2 + 16 ? Code::kFormat : Code::kAuthenticationFailed);
  }
  record.push_back(0);
  Refused(OpenRecord(kek, context, record.data(), record.size()), Code::kAuthenticationFailed);
}

TEST(AnUnknownFormatOrSuiteSaysSo) {
  ByteVector record = Vector("record aes").Bytes("record");
  record[3] = '2';
  const Result<RecordHead> format = PeekRecord(record.data(), record.size());
  Refused(format, Code::kFormat);
  assert_non_null(strstr(format.status().message().c_str(), "format that this version does not know"));
  record[3] = '1';
  record[4] = 2;
  const Result<RecordHead> suite = PeekRecord(record.data(), record.size());
  Refused(suite, Code::kFormat);
  assert_non_null(strstr(suite.status().message().c_str(), "suite that this version does not know"));
  record[0] = 'X';
  const Result<RecordHead> none = PeekRecord(record.data(), record.size());
  Refused(none, Code::kFormat);
  assert_string_equal(none.status().message().c_str(), "this is not a key record");
}

TEST(EveryBoundFieldIsBound) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  const ByteVector record = vector.Bytes("record");
  const auto refused = [&](auto change) {
    RecordContext context = ContextOf(vector);
    change(context);
    Refused(OpenRecord(kek, context, record.data(), record.size()), Code::kAuthenticationFailed);
  };
  for (size_t at = 0; at < 16; at++) {
    refused([at](RecordContext& context) { context.tenant[at] ^= 1; });
    refused([at](RecordContext& context) { context.object[at] ^= 1; });
  }
  refused([](RecordContext& context) { std::swap(context.tenant, context.object); });
  refused([](RecordContext& context) { context.version++; });
  refused([](RecordContext& context) { context.epoch++; });
  refused([](RecordContext& context) { std::swap(context.version, context.epoch); });
  refused([](RecordContext& context) { context.record_class = "sealed-copy"; });
  refused([](RecordContext& context) { context.record_class += '\0'; });
  refused([](RecordContext& context) { context.attributes.clear(); });
  refused([](RecordContext& context) { context.attributes.push_back(0); });
  // The end of one field is not the beginning of the next one.
  refused([](RecordContext& context) {
    context.attributes.insert(context.attributes.begin(), static_cast<uint8_t>(context.record_class.back()));
    context.record_class.pop_back();
  });
  for (size_t at = 0; at < vector.Bytes("attributes").size(); at++) {
    refused([at](RecordContext& context) { context.attributes[at] ^= 0x20; });
  }
}

TEST(OnlyTheKekThatSealedOpens) {
  const Vector vector("record aes");
  const RecordContext context = ContextOf(vector);
  const ByteVector record = vector.Bytes("record");
  for (size_t at = 0; at < 32; at++) {
    ByteVector value = vector.Bytes("kek");
    value[at] ^= 1;
    Refused(OpenRecord(Secret(KeyKind::kKek, value), context, record.data(), record.size()), Code::kAuthenticationFailed);
  }
  // A data key with the very bytes of the KEK is not a KEK.
  Refused(OpenRecord(Secret(KeyKind::kAes, vector.Bytes("kek")), context, record.data(), record.size()), Code::kKeyType);
  const KeyRef released = KekOf(vector);
  ReleaseKey(released);
  Refused(OpenRecord(released, context, record.data(), record.size()), Code::kBadKey);
  Refused(SealRecord(released, context, KeyOf(vector)), Code::kBadKey);
}

TEST(EachSealHasASaltOfItsOwn) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  const KeyRef key = KeyOf(vector);
  const ByteVector first = Good(SealRecord(kek, ContextOf(vector), key));
  const ByteVector second = Good(SealRecord(kek, ContextOf(vector), key));
  assert_int_equal(first.size(), 171);
  assert_memory_equal(first.data(), second.data(), 46);
  // Salt, nonce, commitment and ciphertext have nothing in common.
  assert_memory_not_equal(&first[46], &second[46], 32);
  assert_memory_not_equal(&first[78], &second[78], 12);
  assert_memory_not_equal(&first[90], &second[90], 32);
  assert_memory_not_equal(&first[122], &second[122], 33);
}

TEST(EveryKindOfKeyComesBack) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  const RecordContext context = ContextOf(vector);
  const KeyRef keys[] = {
      Good(GenerateAes(128)),           Good(GenerateAes(192)),    Good(GenerateAes(256)),    Good(GenerateSecret(KeyKind::kGeneric, 1)),
      Good(GenerateSecret(KeyKind::kGeneric, 4096)), Good(GenerateSecret(KeyKind::kKek, 32)), Good(GenerateRsa(2048)), Good(GenerateEc(Curve::kP256)),
      Good(GenerateEc(Curve::kP384)),   Good(GenerateEc(Curve::kP521)), Good(GenerateEc(Curve::kEd25519)),
  };
  for (const KeyRef key : keys) {
    const ByteVector record = Good(SealRecord(kek, context, key));
    const KeyRef back = Good(OpenRecord(kek, context, record.data(), record.size()));
    assert_int_equal(static_cast<int>(Good(DescribeKey(back)).kind), static_cast<int>(Good(DescribeKey(key)).kind));
    assert_int_equal(Good(DescribeKey(back)).bits, Good(DescribeKey(key)).bits);
    AssertBytes(ValueOf(back), ValueOf(key));
  }
}

TEST(APublicKeyIsNotSealed) {
  const Vector vector("record aes");
  const ByteVector spki = Good(ExportPublicKey(Good(GenerateEc(Curve::kEd25519))));
  const KeyRef key = Good(ImportPublicKey(spki.data(), spki.size()));
  Refused(SealRecord(KekOf(vector), ContextOf(vector), key), Code::kKeyType);
}

TEST(TheClassHasOneTo255Bytes) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  RecordContext context = ContextOf(vector);
  for (const size_t length : {size_t{0}, size_t{1}, size_t{255}, size_t{256}}) {
    context.record_class = std::string(length, 'c');
    const Result<ByteVector> sealed = SealRecord(kek, context, KeyOf(vector));
    if (length == 0 || length == 256) {
      Refused(sealed, Code::kBadArgument);
    } else {
      Good(OpenRecord(kek, context, sealed.value().data(), sealed.value().size()));
    }
  }
}

// An EC pair whose public half belongs to another key: an import refuses it, because its check does
// the arithmetic.
ByteVector MismatchedPair() {
  ByteVector first = ValueOf(Good(GenerateEc(Curve::kP256)));
  const ByteVector second = ValueOf(Good(GenerateEc(Curve::kP256)));
  // PKCS#8 of a P-256 key ends with the 64 bytes of its public point.
  std::copy(second.end() - 64, second.end(), first.end() - 64);
  return first;
}

KeyRef WithoutCheck(const ByteVector& pkcs8) {
  const uint8_t* cursor = pkcs8.data();
  PKCS8_PRIV_KEY_INFO* info = d2i_PKCS8_PRIV_KEY_INFO(nullptr, &cursor, static_cast<long>(pkcs8.size()));
  EvpPkeyPtr pkey(EVP_PKCS82PKEY(info));
  PKCS8_PRIV_KEY_INFO_free(info);
  return Good(AddPkey(std::move(pkey), true));
}

TEST(ARecordThatAuthenticatesOpensWithoutAnotherCheckOfItsKey) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  const RecordContext context = ContextOf(vector);
  const ByteVector pair = MismatchedPair();
  Refused(ImportPrivateKey(pair.data(), pair.size()), Code::kBadArgument);
  const ByteVector record = Good(SealRecord(kek, context, WithoutCheck(pair)));
  AssertBytes(ValueOf(Good(OpenRecord(kek, context, record.data(), record.size()))), pair);
}

TEST(ResealingMovesTheKeyToTheOtherKekAndContext) {
  for (const char* name : kVectors) {
    const Vector vector(name);
    const KeyRef from = KekOf(vector);
    const KeyRef to = Good(GenerateSecret(KeyKind::kKek, 32));
    const RecordContext was = ContextOf(vector);
    RecordContext becomes = was;
    becomes.epoch++;
    becomes.record_class = "other-copy";
    const ByteVector record = vector.Bytes("record");
    const ByteVector moved = Good(ResealRecord(from, was, record.data(), record.size(), to, becomes));
    assert_int_equal(moved.size(), record.size());
    assert_memory_not_equal(&moved[46], &record[46], kRecordSalt);
    const KeyRef key = Good(OpenRecord(to, becomes, moved.data(), moved.size()));
    AssertBytes(ValueOf(key), vector.Bytes("value"));
    assert_int_equal(static_cast<int>(Good(DescribeKey(key)).kind), vector.Number("kind"));
    Refused(OpenRecord(from, becomes, moved.data(), moved.size()), Code::kAuthenticationFailed);
    Refused(OpenRecord(to, was, moved.data(), moved.size()), Code::kAuthenticationFailed);
  }
}

TEST(ResealingDoesNoArithmeticOnTheKey) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  const RecordContext context = ContextOf(vector);
  const ByteVector pair = MismatchedPair();
  const ByteVector record = Good(SealRecord(kek, context, WithoutCheck(pair)));
  const size_t keys = KeyCount();
  const ByteVector moved = Good(ResealRecord(kek, context, record.data(), record.size(), kek, context));
  assert_int_equal(KeyCount(), keys);
  AssertBytes(ValueOf(Good(OpenRecord(kek, context, moved.data(), moved.size()))), pair);
}

TEST(ResealingRefusesWhatDoesNotOpen) {
  for (const char* name : kVectors) {
    const Vector vector(name);
    const KeyRef kek = KekOf(vector);
    const RecordContext context = ContextOf(vector);
    const ByteVector record = vector.Bytes("record");
    for (size_t at = 0; at < record.size(); at++) {
      ByteVector changed = record;
      changed[at] ^= 1;
      Refused(ResealRecord(kek, context, changed.data(), changed.size(), kek, context), at < 6 ? Code::kFormat : Code::kAuthenticationFailed);
    }
    RecordContext other = context;
    other.version++;
    Refused(ResealRecord(kek, other, record.data(), record.size(), kek, context), Code::kAuthenticationFailed);
    // Only a KEK seals.
    Refused(ResealRecord(kek, context, record.data(), record.size(), Good(GenerateAes(256)), context), Code::kKeyType);
  }
}

TEST(NothingIsLeftInTheArena) {
  const Vector vector("record aes");
  const KeyRef kek = KekOf(vector);
  const KeyRef key = KeyOf(vector);
  const RecordContext context = ContextOf(vector);
  const size_t before = KeyArenaStatus().used;
  ByteVector record = Good(SealRecord(kek, context, key));
  ReleaseKey(Good(OpenRecord(kek, context, record.data(), record.size())));
  Good(ResealRecord(kek, context, record.data(), record.size(), kek, context));
  record.back() ^= 1;
  Refused(ResealRecord(kek, context, record.data(), record.size(), kek, context), Code::kAuthenticationFailed);
  Refused(OpenRecord(kek, context, record.data(), record.size()), Code::kAuthenticationFailed);
  assert_int_equal(KeyArenaStatus().used, before);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
