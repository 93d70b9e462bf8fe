// Keys on their way to another host: HPKE gives the published bytes; only the recipient, with the
// same info and aad, opens; what is wrong is answered alike, whatever it is.
#include "wrapping/hpke.h"

#include <openssl/evp.h>

#include "support.h"

namespace dke {
namespace {

const ByteVector kInfo = BytesOf("session key for a host");
const ByteVector kAad = BytesOf("handle 7");

HpkeContext ContextOf(const ByteVector& info, const ByteVector& aad) { return {info.data(), info.size(), aad.data(), aad.size()}; }

// RFC 8410, 7: the PKCS#8 of an X25519 key.
KeyRef OwnKey(const ByteVector& secret) {
  ByteVector pkcs8 = Hex("302e020100300506032b656e04220420");
  pkcs8.insert(pkcs8.end(), secret.begin(), secret.end());
  return Good(ImportPrivateKey(pkcs8.data(), pkcs8.size()));
}

ByteVector Seal(KeyRef own, KeyRef key, const ByteVector& info = kInfo, const ByteVector& aad = kAad) {
  const ByteVector recipient = Good(HpkePublicKey(own));
  return Good(HpkeSealKey(recipient.data(), recipient.size(), ContextOf(info, aad), key));
}

Result<KeyRef> Open(KeyRef own, const ByteVector& sealed, UnwrappedKind kind, const ByteVector& info = kInfo, const ByteVector& aad = kAad) {
  // A copy of exactly its length, so that a sanitizer sees a read beyond it.
  const ByteVector exact(sealed.begin(), sealed.end());
  Result<LooseKey> key = HpkeOpenKey(own, ContextOf(info, aad), exact.data(), exact.size(), kind);
  return key.ok() ? AddKey(key.Take()) : key.status();
}

TEST(ThePublishedMessageIsMadeByteForByte) {
  const Vector vector("hpke");
  const ByteVector secret = vector.Bytes("ephemeral");
  const ByteVector recipient = vector.Bytes("recipient");
  const ByteVector info = vector.Bytes("info");
  const ByteVector aad = vector.Bytes("aad");
  const ByteVector plain = vector.Bytes("plaintext");
  EvpPkeyPtr ephemeral(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, secret.data(), secret.size()));
  AssertBytes(Good(HpkeSealWith(ephemeral.get(), recipient.data(), ContextOf(info, aad), plain.data(), plain.size())),
              vector.Bytes("sealed"));
}

TEST(ThePublishedMessageOpens) {
  const Vector vector("hpke");
  const KeyRef own = OwnKey(vector.Bytes("recipientPrivate"));
  AssertBytes(Good(HpkePublicKey(own)), vector.Bytes("recipient"));
  const ByteVector sealed = vector.Bytes("sealed");
  const KeyRef key = Good(Open(own, sealed, KeyKind::kGeneric, vector.Bytes("info"), vector.Bytes("aad")));
  AssertBytes(ValueOf(key), vector.Bytes("plaintext"));
}

TEST(AKeyPairFollowsFromASecret) {
  const Vector vector("hpke key pair");
  const KeyRef secret = Secret(KeyKind::kGeneric, vector.Bytes("secret"));
  const KeyRef own = Good(DeriveHpkeKey(secret));
  AssertBytes(Good(HpkePublicKey(own)), vector.Bytes("recipient"));
  AssertBytes(Good(HpkePublicKey(OwnKey(vector.Bytes("recipientPrivate")))), vector.Bytes("recipient"));
  const KeyRef key = Good(GenerateAes(256));
  AssertBytes(ValueOf(Good(Open(own, Seal(Good(DeriveHpkeKey(secret)), key), KeyKind::kAes))), ValueOf(key));
  // A key encryption key does so only through HKDF, with a label.
  Refused(DeriveHpkeKey(Good(GenerateSecret(KeyKind::kKek, 32))), Code::kKeyType);
  Refused(DeriveHpkeKey(own), Code::kKeyType);
  Refused(DeriveHpkeKey(Good(GenerateSecret(KeyKind::kGeneric, 31))), Code::kBadArgument);
  ReleaseKey(secret);
  Refused(DeriveHpkeKey(secret), Code::kBadKey);
}

TEST(EveryKindOfKeyTravels) {
  const KeyRef own = Good(GenerateHpkeKey());
  const std::pair<KeyRef, UnwrappedKind> keys[] = {
      {Good(GenerateAes(128)), KeyKind::kAes},
      {Good(GenerateAes(256)), KeyKind::kAes},
      {Good(GenerateSecret(KeyKind::kGeneric, 1)), KeyKind::kGeneric},
      {Good(GenerateSecret(KeyKind::kGeneric, 4096)), KeyKind::kGeneric},
      {Good(GenerateRsa(2048)), std::nullopt},
      {Good(GenerateEc(Curve::kP521)), std::nullopt},
      {Good(GenerateEc(Curve::kBrainpoolP512r1)), std::nullopt},
      {Good(GenerateEc(Curve::kEd25519)), std::nullopt},
      {Good(GenerateEc(Curve::kX448)), std::nullopt},
  };
  for (const auto& [key, kind] : keys) {
    const ByteVector value = ValueOf(key);
    const ByteVector sealed = Seal(own, key);
    assert_int_equal(sealed.size(), 32 + value.size() + 16);
    const KeyRef back = Good(Open(own, sealed, kind));
    assert_int_equal(static_cast<int>(Good(DescribeKey(back)).kind), static_cast<int>(Good(DescribeKey(key)).kind));
    AssertBytes(ValueOf(back), value);
  }
}

TEST(EmptyInfoAndAadAreBoundToo) {
  const KeyRef own = Good(GenerateHpkeKey());
  const ByteVector sealed = Seal(own, Good(GenerateAes(256)), {}, {});
  Good(Open(own, sealed, KeyKind::kAes, {}, {}));
  Refused(Open(own, sealed, KeyKind::kAes, Hex("00"), {}), Code::kAuthenticationFailed);
  Refused(Open(own, sealed, KeyKind::kAes, {}, Hex("00")), Code::kAuthenticationFailed);
}

TEST(EveryChangedBitIsRefused) {
  const KeyRef own = Good(GenerateHpkeKey());
  const ByteVector sealed = Seal(own, Good(GenerateAes(256)));
  for (size_t at = 0; at < sealed.size(); at++) {
    for (int bit = 0; bit < 8; bit++) {
      // X25519 ignores the top bit of a coordinate (RFC 7748, 5); the key schedule does, as every
      // byte of enc is in it.
      ByteVector changed = sealed;
      changed[at] ^= static_cast<uint8_t>(1 << bit);
      Refused(Open(own, changed, KeyKind::kAes), Code::kAuthenticationFailed);
    }
  }
}

TEST(EveryOtherLengthIsRefused) {
  const KeyRef own = Good(GenerateHpkeKey());
  ByteVector sealed = Seal(own, Good(GenerateAes(256)));
  for (size_t length = 0; length < sealed.size(); length++) {
    Refused(Open(own, ByteVector(sealed.begin(), sealed.begin() + static_cast<long>(length)), KeyKind::kAes), Code::kAuthenticationFailed);
  }
  sealed.push_back(0);
  Refused(Open(own, sealed, KeyKind::kAes), Code::kAuthenticationFailed);
  Refused(Open(own, ByteVector(1 << 20), KeyKind::kAes), Code::kAuthenticationFailed);
}

TEST(InfoAndAadAreBoundAndKeptApart) {
  const KeyRef own = Good(GenerateHpkeKey());
  const ByteVector sealed = Seal(own, Good(GenerateAes(256)));
  for (size_t at = 0; at < kInfo.size(); at++) {
    ByteVector info = kInfo;
    info[at] ^= 1;
    Refused(Open(own, sealed, KeyKind::kAes, info), Code::kAuthenticationFailed);
  }
  for (size_t at = 0; at < kAad.size(); at++) {
    ByteVector aad = kAad;
    aad[at] ^= 1;
    Refused(Open(own, sealed, KeyKind::kAes, kInfo, aad), Code::kAuthenticationFailed);
  }
  Refused(Open(own, sealed, KeyKind::kAes, kAad, kInfo), Code::kAuthenticationFailed);
  Good(Open(own, sealed, KeyKind::kAes));
}

TEST(OnlyTheRecipientOpens) {
  const KeyRef own = Good(GenerateHpkeKey());
  const ByteVector sealed = Seal(own, Good(GenerateAes(256)));
  Refused(Open(Good(GenerateHpkeKey()), sealed, KeyKind::kAes), Code::kAuthenticationFailed);
  Refused(Open(Good(GenerateAes(256)), sealed, KeyKind::kAes), Code::kKeyType);
  Refused(Open(Good(GenerateEc(Curve::kP256)), sealed, KeyKind::kAes), Code::kKeyType);
  ReleaseKey(own);
  Refused(Open(own, sealed, KeyKind::kAes), Code::kBadKey);
}

TEST(AValueThatIsNoSuchKeyIsRefusedLikeAWrongOne) {
  const KeyRef own = Good(GenerateHpkeKey());
  const ByteVector twenty = Seal(own, Good(GenerateSecret(KeyKind::kGeneric, 20)));
  Refused(Open(own, twenty, KeyKind::kAes), Code::kAuthenticationFailed);
  Refused(Open(own, twenty, std::nullopt), Code::kAuthenticationFailed);
  Good(Open(own, twenty, KeyKind::kGeneric));
  // A PKCS#8 of a sort that this library does not carry: 1.3.101.114 is not an algorithm.
  ByteVector unknown = Hex("3046020100300506032b6572043a0438");
  unknown.resize(unknown.size() + 56, 0x11);
  Refused(Open(own, Seal(own, Secret(KeyKind::kGeneric, unknown)), std::nullopt), Code::kAuthenticationFailed);
}

TEST(PointsOfLowOrderAreRefused) {
  const KeyRef own = Good(GenerateHpkeKey());
  const KeyRef key = Good(GenerateAes(256));
  const ByteVector sealed = Seal(own, key);
  // The points of order 1, 2, 4 and 8, and their other encodings (RFC 7748, 6.1;
  // cr.yp.to/ecdh.html).
  for (const char* point : {
           "0000000000000000000000000000000000000000000000000000000000000000",
           "0100000000000000000000000000000000000000000000000000000000000000",
           "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
           "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
           "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
           "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
           "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
           "0000000000000000000000000000000000000000000000000000000000000080",
       }) {
    const ByteVector bytes = Hex(point);
    Refused(HpkeSealKey(bytes.data(), bytes.size(), ContextOf(kInfo, kAad), key), Code::kBadArgument);
    ByteVector changed = sealed;
    std::copy(bytes.begin(), bytes.end(), changed.begin());
    Refused(Open(own, changed, KeyKind::kAes), Code::kAuthenticationFailed);
  }
}

TEST(ARecipientHas32Bytes) {
  const KeyRef key = Good(GenerateAes(256));
  for (const size_t length : {size_t{0}, size_t{31}, size_t{33}}) {
    const ByteVector recipient(length, 9);
    Refused(HpkeSealKey(recipient.data(), recipient.size(), ContextOf(kInfo, kAad), key), Code::kBadArgument);
  }
}

TEST(AKekAndAPublicKeyDoNotTravel) {
  const ByteVector recipient = Good(HpkePublicKey(Good(GenerateHpkeKey())));
  const ByteVector spki = Good(ExportPublicKey(Good(GenerateEc(Curve::kEd25519))));
  for (const KeyRef key : {Good(GenerateSecret(KeyKind::kKek, 32)), Good(ImportPublicKey(spki.data(), spki.size()))}) {
    Refused(HpkeSealKey(recipient.data(), recipient.size(), ContextOf(kInfo, kAad), key), Code::kKeyType);
  }
}

Result<ByteVector> SealKek(KeyRef own, KeyRef kek, const ByteVector& info = kInfo, const ByteVector& aad = kAad) {
  const ByteVector recipient = Good(HpkePublicKey(own));
  return HpkeSealKek(recipient.data(), recipient.size(), ContextOf(info, aad), kek);
}

Result<KeyRef> OpenKek(KeyRef own, const ByteVector& sealed, const ByteVector& info = kInfo, const ByteVector& aad = kAad) {
  const ByteVector exact(sealed.begin(), sealed.end());
  return HpkeOpenKek(own, ContextOf(info, aad), exact.data(), exact.size());
}

TEST(AKekTravelsByACallOfItsOwnAndOpensAsAKekAlone) {
  const KeyRef own = Good(GenerateHpkeKey());
  const KeyRef kek = Good(GenerateSecret(KeyKind::kKek, 32));
  const ByteVector sealed = Good(SealKek(own, kek));
  assert_int_equal(sealed.size(), 32 + 32 + 16);
  const KeyRef back = Good(OpenKek(own, sealed));
  assert_int_equal(static_cast<int>(Good(DescribeKey(back)).kind), static_cast<int>(KeyKind::kKek));
  AssertBytes(ValueOf(back), ValueOf(kek));
  // A sealed KEK can only be opened as a KEK, so this is not a way to export other keys.
  assert_int_equal(static_cast<int>(Good(DescribeKey(Good(OpenKek(own, Seal(own, Good(GenerateAes(256))))))).kind),
                   static_cast<int>(KeyKind::kKek));
}

TEST(NoOtherKeyTravelsAsAKek) {
  const KeyRef own = Good(GenerateHpkeKey());
  for (const KeyRef key : {Good(GenerateAes(256)), Good(GenerateSecret(KeyKind::kGeneric, 32)), Good(GenerateEc(Curve::kEd25519)), own}) {
    Refused(SealKek(own, key), Code::kKeyType);
  }
  const KeyRef released = Good(GenerateSecret(KeyKind::kKek, 32));
  ReleaseKey(released);
  Refused(SealKek(own, released), Code::kBadKey);
  const ByteVector recipient = Good(HpkePublicKey(own));
  const KeyRef kek = Good(GenerateSecret(KeyKind::kKek, 32));
  for (const size_t length : {size_t{0}, size_t{31}}) {
    Refused(HpkeSealKek(recipient.data(), length, ContextOf(kInfo, kAad), kek), Code::kBadArgument);
  }
  const ByteVector low_order(32);
  Refused(HpkeSealKek(low_order.data(), low_order.size(), ContextOf(kInfo, kAad), kek), Code::kBadArgument);
}

TEST(AKekOfAnotherLengthOrForAnotherIsRefusedLikeAWrongTag) {
  const KeyRef own = Good(GenerateHpkeKey());
  const KeyRef kek = Good(GenerateSecret(KeyKind::kKek, 32));
  const ByteVector sealed = Good(SealKek(own, kek));
  for (const size_t length : {size_t{1}, size_t{16}, size_t{31}, size_t{33}, size_t{64}}) {
    Refused(OpenKek(own, Seal(own, Good(GenerateSecret(KeyKind::kGeneric, length)))), Code::kAuthenticationFailed);
  }
  Refused(OpenKek(Good(GenerateHpkeKey()), sealed), Code::kAuthenticationFailed);
  Refused(OpenKek(own, sealed, kAad, kInfo), Code::kAuthenticationFailed);
  Refused(OpenKek(own, sealed, kInfo, {}), Code::kAuthenticationFailed);
  Refused(OpenKek(kek, sealed), Code::kKeyType);
  for (size_t at = 0; at < sealed.size(); at++) {
    ByteVector changed = sealed;
    changed[at] ^= 1;
    Refused(OpenKek(own, changed), Code::kAuthenticationFailed);
    Refused(OpenKek(own, ByteVector(sealed.begin(), sealed.begin() + static_cast<long>(at))), Code::kAuthenticationFailed);
  }
  const size_t before = KeyArenaStatus().used;
  ReleaseKey(Good(OpenKek(own, sealed)));
  Refused(OpenKek(own, sealed, kInfo, {}), Code::kAuthenticationFailed);
  assert_int_equal(KeyArenaStatus().used, before);
}

TEST(TheDocumentsRootKeyOnItsWayOpens) {
  const Vector vector("root key on its way");
  const KeyRef own = OwnKey(vector.Bytes("nodePrivate"));
  AssertBytes(Good(HpkePublicKey(own)), vector.Bytes("node"));
  const ByteVector info = BytesOf(vector.Text("info"));
  const ByteVector aad = BytesOf(vector.Text("aad"));
  AssertBytes(ValueOf(Good(OpenKek(own, vector.Bytes("sealed"), info, aad))), vector.Bytes("key"));
  const ByteVector secret = vector.Bytes("ephemeral");
  const ByteVector key = vector.Bytes("key");
  EvpPkeyPtr ephemeral(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, secret.data(), secret.size()));
  AssertBytes(Good(HpkeSealWith(ephemeral.get(), vector.Bytes("node").data(), ContextOf(info, aad), key.data(), key.size())),
              vector.Bytes("sealed"));
}

TEST(EachSealHasAKeyOfItsOwn) {
  const KeyRef own = Good(GenerateHpkeKey());
  const KeyRef key = Good(GenerateAes(256));
  const ByteVector first = Seal(own, key);
  const ByteVector second = Seal(own, key);
  assert_memory_not_equal(first.data(), second.data(), 32);
  assert_memory_not_equal(&first[32], &second[32], 32);
}

TEST(InfoHasAtMost64KibAndAadOneMib) {
  const KeyRef own = Good(GenerateHpkeKey());
  const KeyRef key = Good(GenerateAes(256));
  const ByteVector info(1 << 16, 1);
  const ByteVector aad(1 << 20, 2);
  Good(Open(own, Seal(own, key, info, aad), KeyKind::kAes, info, aad));
  const ByteVector recipient = Good(HpkePublicKey(own));
  const ByteVector too_long((1 << 20) + 1);
  Refused(HpkeSealKey(recipient.data(), recipient.size(), ContextOf(too_long, aad), key), Code::kBadArgument);
  Refused(HpkeSealKey(recipient.data(), recipient.size(), ContextOf(info, too_long), key), Code::kBadArgument);
}

TEST(NothingIsLeftInTheArena) {
  const KeyRef own = Good(GenerateHpkeKey());
  const KeyRef key = Good(GenerateAes(256));
  const size_t before = KeyArenaStatus().used;
  ByteVector sealed = Seal(own, key);
  ReleaseKey(Good(Open(own, sealed, KeyKind::kAes)));
  sealed.back() ^= 1;
  Refused(Open(own, sealed, KeyKind::kAes), Code::kAuthenticationFailed);
  assert_int_equal(KeyArenaStatus().used, before);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
