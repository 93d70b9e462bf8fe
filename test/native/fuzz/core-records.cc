// Fuzzes the keys that the core reads from storage and from outside. The first byte chooses:
//   r  the input is a key record: only the one that was sealed may open
//   s  the input is the content of a correctly sealed record (kind and value): it is a key or
//      refused, never anything else
//   p  a PKCS#8 private key     u  a SubjectPublicKeyInfo
//   w  a key wrapped by AES-KW  W  by AES-KWP
//   f  the input is written over the slots of a root key file
#include "wrapping/key_record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/bytes.h"
#include "digests/kdf.h"
#include "wrapping/key_wrap.h"
#include "root/root_file.h"

namespace {

using dke::KeyRef;

void Must(bool condition) {
  if (!condition) abort();
}

struct Fixture {
  uint8_t kek_value[32] = {};
  KeyRef kek = 0;
  KeyRef aes = 0;
  dke::RecordContext context{{}, {}, 7, 3, "vault-copy", {}};
  std::vector<uint8_t> record;
  std::string path;

  Fixture() {
    Must(dke::AdoptCryptoAllocations() && dke::InitializeMemory(size_t{4} << 20, true).ok());
    // The vector "record aes" of addon/FORMAT.md, which the corpus holds.
    uint8_t value[32];
    uint8_t salt[dke::kRecordSalt];
    for (uint8_t i = 0; i < 32; i++) {
      kek_value[i] = static_cast<uint8_t>(0x40 + i);
      value[i] = static_cast<uint8_t>(0x80 + i);
      salt[i] = static_cast<uint8_t>(0xc0 + i);
      if (i < 16) context.tenant[i] = static_cast<uint8_t>(0x10 + i);
      if (i < 16) context.object[i] = static_cast<uint8_t>(0x20 + i);
    }
    static constexpr std::string_view kAttributes = R"({"algorithm":"aes","bits":256})";
    context.attributes.assign(kAttributes.begin(), kAttributes.end());
    kek = dke::ImportSecret(dke::KeyKind::kKek, kek_value, sizeof kek_value).value();
    const KeyRef sealed = dke::ImportSecret(dke::KeyKind::kAes, value, sizeof value).value();
    record = dke::SealRecordWithSalt(kek, context, sealed, salt).value();
    memset(value, 7, sizeof value);
    aes = dke::ImportSecret(dke::KeyKind::kAes, value, sizeof value).value();
    char folder[] = "/tmp/dke-fuzz-XXXXXX";
    path = std::string(mkdtemp(folder)) + "/root";
    const auto made = dke::CreateRootFile(path);
    Must(made.ok());
    dke::ReleaseKey(made.value().key);
  }
};

// Seals any plaintext according to FORMAT.md.
std::vector<uint8_t> SealBytes(const Fixture& fixture, const uint8_t* data, size_t size) {
  const size_t head = 122;
  std::vector<uint8_t> record(fixture.record.begin(), fixture.record.begin() + head);
  uint8_t derived[76];
  Must(dke::HkdfInto(dke::Digest::kSha256, fixture.kek_value, 32, &record[46], 32, reinterpret_cast<const uint8_t*>("dke key record 1"), 16, derived, 76).ok());
  std::vector<uint8_t> aad;
  uint8_t number[4];
  dke::AppendField(aad, "\1", 1);
  dke::AppendField(aad, "\0", 1);
  dke::PutU32(number, fixture.context.epoch);
  dke::AppendField(aad, number, 4);
  dke::AppendField(aad, fixture.context.tenant, 16);
  dke::AppendField(aad, fixture.context.object, 16);
  dke::PutU32(number, fixture.context.version);
  dke::AppendField(aad, number, 4);
  dke::AppendField(aad, fixture.context.record_class.data(), fixture.context.record_class.size());
  dke::AppendField(aad, fixture.context.attributes.data(), fixture.context.attributes.size());
  record.resize(head + size + 16);
  const dke::EvpCipherCtxPtr cipher(EVP_CIPHER_CTX_new());
  int written = 0;
  Must(EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, derived, derived + 32) == 1 &&
       EVP_EncryptUpdate(cipher.get(), nullptr, &written, aad.data(), static_cast<int>(aad.size())) == 1 &&
       EVP_EncryptUpdate(cipher.get(), &record[head], &written, data, static_cast<int>(size)) == 1 &&
       EVP_EncryptFinal_ex(cipher.get(), &record[head + size], &written) == 1 &&
       EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, 16, &record[head + size]) == 1);
  return record;
}

// What came in must go out again as the same key.
void CheckKey(KeyRef key) {
  const dke::KeyDescription description = dke::DescribeKey(key).value();
  const dke::KeyKindRow& row = dke::Row(description.kind);
  if (row.secret || row.is_private) {
    const auto value = dke::ExportKey(dke::FindKey(key));
    Must(value.ok());
    const auto again = row.secret ? dke::ImportSecret(description.kind, value.value().data(), value.value().size())
                                  : dke::ImportPrivateKey(value.value().data(), value.value().size());
    Must(again.ok());
    dke::ReleaseKey(again.value());
  }
  if (!row.secret) {
    const auto spki = dke::ExportPublicKey(key);
    Must(spki.ok());
    const auto again = dke::ImportPublicKey(spki.value().data(), spki.value().size());
    // An X25519 public key is not held on its own, and libcrypto's check of an RSA modulus draws
    // random bases (SP 800-56B, 6.4.1): one with a small factor is accepted in one draw and refused
    // in the next.
    Must(again.ok() || description.kind == dke::KeyKind::kX25519Private || description.kind == dke::KeyKind::kRsaPublic);
    if (again.ok()) dke::ReleaseKey(again.value());
  }
}

dke::Result<KeyRef> Added(dke::Result<dke::LooseKey> loose) {
  if (!loose.ok()) return loose.status();
  return dke::AddKey(std::move(loose.value()));
}

void Finish(const dke::Result<KeyRef>& made) {
  if (!made.ok()) {
    Must(made.status().code() != dke::Code::kInternal && made.status().code() != dke::Code::kOk);
    return;
  }
  CheckKey(made.value());
  dke::ReleaseKey(made.value());
}

void ReadRoot(const Fixture& fixture, const uint8_t* data, size_t size) {
  Must(chmod(fixture.path.c_str(), 0600) == 0);
  const int fd = open(fixture.path.c_str(), O_WRONLY | O_CLOEXEC);
  Must(fd >= 0);
  // One half of the input for each slot.
  const size_t half = size / 2;
  Must(pwrite(fd, data, half, 4096) == static_cast<ssize_t>(half) && pwrite(fd, data + half, size - half, 8192) == static_cast<ssize_t>(size - half));
  close(fd);
  const auto slots = dke::OpenRootFile(fixture.path);
  if (!slots.ok()) {
    Must(slots.status().code() == dke::Code::kFormat);
    return;
  }
  Must(slots.value().size() == 1 || (slots.value().size() == 2 && slots.value()[0].epoch > slots.value()[1].epoch));
  for (const dke::RootSlot& slot : slots.value()) dke::ReleaseKey(slot.key);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = new Fixture;
  static const size_t keys = dke::KeyCount();
  static const size_t used = dke::KeyArenaStatus().used;
  if (size < 1 || size > 8192) return 0;
  const char what = static_cast<char>(*data++);
  size--;
  switch (what) {
    case 'r': {
      const auto opened = dke::OpenRecord(fixture->kek, fixture->context, data, size);
      const bool sealed = size == fixture->record.size() && memcmp(data, fixture->record.data(), size) == 0;
      Must(opened.ok() == sealed);
      Must(dke::ResealRecord(fixture->kek, fixture->context, data, size, fixture->kek, fixture->context).ok() == sealed);
      Finish(opened);
      break;
    }
    case 's': {
      if (size < 2) break;
      const std::vector<uint8_t> record = SealBytes(*fixture, data, size);
      Finish(dke::OpenRecord(fixture->kek, fixture->context, record.data(), record.size()));
      break;
    }
    case 'p':
      Finish(dke::ImportPrivateKey(data, size));
      break;
    case 'u':
      Finish(dke::ImportPublicKey(data, size));
      break;
    case 'w':
    case 'W':
      Finish(Added(dke::UnwrapKey(fixture->aes, data, size, {what == 'W', nullptr}, dke::KeyKind::kGeneric, 0)));
      break;
    case 'f':
      if (size <= 1024) ReadRoot(*fixture, data, size);
      break;
    default:
      break;
  }
  Must(dke::KeyCount() == keys && dke::KeyArenaStatus().used == used);
  return 0;
}
