#include "keys/key_check.h"

#include <openssl/core_names.h>
#include <openssl/objects.h>
#include <openssl/rsa.h>

#include <cstring>
#include <string_view>

#include "keys/algorithms.h"
#include "keys/bignum.h"
#include "keys/key_table.h"
#include "base/random.h"

namespace dke {
namespace {

// --- the form ------------------------------------------------------------------------------------

constexpr uint8_t kInteger = 0x02;
constexpr uint8_t kBitString = 0x03;
constexpr uint8_t kOctetString = 0x04;
constexpr uint8_t kNull = 0x05;
constexpr uint8_t kOid = 0x06;
constexpr uint8_t kSequence = 0x30;
constexpr uint8_t kContext0 = 0xa0;
constexpr uint8_t kContext1 = 0xa1;
constexpr uint8_t kImplicit1 = 0x81;

// Reads DER values one after the other. Lengths are definite and end inside the value that contains
// them.
class Reader {
 public:
  Reader() = default;
  Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool done() const { return size_ == 0; }
  bool next_is(uint8_t tag) const { return size_ != 0 && data_[0] == tag; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  bool Take(uint8_t tag, Reader* content) {
    if (size_ < 2 || data_[0] != tag) return false;
    size_t head = 2;
    size_t length = data_[1];
    if (length >= 0x80) {
      const size_t bytes = length - 0x80;
      if (bytes == 0 || bytes > 2 || size_ < 2 + bytes) return false;
      length = 0;
      for (size_t i = 0; i < bytes; i++) length = length << 8 | data_[2 + i];
      head += bytes;
    }
    if (length > size_ - head) return false;
    *content = Reader(data_ + head, length);
    data_ += head + length;
    size_ -= head + length;
    return true;
  }

  bool Skip(uint8_t tag) {
    Reader skipped;
    return Take(tag, &skipped);
  }

  bool Is(std::string_view bytes) const { return size_ == bytes.size() && memcmp(data_, bytes.data(), size_) == 0; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// A number that is not negative: its length in bits, and whether it is odd.
struct Number {
  int bits = 0;
  bool odd = false;
};

bool TakeNumber(Reader* reader, Number* number) {
  Reader content;
  if (!reader->Take(kInteger, &content) || content.size() == 0 || (content.data()[0] & 0x80) != 0) return false;
  number->odd = (content.data()[content.size() - 1] & 1) != 0;
  size_t at = 0;
  while (at < content.size() && content.data()[at] == 0) at++;
  number->bits = static_cast<int>(content.size() - at) * 8;
  for (unsigned top = at < content.size() ? content.data()[at] : 0x80; (top & 0x80) == 0; top <<= 1) number->bits--;
  return true;
}

bool TakeVersion(Reader* reader, uint8_t most) {
  Reader content;
  return reader->Take(kInteger, &content) && content.size() == 1 && content.data()[0] <= most;
}

constexpr std::string_view kRsaOid("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", 9);
constexpr std::string_view kEcOid("\x2a\x86\x48\xce\x3d\x02\x01", 7);

// RFC 8410: keys that are a row of bytes.
struct RawRow {
  std::string_view oid;
  size_t bytes;
};
constexpr RawRow kRaw[] = {
    {std::string_view("\x2b\x65\x6e", 3), 32},  // X25519
    {std::string_view("\x2b\x65\x6f", 3), 56},  // X448
    {std::string_view("\x2b\x65\x70", 3), 32},  // Ed25519
    {std::string_view("\x2b\x65\x71", 3), 57},  // Ed448
};

struct Algorithm {
  bool rsa = false;
  const CurveRow* curve = nullptr;
  const RawRow* raw = nullptr;
  Reader curve_oid;
};

const char kNotAlgorithm[] = "the algorithm identifier is not valid";

const CurveRow* CurveOf(const Reader& oid) {
  // Long enough for every curve that has a name; the object is one of libcrypto's own, or unknown.
  if (oid.size() == 0 || oid.size() > 16) return nullptr;
  uint8_t encoded[18] = {kOid, static_cast<uint8_t>(oid.size())};
  memcpy(encoded + 2, oid.data(), oid.size());
  const uint8_t* cursor = encoded;
  ASN1_OBJECT* object = d2i_ASN1_OBJECT(nullptr, &cursor, static_cast<long>(2 + oid.size()));
  const int nid = object == nullptr ? NID_undef : OBJ_obj2nid(object);
  ASN1_OBJECT_free(object);
  if (object == nullptr) (void)CryptoFailure("");
  return nid == NID_undef ? nullptr : FindCurveByGroup(OBJ_nid2sn(nid));
}

Status TakeAlgorithm(Reader* reader, Algorithm* algorithm) {
  Reader fields;
  Reader oid;
  if (!reader->Take(kSequence, &fields) || !fields.Take(kOid, &oid)) return BadArgument(kNotAlgorithm);
  if (oid.Is(kRsaOid)) {
    algorithm->rsa = true;
    Reader null;
    if (!fields.done() && (!fields.Take(kNull, &null) || !null.done())) return BadArgument(kNotAlgorithm);
  } else if (oid.Is(kEcOid)) {
    // A curve that is spelled out instead of named would be checked by arithmetic that takes long.
    if (!fields.Take(kOid, &algorithm->curve_oid)) return Unsupported("an EC key needs a named curve");
    algorithm->curve = CurveOf(algorithm->curve_oid);
    if (algorithm->curve == nullptr) return Unsupported("the curve is not one of this core's");
  } else {
    for (const RawRow& row : kRaw) {
      if (oid.Is(row.oid)) algorithm->raw = &row;
    }
    if (algorithm->raw == nullptr) return Unsupported("the key is not RSA, EC or Ed25519");
  }
  return fields.done() ? Status() : BadArgument(kNotAlgorithm);
}

Status CheckRsaSizes(const Number& modulus, const Number& exponent) {
  if (modulus.bits < kLeastRsaBits || modulus.bits > kMostRsaBits) return Unsupported("an RSA modulus has 1024 to 4096 bits");
  if (exponent.bits > kMostRsaExponentBits) return Unsupported("an RSA public exponent has at most 64 bits");
  if (!modulus.odd || !exponent.odd || exponent.bits < 2) return BadArgument("an RSA modulus and its public exponent are odd, and the exponent is at least 3");
  return {};
}

// RFC 8017, A.1.1.
Status CheckRsaPublic(Reader key) {
  Reader fields;
  Number modulus;
  Number exponent;
  if (!key.Take(kSequence, &fields) || !key.done() || !TakeNumber(&fields, &modulus) || !TakeNumber(&fields, &exponent) || !fields.done()) {
    return BadArgument("not an RSA public key");
  }
  return CheckRsaSizes(modulus, exponent);
}

// RFC 8017, A.1.2, with two primes. A prime of much more or less than half the modulus is nothing
// that a generator makes, and the larger it is, the longer every use of the key takes.
Status CheckRsaPrivate(Reader key) {
  constexpr int kMostApart = 16;
  Reader fields;
  Number modulus, exponent, secret, prime1, prime2, exponent1, exponent2, coefficient;
  if (!key.Take(kSequence, &fields) || !key.done() || !TakeVersion(&fields, 0)) return BadArgument("not an RSA private key of two primes");
  for (Number* number : {&modulus, &exponent, &secret, &prime1, &prime2, &exponent1, &exponent2, &coefficient}) {
    if (!TakeNumber(&fields, number)) return BadArgument("not an RSA private key");
  }
  if (!fields.done()) return BadArgument("not an RSA private key");
  DKE_RETURN_IF_ERROR(CheckRsaSizes(modulus, exponent));
  const int both = prime1.bits + prime2.bits;
  const bool primes = prime1.odd && prime2.odd && (both == modulus.bits || both == modulus.bits + 1) &&
                      prime1.bits - prime2.bits <= kMostApart && prime2.bits - prime1.bits <= kMostApart;
  const bool rest = secret.bits > 0 && secret.bits <= modulus.bits && exponent1.bits > 0 && exponent1.bits <= prime1.bits &&
                    exponent2.bits > 0 && exponent2.bits <= prime2.bits && coefficient.bits > 0 && coefficient.bits <= prime1.bits;
  return primes && rest ? Status() : BadArgument("the numbers of the RSA key do not have the sizes that its modulus asks for");
}

// SEC 1, 2.3.3: a point that is not compressed, or one that is.
bool IsPointForm(const CurveRow& curve, const Reader& point) {
  if (point.size() == 0) return false;
  const uint8_t first = point.data()[0];
  if (point.size() == 1 + 2 * curve.field_bytes) return first == 4 || first == 6 || first == 7;
  return point.size() == 1 + curve.field_bytes && (first == 2 || first == 3);
}

// The content of a BIT STRING of whole bytes.
bool TakeBits(Reader* reader, uint8_t tag, Reader* content) {
  Reader bits;
  if (!reader->Take(tag, &bits) || bits.size() == 0 || bits.data()[0] != 0) return false;
  *content = Reader(bits.data() + 1, bits.size() - 1);
  return true;
}

// RFC 5915. Parameters inside the key would replace the ones outside: they must be the same curve
// by name.
Status CheckEcPrivate(Reader key, const Algorithm& algorithm) {
  const Status refused = BadArgument("not an EC private key of this curve");
  const CurveRow& curve = *algorithm.curve;
  Reader fields;
  Reader number;
  Reader version;
  if (!key.Take(kSequence, &fields) || !key.done() || !fields.Take(kInteger, &version) || !version.Is(std::string_view("\x01", 1)) ||
      !fields.Take(kOctetString, &number)) {
    return refused;
  }
  // Some writers leave out leading zeros, some add one.
  if (number.size() == 0 || number.size() > curve.field_bytes + 1) return refused;
  if (fields.next_is(kContext0)) {
    Reader parameters;
    Reader oid;
    if (!fields.Take(kContext0, &parameters) || !parameters.Take(kOid, &oid) || !parameters.done() || oid.size() != algorithm.curve_oid.size() ||
        memcmp(oid.data(), algorithm.curve_oid.data(), oid.size()) != 0) {
      return refused;
    }
  }
  if (fields.next_is(kContext1)) {
    Reader inner;
    Reader point;
    if (!fields.Take(kContext1, &inner) || !TakeBits(&inner, kBitString, &point) || !inner.done() || !IsPointForm(curve, point)) return refused;
  }
  return fields.done() ? Status() : refused;
}

Status CheckRawPrivate(Reader key, const RawRow& row) {
  Reader value;
  const bool fits = key.Take(kOctetString, &value) && key.done() && value.size() == row.bytes;
  return fits ? Status() : BadArgument("the private key is not as long as its algorithm asks for");
}

// --- the numbers ---------------------------------------------------------------------------------

BignumPtr Parameter(const EVP_PKEY* pkey, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(pkey, name, &number) != 1) return nullptr;
  BN_set_flags(number, BN_FLG_CONSTTIME);
  return BignumPtr(number);
}

// Whether `exponent` is `secret` reduced for one prime, and undoes the public exponent there.
bool FitsPrime(const BIGNUM* secret, const BIGNUM* public_exponent, const BIGNUM* prime, const BIGNUM* exponent, BN_CTX* context) {
  BignumPtr order(BN_dup(prime));
  BignumPtr result(BN_new());
  if (order == nullptr || result == nullptr || BN_sub_word(order.get(), 1) != 1 || BN_is_zero(order.get())) return false;
  BN_set_flags(order.get(), BN_FLG_CONSTTIME);
  if (BN_mod(result.get(), secret, order.get(), context) != 1 || BN_cmp(result.get(), exponent) != 0) return false;
  return BN_mod_mul(result.get(), exponent, public_exponent, order.get(), context) == 1 && BN_is_one(result.get());
}

bool RsaNumbersFit(EVP_PKEY* pkey) {
  const BignumPtr modulus = Parameter(pkey, OSSL_PKEY_PARAM_RSA_N);
  const BignumPtr public_exponent = Parameter(pkey, OSSL_PKEY_PARAM_RSA_E);
  const BignumPtr secret = Parameter(pkey, OSSL_PKEY_PARAM_RSA_D);
  const BignumPtr prime1 = Parameter(pkey, OSSL_PKEY_PARAM_RSA_FACTOR1);
  const BignumPtr prime2 = Parameter(pkey, OSSL_PKEY_PARAM_RSA_FACTOR2);
  const BignumPtr exponent1 = Parameter(pkey, OSSL_PKEY_PARAM_RSA_EXPONENT1);
  const BignumPtr exponent2 = Parameter(pkey, OSSL_PKEY_PARAM_RSA_EXPONENT2);
  const BignumPtr coefficient = Parameter(pkey, OSSL_PKEY_PARAM_RSA_COEFFICIENT1);
  for (const BignumPtr* number : {&modulus, &public_exponent, &secret, &prime1, &prime2, &exponent1, &exponent2, &coefficient}) {
    if (*number == nullptr) return false;
  }
  const BignumContextPtr context(BN_CTX_secure_new());
  const BignumPtr result(BN_new());
  if (context == nullptr || result == nullptr) return false;
  BN_CTX* const scratch = context.get();
  if (BN_mul(result.get(), prime1.get(), prime2.get(), scratch) != 1 || BN_cmp(result.get(), modulus.get()) != 0) return false;
  if (BN_cmp(coefficient.get(), prime1.get()) >= 0 ||
      BN_mod_mul(result.get(), coefficient.get(), prime2.get(), prime1.get(), scratch) != 1 || !BN_is_one(result.get())) {
    return false;
  }
  return FitsPrime(secret.get(), public_exponent.get(), prime1.get(), exponent1.get(), scratch) &&
         FitsPrime(secret.get(), public_exponent.get(), prime2.get(), exponent2.get(), scratch);
}

// A random number through the public half and back through the private one.
bool RsaRoundTrips(EVP_PKEY* pkey) {
  uint8_t number[kMostRsaBits / 8];
  uint8_t there[kMostRsaBits / 8];
  uint8_t back[kMostRsaBits / 8];
  const size_t size = static_cast<size_t>(EVP_PKEY_get_size(pkey));
  if (size > sizeof number || !RandomPublic(number, size).ok()) return false;
  number[0] = 0;  // below the modulus
  size_t length = size;
  const EvpPkeyCtxPtr encryption(EVP_PKEY_CTX_new(pkey, nullptr));
  const EvpPkeyCtxPtr decryption(EVP_PKEY_CTX_new(pkey, nullptr));
  if (encryption == nullptr || decryption == nullptr || EVP_PKEY_encrypt_init(encryption.get()) != 1 ||
      EVP_PKEY_CTX_set_rsa_padding(encryption.get(), RSA_NO_PADDING) != 1 ||
      EVP_PKEY_encrypt(encryption.get(), there, &length, number, size) != 1 || length != size) {
    return false;
  }
  return EVP_PKEY_decrypt_init(decryption.get()) == 1 && EVP_PKEY_CTX_set_rsa_padding(decryption.get(), RSA_NO_PADDING) == 1 &&
         EVP_PKEY_decrypt(decryption.get(), back, &length, there, size) == 1 && length == size && memcmp(back, number, size) == 0;
}

}  // namespace

Status CheckPrivateForm(const uint8_t* pkcs8, size_t size) {
  const Status refused = BadArgument("not a PKCS#8 private key");
  if (size == 0 || size > kMostEncodedKey) return refused;
  Reader whole(pkcs8, size);
  Reader fields;
  if (!whole.Take(kSequence, &fields) || !whole.done() || !TakeVersion(&fields, 1)) return refused;
  Algorithm algorithm;
  DKE_RETURN_IF_ERROR(TakeAlgorithm(&fields, &algorithm));
  Reader key;
  if (!fields.Take(kOctetString, &key)) return refused;
  // Attributes and a public key: nothing is read from either.
  if (fields.next_is(kContext0) && !fields.Skip(kContext0)) return refused;
  if (fields.next_is(kImplicit1) && !fields.Skip(kImplicit1)) return refused;
  if (!fields.done()) return refused;
  if (algorithm.rsa) return CheckRsaPrivate(key);
  return algorithm.curve != nullptr ? CheckEcPrivate(key, algorithm) : CheckRawPrivate(key, *algorithm.raw);
}

Status CheckPublicForm(const uint8_t* spki, size_t size) {
  const Status refused = BadArgument("not a SubjectPublicKeyInfo");
  if (size == 0 || size > kMostEncodedKey) return refused;
  Reader whole(spki, size);
  Reader fields;
  if (!whole.Take(kSequence, &fields) || !whole.done()) return refused;
  Algorithm algorithm;
  DKE_RETURN_IF_ERROR(TakeAlgorithm(&fields, &algorithm));
  Reader key;
  if (!TakeBits(&fields, kBitString, &key) || !fields.done()) return refused;
  if (algorithm.rsa) return CheckRsaPublic(key);
  const bool fits = algorithm.curve != nullptr ? IsPointForm(*algorithm.curve, key) : algorithm.raw != nullptr && key.size() == algorithm.raw->bytes;
  return fits ? Status() : BadArgument("the public key is not as long as its algorithm asks for");
}

Status CheckPrivateKey(EVP_PKEY* pkey) {
  bool fits;
  if (EVP_PKEY_get_base_id(pkey) == EVP_PKEY_RSA) {
    fits = RsaNumbersFit(pkey) && RsaRoundTrips(pkey);
  } else {
    const EvpPkeyCtxPtr context(EVP_PKEY_CTX_new(pkey, nullptr));
    fits = context != nullptr && EVP_PKEY_pairwise_check(context.get()) == 1;
  }
  if (fits) return {};
  (void)CryptoFailure("");
  return BadArgument("the parts of the private key do not fit together");
}

namespace {

// RFC 8032, 5.1.3 and 5.2.3: whether the bytes are a point. x^2 = u / v with u = y^2 - 1 and v = d
// y^2 - a must have a root, and x = 0 has no sign. libcrypto takes any bytes as a public key.
bool IsEdwardsPoint(EVP_PKEY* pkey) {
  const bool is_448 = EVP_PKEY_get_base_id(pkey) == EVP_PKEY_ED448;
  uint8_t bytes[57];
  size_t size = sizeof bytes;
  if (EVP_PKEY_get_raw_public_key(pkey, bytes, &size) != 1 || size != (is_448 ? 57u : 32u)) return false;
  const bool sign = (bytes[size - 1] & 0x80) != 0;
  bytes[size - 1] &= 0x7f;
  const BignumContextPtr context(BN_CTX_new());
  const BignumPtr y(BN_lebin2bn(bytes, static_cast<int>(size), nullptr));
  const BignumPtr p(BN_new());
  const BignumPtr d(BN_new());
  const BignumPtr u(BN_new());
  const BignumPtr v(BN_new());
  if (context == nullptr || y == nullptr || p == nullptr || d == nullptr || u == nullptr || v == nullptr) return false;
  BN_CTX* const scratch = context.get();
  bool done;
  if (is_448) {
    // p = 2^448 - 2^224 - 1, d = -39081, a = 1.
    done = BN_set_bit(p.get(), 448) == 1 && BN_set_bit(v.get(), 224) == 1 && BN_sub(p.get(), p.get(), v.get()) == 1 &&
           BN_sub_word(p.get(), 1) == 1 && BN_copy(d.get(), p.get()) != nullptr && BN_sub_word(d.get(), 39081) == 1;
  } else {
    // p = 2^255 - 19, d = -121665 / 121666, a = -1.
    done = BN_set_bit(p.get(), 255) == 1 && BN_sub_word(p.get(), 19) == 1 && BN_set_word(v.get(), 121666) == 1 &&
           BN_mod_inverse(d.get(), v.get(), p.get(), scratch) != nullptr && BN_mul_word(d.get(), 121665) == 1 &&
           BN_sub(d.get(), p.get(), d.get()) == 1 && BN_nnmod(d.get(), d.get(), p.get(), scratch) == 1;
  }
  if (!done || BN_cmp(y.get(), p.get()) >= 0) return false;
  done = BN_mod_sqr(u.get(), y.get(), p.get(), scratch) == 1 && BN_mod_mul(v.get(), d.get(), u.get(), p.get(), scratch) == 1 &&
         (is_448 ? BN_sub_word(v.get(), 1) : BN_add_word(v.get(), 1)) == 1 && BN_sub_word(u.get(), 1) == 1 &&
         BN_mod_mul(u.get(), u.get(), v.get(), p.get(), scratch) == 1;
  if (!done) return false;
  // u / v is a square where u v is one.
  const int root = BN_kronecker(u.get(), p.get(), scratch);
  return root == 1 || (root == 0 && !sign);
}

}  // namespace

Status CheckPublicKey(EVP_PKEY* pkey) {
  const int type = EVP_PKEY_get_base_id(pkey);
  if (type == EVP_PKEY_RSA) return {};
  if ((type == EVP_PKEY_ED25519 || type == EVP_PKEY_ED448) && !IsEdwardsPoint(pkey)) {
    (void)CryptoFailure("");
    return BadArgument("the public key is not a point of its curve");
  }
  const EvpPkeyCtxPtr context(EVP_PKEY_CTX_new(pkey, nullptr));
  if (context != nullptr && EVP_PKEY_public_check(context.get()) == 1) return {};
  (void)CryptoFailure("");
  return BadArgument("the public key is not valid");
}

}  // namespace dke
