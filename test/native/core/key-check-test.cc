// Keys from outside, encoded here manually: the form is checked before any arithmetic. A key whose
// size is not one of the core's is "unsupported" even when its numbers are nonsense: had arithmetic
// come first, they would be "bad".
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <memory>

#include "wrapping/key_wrap.h"
#include "support.h"

namespace dke {
namespace {

ByteVector Der(uint8_t tag, const ByteVector& content) {
  ByteVector out{tag};
  const size_t size = content.size();
  if (size >= 0x80) out.push_back(size > 0xff ? 0x82 : 0x81);
  if (size > 0xff) out.push_back(static_cast<uint8_t>(size >> 8));
  out.push_back(static_cast<uint8_t>(size));
  out.insert(out.end(), content.begin(), content.end());
  return out;
}
ByteVector Sum(const std::vector<ByteVector>& parts) {
  ByteVector out;
  for (const ByteVector& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}
ByteVector Sequence(const std::vector<ByteVector>& parts) { return Der(0x30, Sum(parts)); }
ByteVector Oid(std::string_view hex) { return Der(0x06, Hex(hex)); }
const ByteVector kNull{0x05, 0x00};
ByteVector Integer(ByteVector number) {
  if (number.empty() || (number[0] & 0x80) != 0) number.insert(number.begin(), 0);
  return Der(0x02, number);
}
ByteVector Small(unsigned number) { return Integer({static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)}); }

// An odd number of so many bits that means nothing.
ByteVector OddBytes(int bits) {
  ByteVector number((static_cast<size_t>(bits) + 7) / 8, 0x5b);
  number[0] = static_cast<uint8_t>(1 << ((bits - 1) % 8));
  return number;
}
ByteVector Odd(int bits) { return Integer(OddBytes(bits)); }

ByteVector RsaAlgorithm() { return Sequence({Oid("2a864886f70d010101"), kNull}); }
ByteVector Private(const ByteVector& algorithm, const ByteVector& key) { return Sequence({{0x02, 0x01, 0x00}, algorithm, Der(0x04, key)}); }
ByteVector Public(const ByteVector& algorithm, ByteVector key) {
  key.insert(key.begin(), 0);
  return Sequence({algorithm, Der(0x03, key)});
}
const ByteVector kExponent = Integer({1, 0, 1});
ByteVector RsaPublic(const ByteVector& modulus, const ByteVector& exponent) { return Public(RsaAlgorithm(), Sequence({modulus, exponent})); }

using Numbers = std::vector<ByteVector>;  // n, e, d, p, q, dP, dQ, qInv
Numbers OfSize(int bits) {
  const int half = bits / 2;
  return {Odd(bits), kExponent, Odd(bits - 1), Odd(half), Odd(half), Odd(half - 1), Odd(half - 1), Odd(half - 1)};
}
ByteVector RsaPrivate(const Numbers& numbers, unsigned version = 0) {
  Numbers all{{0x02, 0x01, static_cast<uint8_t>(version)}};
  all.insert(all.end(), numbers.begin(), numbers.end());
  return Private(RsaAlgorithm(), Sequence(all));
}

void RefusedPrivate(const ByteVector& der, Code code) { Refused(ImportPrivateKey(der.data(), der.size()), code); }
void RefusedPublic(const ByteVector& der, Code code) { Refused(ImportPublicKey(der.data(), der.size()), code); }

TEST(AnRsaKeyOfAnotherSizeIsRefusedBeforeArithmetic) {
  for (const int bits : {512, 1022, 4098, 8192, 14336}) {
    RefusedPrivate(RsaPrivate(OfSize(bits)), Code::kUnsupported);
    RefusedPublic(RsaPublic(Odd(bits), kExponent), Code::kUnsupported);
  }
  // For a size that the core supports, only arithmetic finds the fault.
  RefusedPrivate(RsaPrivate(OfSize(2048)), Code::kBadArgument);
}

TEST(APublicExponentIsOddAndShort) {
  for (const int bits : {65, 256, 2048, 4096}) {
    RefusedPublic(RsaPublic(Odd(2048), Odd(bits)), Code::kUnsupported);
    Numbers numbers = OfSize(2048);
    numbers[1] = Odd(bits);
    RefusedPrivate(RsaPrivate(numbers), Code::kUnsupported);
  }
  for (const unsigned exponent : {0u, 1u, 2u, 65536u}) RefusedPublic(RsaPublic(Odd(2048), Small(exponent)), Code::kBadArgument);
  ByteVector even = OddBytes(2048);
  even.back() = 0;
  RefusedPublic(RsaPublic(Integer(even), kExponent), Code::kBadArgument);
  RefusedPublic(RsaPublic(Der(0x02, Hex(std::string(512, 'f'))), kExponent), Code::kBadArgument);  // below zero
  for (const unsigned exponent : {3u, 17u, 65537u}) {
    const ByteVector good = RsaPublic(Odd(2048), Small(exponent));
    ReleaseKey(Good(ImportPublicKey(good.data(), good.size())));
  }
  const ByteVector longest = RsaPublic(Odd(4096), Odd(64));
  ReleaseKey(Good(ImportPublicKey(longest.data(), longest.size())));
}

// The numbers of a fresh key.
Numbers NumbersOf(EVP_PKEY* pkey) {
  Numbers numbers;
  for (const char* name : {OSSL_PKEY_PARAM_RSA_N, OSSL_PKEY_PARAM_RSA_E, OSSL_PKEY_PARAM_RSA_D, OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2,
                           OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1}) {
    BIGNUM* number = nullptr;
    assert_int_equal(EVP_PKEY_get_bn_param(pkey, name, &number), 1);
    ByteVector bytes(static_cast<size_t>(BN_num_bytes(number)));
    BN_bn2bin(number, bytes.data());
    BN_free(number);
    numbers.push_back(Integer(bytes));
  }
  return numbers;
}

TEST(TheNumbersOfAnRsaKeyFitTogether) {
  EvpPkeyPtr fresh(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", size_t{2048}));
  const Numbers good = NumbersOf(fresh.get());
  const ByteVector der = RsaPrivate(good);
  ReleaseKey(Good(ImportPrivateKey(der.data(), der.size())));
  for (size_t which = 0; which < good.size(); which++) {
    // In the middle of the number: its size and its last bit stay.
    Numbers changed = good;
    changed[which][changed[which].size() / 2] ^= 4;
    RefusedPrivate(RsaPrivate(changed), Code::kBadArgument);
    // Zero, below zero, too long.
    changed[which] = Small(0);
    RefusedPrivate(RsaPrivate(changed), which == 0 ? Code::kUnsupported : Code::kBadArgument);
    changed[which] = Der(0x02, Hex("ff00000001"));
    RefusedPrivate(RsaPrivate(changed), Code::kBadArgument);
    changed[which] = Odd(4200);
    RefusedPrivate(RsaPrivate(changed), which <= 1 ? Code::kUnsupported : Code::kBadArgument);
  }
  Numbers swapped = good;
  std::swap(swapped[3], swapped[4]);
  RefusedPrivate(RsaPrivate(swapped), Code::kBadArgument);
  // Three primes, a number too few, one too many.
  RefusedPrivate(RsaPrivate(good, 1), Code::kBadArgument);
  RefusedPrivate(RsaPrivate(Numbers(good.begin(), good.end() - 1)), Code::kBadArgument);
  Numbers more = good;
  more.push_back(kExponent);
  RefusedPrivate(RsaPrivate(more), Code::kBadArgument);
}

TEST(ThePrimesAreAboutHalfAsLongAsTheModulus) {
  for (const int bits : {2, 512, 1007, 1041, 1536, 2046}) {
    Numbers numbers = OfSize(2048);
    numbers[3] = Odd(bits);
    numbers[4] = Odd(2048 - bits);
    RefusedPrivate(RsaPrivate(numbers), Code::kBadArgument);
  }
}

struct BignumDeleter {
  void operator()(BIGNUM* number) const { BN_free(number); }
};
using Bignum = std::unique_ptr<BIGNUM, BignumDeleter>;

ByteVector Integer(const Bignum& number) {
  ByteVector bytes(static_cast<size_t>(BN_num_bytes(number.get())));
  BN_bn2bin(number.get(), bytes.data());
  return Integer(bytes);
}

// All numbers agree with each other, but the "primes" are products: decryption does not return the
// plaintext.
TEST(AKeyWhosePrimesAreNoneIsRefused) {
  BN_CTX* context = BN_CTX_new();
  Bignum e(BN_new());
  BN_set_word(e.get(), 65537);
  const auto made = [] { return Bignum(BN_new()); };
  Bignum p = made(), q = made(), p1 = made(), q1 = made(), phi = made(), n = made(), d = made(), dp = made(), dq = made(), qi = made();
  for (;;) {
    for (BIGNUM* prime : {p.get(), q.get()}) {
      do {
        BN_rand(prime, 1024, BN_RAND_TOP_TWO, BN_RAND_BOTTOM_ODD);
      } while (BN_check_prime(prime, context, nullptr) == 1);
    }
    BN_mul(n.get(), p.get(), q.get(), context);
    BN_sub(p1.get(), p.get(), BN_value_one());
    BN_sub(q1.get(), q.get(), BN_value_one());
    BN_mul(phi.get(), p1.get(), q1.get(), context);
    if (BN_mod_inverse(d.get(), e.get(), phi.get(), context) == nullptr) continue;
    if (BN_mod_inverse(qi.get(), q.get(), p.get(), context) == nullptr) continue;
    break;
  }
  BN_mod(dp.get(), d.get(), p1.get(), context);
  BN_mod(dq.get(), d.get(), q1.get(), context);
  RefusedPrivate(RsaPrivate({Integer(n), Integer(e), Integer(d), Integer(p), Integer(q), Integer(dp), Integer(dq), Integer(qi)}), Code::kBadArgument);
  BN_CTX_free(context);
}

ByteVector EcAlgorithm(const ByteVector& parameters) { return Sequence({Oid("2a8648ce3d0201"), parameters}); }
const char kP256[] = "2a8648ce3d030107";
const char kP384[] = "2b81040022";

// X9.62's parameters of a prime field, of nonsense.
ByteVector Explicit() {
  const ByteVector field = Sequence({Oid("2a8648ce3d0101"), Odd(256)});
  const ByteVector curve = Sequence({Der(0x04, OddBytes(256)), Der(0x04, OddBytes(256))});
  ByteVector base = OddBytes(520);
  base[0] = 4;
  return Sequence({{0x02, 0x01, 0x01}, field, curve, Der(0x04, base), Odd(256)});
}

ByteVector Point(size_t bytes) {
  ByteVector point(1 + 2 * bytes, 0x5b);
  point[0] = 4;
  return point;
}
ByteVector EcPrivate(const ByteVector& number, const std::vector<ByteVector>& rest = {}) {
  std::vector<ByteVector> fields{{0x02, 0x01, 0x01}, Der(0x04, number)};
  fields.insert(fields.end(), rest.begin(), rest.end());
  return Sequence(fields);
}

TEST(AnotherCurveIsRefusedBeforeArithmetic) {
  const ByteVector others[] = {Oid("2b81040008") /* secp160r1 */, Oid("2b81040027") /* sect571r1 */, Oid("2a0304"), Explicit(), kNull, Sequence({})};
  for (const ByteVector& parameters : others) {
    for (const size_t bytes : {20, 32, 72}) {
      RefusedPublic(Public(EcAlgorithm(parameters), Point(bytes)), Code::kUnsupported);
      RefusedPrivate(Private(EcAlgorithm(parameters), EcPrivate(OddBytes(static_cast<int>(8 * bytes)))), Code::kUnsupported);
    }
  }
  // Outside one curve, inside another or one that is spelled out.
  for (const ByteVector& inside : {Oid(kP384), Explicit(), Oid("2b81040008")}) {
    RefusedPrivate(Private(EcAlgorithm(Oid(kP256)), EcPrivate(ByteVector(32, 1), {Der(0xa0, inside)})), Code::kBadArgument);
  }
  for (const size_t bytes : {0, 34, 48, 66, 4096}) {
    RefusedPrivate(Private(EcAlgorithm(Oid(kP256)), EcPrivate(ByteVector(bytes, 1))), Code::kBadArgument);
  }
  for (const size_t bytes : {0, 1, 31, 33, 48}) RefusedPublic(Public(EcAlgorithm(Oid(kP256)), Point(bytes)), Code::kBadArgument);
  RefusedPublic(Public(EcAlgorithm(Oid(kP256)), {0}), Code::kBadArgument);  // infinity
  const ByteVector number = EcPrivate(ByteVector(32, 1));
  const ByteVector good = Private(EcAlgorithm(Oid(kP256)), number);
  ReleaseKey(Good(ImportPrivateKey(good.data(), good.size())));
}

TEST(OtherAlgorithmsAreRefused) {
  for (const char* oid : {"2a864886f70d01010a" /* RSASSA-PSS */, "2a8648ce380401" /* DSA */, "2a864886f70d010301" /* DH */, "2a"}) {
    RefusedPrivate(Private(Sequence({Oid(oid), kNull}), Sequence({Odd(8192)})), Code::kUnsupported);
    RefusedPublic(Public(Sequence({Oid(oid), kNull}), Sequence({Odd(8192)})), Code::kUnsupported);
  }
  for (const size_t bytes : {0, 31, 33, 4096}) {
    RefusedPrivate(Private(Sequence({Oid("2b6570")}), Der(0x04, ByteVector(bytes, 1))), Code::kBadArgument);
    RefusedPublic(Public(Sequence({Oid("2b6570")}), ByteVector(bytes, 1)), Code::kBadArgument);
  }
}

TEST(LengthsThatLieAreRefused) {
  const ByteVector good = RsaPrivate(OfSize(8192));
  for (size_t at = 0; at < 40; at++) {
    for (const uint8_t byte : {0x00, 0x7f, 0x80, 0x81, 0x84, 0x88, 0xff}) {
      ByteVector changed = good;
      if (changed[at] == byte) continue;
      changed[at] = byte;
      assert_false(ImportPrivateKey(changed.data(), changed.size()).ok());
    }
  }
}

// A wrapped key is imported like any other, and only keys are wrapped.
TEST(AWrappedKeyIsNoWayAroundTheCheck) {
  const KeyRef wrapping = Good(GenerateAes(256));
  const ByteVector large = RsaPrivate(OfSize(14336));
  const ByteVector wrapped = Good(WrapData(wrapping, large.data(), large.size(), {true, nullptr}));
  Refused(UnwrapKey(wrapping, wrapped.data(), wrapped.size(), {true, nullptr}, std::nullopt, 0), Code::kUnsupported);
  const ByteVector longest(16384, 1);
  const ByteVector other = Good(WrapData(wrapping, longest.data(), longest.size(), {}));
  assert_int_equal(Good(UnwrapData(wrapping, other.data(), other.size(), {})).size(), longest.size());
  const ByteVector longer(16392, 1);
  Refused(WrapData(wrapping, longer.data(), longer.size(), {}), Code::kDataLength);
  Refused(UnwrapData(wrapping, ByteVector(16408, 1).data(), 16408, {true, nullptr}), Code::kDataLength);
  ReleaseKey(wrapping);
}

TEST(AnEdwardsKeyIsAPointOfItsCurve) {
  const auto with = [](const char* oid, const ByteVector& key) { return Public(Sequence({Oid(oid)}), key); };
  const auto accepted = [](const ByteVector& der) { ReleaseKey(Good(ImportPublicKey(der.data(), der.size()))); };
  // RFC 8032, 7.1 and 7.4.
  accepted(with("2b6570", Hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")));
  accepted(with("2b6571", Hex("5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180")));
  for (const Curve curve : {Curve::kEd25519, Curve::kEd448}) {
    for (int i = 0; i < 50; i++) {
      const KeyRef pair = Good(GenerateEc(curve));
      accepted(Good(ExportPublicKey(pair)));
      ReleaseKey(pair);
    }
  }
  // About half of all rows of bytes are not a point.
  for (const auto& [oid, size] : {std::pair<const char*, size_t>{"2b6570", 32}, {"2b6571", 57}}) {
    size_t refused = 0;
    for (uint8_t y = 2; y < 66; y++) {
      ByteVector key(size);
      key[0] = y;
      const ByteVector der = with(oid, key);
      const Result<KeyRef> imported = ImportPublicKey(der.data(), der.size());
      if (imported.ok()) ReleaseKey(imported.value());
      else refused++;
    }
    assert_in_range(refused, 16, 48);
    // A coordinate that is not below p, and a sign where x is 0.
    RefusedPublic(with(oid, ByteVector(size, 0xff)), Code::kBadArgument);
    ByteVector one(size);
    one[0] = 1;
    accepted(with(oid, one));
    one[size - 1] = 0x80;
    RefusedPublic(with(oid, one), Code::kBadArgument);
  }
}

}  // namespace
}  // namespace dke

int main() {
  if (!dke::AdoptCryptoAllocations() || !dke::InitializeMemory(size_t{4} << 20, true).ok()) return 1;
  return run_written_tests(nullptr, nullptr);
}
