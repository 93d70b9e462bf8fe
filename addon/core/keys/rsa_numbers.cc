#include "keys/rsa_numbers.h"

#include <openssl/core_names.h>
#include <openssl/param_build.h>

#include <memory>

#include "keys/bignum.h"
#include "keys/key_check.h"

namespace dke {
namespace {

struct MontgomeryDeleter {
  void operator()(BN_MONT_CTX* context) const { BN_MONT_CTX_free(context); }
};
using MontgomeryPtr = std::unique_ptr<BN_MONT_CTX, MontgomeryDeleter>;
struct BuilderDeleter {
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
};
struct ParametersDeleter {
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
};

// Public exponents that keys have, most of them the first one.
constexpr unsigned kUsualExponents[] = {65537, 3, 17, 257};
constexpr unsigned kLargestFoundExponent = 65537;
// Each trial finds the primes of a real key with a probability of at least one half, and costs a
// private operation without the primes. Numbers that fit together for a modulus that is itself
// prime, which no key has, cost all of them.
constexpr int kTrials = 40;

BignumPtr New() { return BignumPtr(BN_secure_new()); }

// Leading zeros are the caller's to have. Null where the number has more than `most_bits`, or there
// is none.
BignumPtr Read(const RsaNumber& number, int most_bits) {
  size_t from = 0;
  while (from < number.size && number.data[from] == 0) ++from;
  const size_t size = number.size - from;
  if (size == 0 || size > static_cast<size_t>(most_bits + 7) / 8) return nullptr;
  BignumPtr value = New();
  if (value == nullptr || BN_bin2bn(number.data + from, static_cast<int>(size), value.get()) == nullptr) return nullptr;
  return BN_num_bits(value.get()) <= most_bits ? std::move(value) : nullptr;
}

class Completion {
 public:
  Completion(BignumPtr modulus, BignumPtr secret)
      : modulus_(std::move(modulus)), secret_(std::move(secret)), context_(BN_CTX_secure_new()), montgomery_(BN_MONT_CTX_new()) {}

  bool Begin() { return context_ != nullptr && montgomery_ != nullptr && BN_MONT_CTX_set(montgomery_.get(), modulus_.get(), context_.get()) == 1; }

  // The odd e with (2^d)^e = 2.
  BignumPtr FindExponent() {
    BignumPtr two = New();
    BignumPtr power = New();
    BignumPtr square = New();
    BignumPtr running = New();
    BignumPtr found = New();
    if (two == nullptr || power == nullptr || square == nullptr || running == nullptr || found == nullptr || BN_set_word(two.get(), 2) != 1 ||
        !Power(power.get(), two.get(), secret_.get())) {
      return nullptr;
    }
    for (const unsigned exponent : kUsualExponents) {
      if (BN_set_word(found.get(), exponent) != 1 || !Power(running.get(), power.get(), found.get())) return nullptr;
      if (BN_cmp(running.get(), two.get()) == 0) return found;
    }
    // From here on `two` and `power` are in Montgomery's form: one multiplication for each
    // exponent.
    if (!ToMontgomery(two.get()) || !ToMontgomery(power.get()) || !Multiply(square.get(), power.get(), power.get()) ||
        BN_copy(running.get(), power.get()) == nullptr) {
      return nullptr;
    }
    for (unsigned exponent = 3; exponent <= kLargestFoundExponent; exponent += 2) {
      if (!Multiply(running.get(), running.get(), square.get())) return nullptr;
      if (BN_cmp(running.get(), two.get()) == 0) return BN_set_word(found.get(), exponent) == 1 ? std::move(found) : nullptr;
    }
    return nullptr;
  }

  // A prime of the modulus: a square root of 1 that is neither 1 nor -1 reveals one.
  BignumPtr FindPrime(const BIGNUM* public_exponent) {
    BignumPtr odd = New();
    BignumPtr most = New();
    if (odd == nullptr || most == nullptr || BN_mul(odd.get(), secret_.get(), public_exponent, context_.get()) != 1 || BN_sub_word(odd.get(), 1) != 1 ||
        BN_is_zero(odd.get()) || BN_is_odd(odd.get()) || BN_copy(most.get(), modulus_.get()) == nullptr || BN_sub_word(most.get(), 1) != 1) {
      return nullptr;
    }
    int halvings = 0;
    while (!BN_is_odd(odd.get())) {
      if (BN_rshift1(odd.get(), odd.get()) != 1) return nullptr;
      ++halvings;
    }
    BignumPtr root = New();
    BignumPtr next = New();
    BignumPtr prime = New();
    if (root == nullptr || next == nullptr || prime == nullptr) return nullptr;
    for (int trial = 0; trial < kTrials; ++trial) {
      if (BN_priv_rand_range(next.get(), most.get()) != 1 || BN_is_zero(next.get()) || !Power(root.get(), next.get(), odd.get())) return nullptr;
      if (BN_is_one(root.get()) || BN_cmp(root.get(), most.get()) == 0) continue;
      bool fits = false;
      for (int i = 0; i < halvings; ++i) {
        if (BN_mod_sqr(next.get(), root.get(), modulus_.get(), context_.get()) != 1) return nullptr;
        if (BN_is_one(next.get())) {
          if (BN_sub_word(root.get(), 1) != 1 || BN_gcd(prime.get(), root.get(), modulus_.get(), context_.get()) != 1) return nullptr;
          return prime;
        }
        fits = BN_cmp(next.get(), most.get()) == 0;
        if (fits) break;
        BN_swap(root.get(), next.get());
      }
      // The exponents are not inverse to each other for this modulus: no trial will find anything.
      if (!fits) return nullptr;
    }
    return nullptr;
  }

  // All eight numbers. Null when the prime does not divide the modulus.
  EvpPkeyPtr Build(const BIGNUM* public_exponent, BignumPtr prime1) {
    BignumPtr prime2 = New();
    BignumPtr rest = New();
    BignumPtr exponent1 = New();
    BignumPtr exponent2 = New();
    BignumPtr coefficient = New();
    if (prime2 == nullptr || rest == nullptr || exponent1 == nullptr || exponent2 == nullptr || coefficient == nullptr ||
        BN_div(prime2.get(), rest.get(), modulus_.get(), prime1.get(), context_.get()) != 1 || !BN_is_zero(rest.get())) {
      return nullptr;
    }
    // The larger prime comes first, as in a PKCS#8.
    if (BN_cmp(prime1.get(), prime2.get()) < 0) BN_swap(prime1.get(), prime2.get());
    const int apart = BN_num_bits(prime1.get()) - BN_num_bits(prime2.get());
    if (!BN_is_odd(prime2.get()) || BN_is_one(prime2.get()) || apart > kMostApart || !Exponent(exponent1.get(), prime1.get()) ||
        !Exponent(exponent2.get(), prime2.get()) || BN_mod_inverse(coefficient.get(), prime2.get(), prime1.get(), context_.get()) == nullptr) {
      return nullptr;
    }
    const std::unique_ptr<OSSL_PARAM_BLD, BuilderDeleter> builder(OSSL_PARAM_BLD_new());
    if (builder == nullptr) return nullptr;
    const std::pair<const char*, const BIGNUM*> numbers[] = {
        {OSSL_PKEY_PARAM_RSA_N, modulus_.get()},          {OSSL_PKEY_PARAM_RSA_E, public_exponent},
        {OSSL_PKEY_PARAM_RSA_D, secret_.get()},           {OSSL_PKEY_PARAM_RSA_FACTOR1, prime1.get()},
        {OSSL_PKEY_PARAM_RSA_FACTOR2, prime2.get()},      {OSSL_PKEY_PARAM_RSA_EXPONENT1, exponent1.get()},
        {OSSL_PKEY_PARAM_RSA_EXPONENT2, exponent2.get()}, {OSSL_PKEY_PARAM_RSA_COEFFICIENT1, coefficient.get()},
    };
    for (const auto& [name, number] : numbers) {
      if (OSSL_PARAM_BLD_push_BN(builder.get(), name, number) != 1) return nullptr;
    }
    const std::unique_ptr<OSSL_PARAM, ParametersDeleter> parameters(OSSL_PARAM_BLD_to_param(builder.get()));
    const EvpPkeyCtxPtr maker(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
    EVP_PKEY* made = nullptr;
    if (parameters == nullptr || maker == nullptr || EVP_PKEY_fromdata_init(maker.get()) != 1 ||
        EVP_PKEY_fromdata(maker.get(), &made, EVP_PKEY_KEYPAIR, parameters.get()) != 1) {
      return nullptr;
    }
    return EvpPkeyPtr(made);
  }

 private:
  // Most bits by which the primes may differ in length, as in a PKCS#8 (key_check.cc).
  static constexpr int kMostApart = 16;

  bool Power(BIGNUM* result, const BIGNUM* base, const BIGNUM* exponent) {
    return BN_mod_exp_mont_consttime(result, base, exponent, modulus_.get(), context_.get(), montgomery_.get()) == 1;
  }
  bool ToMontgomery(BIGNUM* number) { return BN_to_montgomery(number, number, montgomery_.get(), context_.get()) == 1; }
  bool Multiply(BIGNUM* result, const BIGNUM* a, const BIGNUM* b) {
    return BN_mod_mul_montgomery(result, a, b, montgomery_.get(), context_.get()) == 1;
  }
  // d mod (p - 1)
  bool Exponent(BIGNUM* result, const BIGNUM* prime) {
    BignumPtr less = New();
    return less != nullptr && BN_copy(less.get(), prime) != nullptr && BN_sub_word(less.get(), 1) == 1 &&
           BN_mod(result, secret_.get(), less.get(), context_.get()) == 1;
  }

  const BignumPtr modulus_;
  const BignumPtr secret_;
  const BignumContextPtr context_;
  const MontgomeryPtr montgomery_;
};

}  // namespace

Result<EvpPkeyPtr> CompleteRsaKey(const RsaNumbers& numbers) {
  BignumPtr modulus = Read(numbers.modulus, kMostRsaBits);
  if (modulus == nullptr || BN_num_bits(modulus.get()) < kLeastRsaBits) return Unsupported("an RSA modulus has 1024 to 4096 bits");
  const int bits = BN_num_bits(modulus.get());
  BignumPtr secret = Read(numbers.private_exponent, bits);
  BignumPtr exponent = Read(numbers.public_exponent, kMostRsaExponentBits);
  if (exponent == nullptr && numbers.public_exponent.size != 0) return Unsupported("an RSA public exponent has at most 64 bits");
  const bool odd = BN_is_odd(modulus.get()) && (exponent == nullptr || (BN_is_odd(exponent.get()) && !BN_is_one(exponent.get())));
  const Status refused = BadArgument("the numbers are not those of an RSA private key");
  if (!odd || secret == nullptr || BN_is_one(secret.get())) return refused;
  BignumPtr prime = Read(numbers.prime1.size != 0 ? numbers.prime1 : numbers.prime2, bits);

  Completion completion(std::move(modulus), std::move(secret));
  EvpPkeyPtr made;
  if (completion.Begin()) {
    if (exponent == nullptr) exponent = completion.FindExponent();
    if (exponent != nullptr && prime == nullptr) prime = completion.FindPrime(exponent.get());
    if (exponent != nullptr && prime != nullptr && !BN_is_one(prime.get())) made = completion.Build(exponent.get(), std::move(prime));
  }
  if (made == nullptr) {
    (void)CryptoFailure("");
    return refused;
  }
  DKE_RETURN_IF_ERROR(CheckPrivateKey(made.get()));
  return made;
}

}  // namespace dke
