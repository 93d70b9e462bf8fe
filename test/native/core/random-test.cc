// Random numbers where the state of the generators is there twice: a machine that was copied, or
// resumed twice.
#include "base/random.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/wait.h>
#include <unistd.h>
#include <memory>

#include "support.h"
#include "digests/hedge.h"
#include "keys/key_table.h"

namespace dke {
namespace {

struct GeneratorDeleter {
  void operator()(EVP_RAND_CTX* generator) const { EVP_RAND_CTX_free(generator); }
};
using Generator = std::unique_ptr<EVP_RAND_CTX, GeneratorDeleter>;

// A generator as a copy of the machine has it: the same one each time.
Generator Copied() {
  static uint8_t entropy[1024] = {7};
  unsigned strength = 256;
  OSSL_PARAM fixed[] = {OSSL_PARAM_construct_uint(OSSL_RAND_PARAM_STRENGTH, &strength),
                        OSSL_PARAM_construct_octet_string(OSSL_RAND_PARAM_TEST_ENTROPY, entropy, sizeof entropy),
                        OSSL_PARAM_construct_octet_string(OSSL_RAND_PARAM_TEST_NONCE, entropy, 16), OSSL_PARAM_construct_end()};
  EVP_RAND* source = EVP_RAND_fetch(nullptr, "TEST-RAND", nullptr);
  EVP_RAND_CTX* parent = EVP_RAND_CTX_new(source, nullptr);
  EVP_RAND_free(source);
  assert_int_equal(EVP_RAND_instantiate(parent, strength, 0, nullptr, 0, fixed), 1);
  OSSL_PARAM cipher[] = {OSSL_PARAM_construct_utf8_string(OSSL_DRBG_PARAM_CIPHER, const_cast<char*>("AES-256-CTR"), 0), OSSL_PARAM_construct_end()};
  EVP_RAND* kind = EVP_RAND_fetch(nullptr, "CTR-DRBG", nullptr);
  EVP_RAND_CTX* generator = EVP_RAND_CTX_new(kind, parent);
  EVP_RAND_free(kind);
  EVP_RAND_CTX_free(parent);
  assert_int_equal(EVP_RAND_instantiate(generator, strength, 0, nullptr, 0, cipher), 1);
  return Generator(generator);
}

TEST(TwoCopiesDrawDifferentValues) {
  uint8_t one[32], two[32];
  assert_int_equal(EVP_RAND_generate(Copied().get(), one, sizeof one, 0, 0, nullptr, 0), 1);
  assert_int_equal(EVP_RAND_generate(Copied().get(), two, sizeof two, 0, 0, nullptr, 0), 1);
  // The copies are copies.
  assert_memory_equal(one, two, sizeof one);
  Good(RandomFrom(Copied().get(), one, sizeof one));
  Good(RandomFrom(Copied().get(), two, sizeof two));
  assert_memory_not_equal(one, two, sizeof one);
}

// How often it was asked: it takes a new seed each time from now on.
unsigned Drawn(EVP_RAND_CTX* generator) {
  unsigned each = 1;
  OSSL_PARAM seeded[] = {OSSL_PARAM_construct_uint(OSSL_DRBG_PARAM_RESEED_REQUESTS, &each), OSSL_PARAM_construct_end()};
  assert_int_equal(EVP_RAND_CTX_set_params(generator, seeded), 1);
  unsigned count = 0;
  OSSL_PARAM asked[] = {OSSL_PARAM_construct_uint(OSSL_DRBG_PARAM_RESEED_COUNTER, &count), OSSL_PARAM_construct_end()};
  assert_int_equal(EVP_RAND_CTX_get_params(generator, asked), 1);
  return count;
}

// libcrypto draws without additional input: what a draw before has stirred in is what keeps copies
// apart.
TEST(WhatLibcryptoDrawsFollowsAFreshDraw) {
  uint8_t dropped[16], one[32], two[32];
  const auto after = [&](uint8_t* out) {
    const Generator copy = Copied();
    Good(RandomFrom(copy.get(), dropped, sizeof dropped));
    assert_int_equal(EVP_RAND_generate(copy.get(), out, 32, 0, 0, nullptr, 0), 1);
  };
  after(one);
  after(two);
  assert_memory_not_equal(one, two, sizeof one);

  EVP_RAND_CTX* const secret = RAND_get0_private(nullptr);
  (void)Drawn(secret);
  Good(RandomSecret(dropped, sizeof dropped));
  const unsigned before = Drawn(secret);
  const EvpPkeyPtr plain(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
  const unsigned own = Drawn(secret) - before;
  const EvpPkeyPtr pair(NewPair("X25519"));
  assert_non_null(plain.get());
  assert_non_null(pair.get());
  assert_int_equal(Drawn(secret) - before, own + own + 1);

  EVP_RAND_CTX* const open = RAND_get0_public(nullptr);
  (void)Drawn(open);
  Good(RandomPublic(dropped, sizeof dropped));
  const unsigned opened = Drawn(open);
  Good(StirPublic());
  assert_int_equal(Drawn(open), opened + 1);
}

TEST(LongDrawsAreFilled) {
  ByteVector all(300'000);
  Good(RandomPublic(all.data(), all.size()));
  for (size_t at = 0; at < all.size(); at += 1000) {
    const ByteVector zeros(1000);
    assert_memory_not_equal(all.data() + at, zeros.data(), zeros.size());
  }
}

// One process with one pid, counter and key; its copy is a fork, and the kernel gives both the same
// bytes.
TEST(TwoCopiesSealTwoMessagesUnderDifferentSalts) {
  const SecureBuffer secret = Good(SecureBuffer::CopyOf(Sequence(1, 32).data(), 32));
  uint8_t random[32] = {5};
  const auto salt = [&](uint64_t count, const char* message) {
    ByteVector out(28);
    Good(HedgeWith(secret, count, random, reinterpret_cast<const uint8_t*>(message), strlen(message), out.data(), out.size()));
    return out;
  };
  AssertBytes(salt(3, "one"), salt(3, "one"));
  assert_true(salt(3, "one") != salt(3, "two"));
  assert_true(salt(3, "one") != salt(4, "one"));
  const ByteVector before = salt(3, "one");
  random[0] = 6;
  assert_true(before != salt(3, "one"));

  // Fork without a new seed: the generators of parent and child are one.
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const Generator both = Copied();
  const pid_t child = fork();
  assert_true(child >= 0);
  uint8_t mine[32];
  if (child == 0) {
    const bool drawn = RandomFrom(both.get(), mine, sizeof mine).ok();
    _exit(drawn && write(ends[1], mine, sizeof mine) == sizeof mine ? 0 : 1);
  }
  Good(RandomFrom(both.get(), mine, sizeof mine));
  uint8_t its[32];
  assert_int_equal(read(ends[0], its, sizeof its), sizeof its);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_memory_not_equal(mine, its, sizeof mine);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
