#include "ciphers/part_state.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/bytes.h"
#include "ciphers/ccm.h"
#include "digests/digest.h"
#include "digests/digest_state.h"
#include "digests/kdf.h"
#include "ciphers/mode_blocks.h"

namespace dke {
namespace {

constexpr size_t kSalt = 32;
constexpr size_t kSealTag = 16;
constexpr size_t kMostPart = size_t{1} << 30;
// SP 800-38D, 5.2.1.1.
constexpr uint64_t kMostGcm = (uint64_t{1} << 36) - 32;
constexpr char kSaltInfo[] = "dke message part: salt";
constexpr char kSealInfo[] = "dke message part: seal";

// --- the sealed state -------------------------------------------------------------------------------------------------

// What must be the same in every part.
std::vector<uint8_t> Binding(PartUse use, uint8_t algorithm, const CipherParameters* cipher, const MessagePart& part) {
  std::vector<uint8_t> binding = {1, static_cast<uint8_t>(use), algorithm};
  if (cipher != nullptr) {
    uint8_t length[8];
    PutU64(length, cipher->mode == CipherMode::kCcm ? cipher->data_length : 0);
    binding.push_back(static_cast<uint8_t>(cipher->tag_length));
    binding.insert(binding.end(), length, length + sizeof length);
    AppendField(binding, cipher->iv, cipher->iv_length);
  }
  AppendField(binding, part.context, part.context_length);
  return binding;
}

Status Derive(const Key& key, const std::vector<uint8_t>& info, const uint8_t* salt, size_t salt_length, uint8_t out[32]) {
  return HkdfInto(Digest::kSha256, key.secret.data(), key.secret.size(), salt, salt_length, info.data(), info.size(), out, 32);
}

// AES-256-GCM under a key of one use: it follows from the salt, and the salt from all that is sealed.
Result<EvpCipherCtxPtr> SealContext(const Key& key, const uint8_t salt[kSalt], const std::vector<uint8_t>& binding, int encrypting) {
  const uint8_t nonce[12] = {};
  Wiped<32> seal_key;
  DKE_RETURN_IF_ERROR(Derive(key, std::vector<uint8_t>(std::begin(kSealInfo), std::end(kSealInfo)), salt, kSalt, seal_key.bytes));
  EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
  int written = 0;
  if (context == nullptr ||
      EVP_CipherInit_ex(context.get(), AesCipher(Row(CipherMode::kGcm), 32), nullptr, seal_key.bytes, nonce, encrypting) != 1 ||
      EVP_CipherUpdate(context.get(), nullptr, &written, binding.data(), static_cast<int>(binding.size())) != 1) {
    return CryptoFailure("sealing");
  }
  return context;
}

Result<std::vector<uint8_t>> Seal(const Key& key, const std::vector<uint8_t>& binding, const uint8_t* plain, size_t size) {
  std::vector<uint8_t> sealed(kSalt + size + kSealTag);
  std::vector<uint8_t> all(std::begin(kSaltInfo), std::end(kSaltInfo));
  all.reserve(all.size() + binding.size() + size);
  all.insert(all.end(), binding.begin(), binding.end());
  all.insert(all.end(), plain, plain + size);
  const Status derived = Derive(key, all, nullptr, 0, sealed.data());
  Wipe(all.data(), all.size());
  DKE_RETURN_IF_ERROR(derived);
  Result<EvpCipherCtxPtr> context = SealContext(key, sealed.data(), binding, 1);
  if (!context.ok()) return context.status();
  int written = 0;
  if (EVP_CipherUpdate(context.value().get(), sealed.data() + kSalt, &written, plain, static_cast<int>(size)) != 1 ||
      EVP_CipherFinal_ex(context.value().get(), sealed.data() + kSalt + size, &written) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.value().get(), EVP_CTRL_AEAD_GET_TAG, kSealTag, sealed.data() + kSalt + size) != 1) {
    return CryptoFailure("sealing");
  }
  return sealed;
}

Status Open(const Key& key, const std::vector<uint8_t>& binding, const MessagePart& part, uint8_t* plain, size_t size) {
  const Status refused = BadArgument("the state of the part before does not open");
  if (part.state_length != kSalt + size + kSealTag) return refused;
  Result<EvpCipherCtxPtr> context = SealContext(key, part.state, binding, 0);
  if (!context.ok()) return context.status();
  uint8_t tag[kSealTag];
  uint8_t none[kBlock];
  int written = 0;
  memcpy(tag, part.state + kSalt + size, sizeof tag);
  if (EVP_CipherUpdate(context.value().get(), plain, &written, part.state + kSalt, static_cast<int>(size)) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.value().get(), EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) != 1 ||
      EVP_CipherFinal_ex(context.value().get(), none, &written) != 1) {
    (void)CryptoFailure("");
    Wipe(plain, size);
    return refused;
  }
  return {};
}

// --- GCM and CCM ------------------------------------------------------------------------------------------------------

// What goes from one part to the next.
struct CipherState {
  static constexpr size_t kSize = 2 * kBlock + 17;
  uint8_t chain[kBlock] = {};  // GHASH, or CBC, of whole blocks
  uint8_t rest[kBlock] = {};   // what has not made a block yet
  size_t rest_length = 0;
  uint64_t total = 0;
  uint64_t aad_length = 0;
  ~CipherState() { Wipe(this, sizeof *this); }

  void Save(uint8_t out[kSize]) const {
    memcpy(out, chain, kBlock);
    memcpy(out + kBlock, rest, kBlock);
    out[2 * kBlock] = static_cast<uint8_t>(rest_length);
    PutU64(out + 2 * kBlock + 1, total);
    PutU64(out + 2 * kBlock + 9, aad_length);
  }
  void Load(const uint8_t in[kSize]) {
    memcpy(chain, in, kBlock);
    memcpy(rest, in + kBlock, kBlock);
    rest_length = in[2 * kBlock];
    total = GetU64(in + 2 * kBlock + 1);
    aad_length = GetU64(in + 2 * kBlock + 9);
  }
};

// One part of a message: authenticates ciphertext (GCM) or plaintext (CCM), and encrypts or decrypts.
class PartCipher {
 public:
  PartCipher(const Key& key, const CipherParameters& parameters, CipherState& state)
      : key_(key), parameters_(parameters), is_gcm_(parameters.mode == CipherMode::kGcm), state_(state) {}
  ~PartCipher() { Wipe(first_, sizeof first_); }

  Status Begin(bool is_first) {
    if (is_gcm_) {
      DKE_RETURN_IF_ERROR(GcmFirstBlock(key_, parameters_, first_));
      Result<std::unique_ptr<Ghash>> ghash = Ghash::Begin(key_);
      if (!ghash.ok()) return ghash.status();
      ghash_ = ghash.Take();
      ghash_->value = LoadElement(state_.chain);
      return is_first ? ghash_->AddPadded(parameters_.aad, parameters_.aad_length) : Status();
    }
    CcmFirstBlock(parameters_, first_);
    if (!is_first) return {};
    const std::vector<uint8_t> front = CcmFront(parameters_);
    return ChainBlocks(key_, state_.chain, front.data(), front.size());
  }

  // `output` is null where nothing is given out.
  Status Run(bool encrypting, const uint8_t* input, size_t length, uint8_t* output) {
    if (is_gcm_) {
      if (output != nullptr) DKE_RETURN_IF_ERROR(ApplyCounter(key_, first_, true, state_.total, input, length, output));
      DKE_RETURN_IF_ERROR(Authenticate(encrypting ? output : input, length));
      state_.total += length;
      return {};
    }
    Wiped<kChunk> scratch;
    for (size_t at = 0; at < length;) {
      const size_t piece = output == nullptr ? std::min(length - at, kChunk) : length - at;
      uint8_t* const out = output == nullptr ? scratch.bytes : output + at;
      DKE_RETURN_IF_ERROR(ApplyCounter(key_, first_, false, state_.total, input + at, piece, out));
      DKE_RETURN_IF_ERROR(Authenticate(encrypting ? input + at : out, piece));
      state_.total += piece;
      at += piece;
    }
    return {};
  }

  Status Tag(uint8_t tag[kBlock]) {
    Wiped<kBlock> mask;
    DKE_RETURN_IF_ERROR(EncryptBlock(key_, first_, mask.bytes));
    if (is_gcm_) {
      DKE_RETURN_IF_ERROR(ghash_->AddPadded(state_.rest, state_.rest_length));
      StoreElement(ghash_->End(state_.aad_length * 8, state_.total * 8), tag);
    } else {
      memset(state_.rest + state_.rest_length, 0, kBlock - state_.rest_length);
      DKE_RETURN_IF_ERROR(ChainBlocks(key_, state_.chain, state_.rest, state_.rest_length == 0 ? 0 : kBlock));
      memcpy(tag, state_.chain, kBlock);
    }
    for (size_t i = 0; i < kBlock; i++) tag[i] ^= mask.bytes[i];
    return {};
  }

  void Save() {
    if (is_gcm_) StoreElement(ghash_->value, state_.chain);
  }

 private:
  Status Blocks(const uint8_t* data, size_t length) {
    return is_gcm_ ? ghash_->Add(data, length) : ChainBlocks(key_, state_.chain, data, length);
  }

  Status Authenticate(const uint8_t* data, size_t length) {
    if (state_.rest_length > 0) {
      const size_t taken = std::min(length, kBlock - state_.rest_length);
      if (taken > 0) memcpy(state_.rest + state_.rest_length, data, taken);
      state_.rest_length += taken;
      data += taken;
      length -= taken;
      if (state_.rest_length < kBlock) return {};
      DKE_RETURN_IF_ERROR(Blocks(state_.rest, kBlock));
      state_.rest_length = 0;
    }
    const size_t whole = length - length % kBlock;
    DKE_RETURN_IF_ERROR(Blocks(data, whole));
    state_.rest_length = length - whole;
    if (state_.rest_length > 0) memcpy(state_.rest, data + whole, state_.rest_length);
    return {};
  }

  const Key& key_;
  const CipherParameters& parameters_;
  const bool is_gcm_;
  CipherState& state_;
  std::unique_ptr<Ghash> ghash_;
  uint8_t first_[kBlock] = {};
};

// --- HMAC and CMAC ----------------------------------------------------------------------------------------------------

// FIPS 198-1: the key as one block, combined with the inner or the outer pad.
Status HmacBlock(const Key& key, Digest digest, size_t block, uint8_t pad, uint8_t* out) {
  memset(out, 0, block);
  if (key.secret.size() > block) {
    Result<size_t> hashed = DigestMessage(digest, key.secret.data(), key.secret.size(), out, block);
    if (!hashed.ok()) return hashed.status();
  } else {
    memcpy(out, key.secret.data(), key.secret.size());
  }
  for (size_t i = 0; i < block; i++) out[i] ^= pad;
  return {};
}

struct MacState {
  static constexpr size_t kMost = DigestState::kMostSaved + DigestState::kMostBlock + 9;
  uint8_t chain[DigestState::kMostSaved] = {};
  uint8_t rest[DigestState::kMostBlock] = {};
  size_t rest_length = 0;
  uint64_t total = 0;
  ~MacState() { Wipe(this, sizeof *this); }
};

// SP 800-38B, 6.1: the subkeys.
void Double(uint8_t block[kBlock]) {
  const uint8_t carry = static_cast<uint8_t>(0 - (block[0] >> 7));
  for (size_t i = 0; i < kBlock; i++) block[i] = static_cast<uint8_t>(block[i] << 1 | (i + 1 < kBlock ? block[i + 1] >> 7 : 0));
  block[kBlock - 1] ^= carry & 0x87;
}

// Takes whole blocks out of what was left over and what has come; the rest is kept. CMAC keeps the last block too, which it treats apart.
template <typename Blocks>
Status Absorb(MacState& state, size_t block, bool keeps_last, const uint8_t* data, size_t length, const Blocks& blocks) {
  state.total += length;
  const size_t spare = keeps_last ? 1 : 0;
  if (state.rest_length > 0) {
    const size_t taken = std::min(length, block - state.rest_length);
    if (taken > 0) memcpy(state.rest + state.rest_length, data, taken);
    state.rest_length += taken;
    data += taken;
    length -= taken;
    if (state.rest_length < block || length < spare) return {};
    DKE_RETURN_IF_ERROR(blocks(state.rest, block));
    state.rest_length = 0;
  }
  const size_t whole = length < spare ? 0 : (length - spare) / block * block;
  DKE_RETURN_IF_ERROR(blocks(data, whole));
  state.rest_length = length - whole;
  if (state.rest_length > 0) memcpy(state.rest, data + whole, state.rest_length);
  return {};
}

Status CmacEnd(const Key& key, MacState& state, uint8_t mac[kBlock]) {
  Wiped<kBlock> subkey;
  const uint8_t zeros[kBlock] = {};
  DKE_RETURN_IF_ERROR(EncryptBlock(key, zeros, subkey.bytes));
  Double(subkey.bytes);
  if (state.rest_length < kBlock) {
    Double(subkey.bytes);
    state.rest[state.rest_length] = 0x80;
    memset(state.rest + state.rest_length + 1, 0, kBlock - state.rest_length - 1);
  }
  for (size_t i = 0; i < kBlock; i++) state.rest[i] ^= subkey.bytes[i];
  DKE_RETURN_IF_ERROR(ChainBlocks(key, state.chain, state.rest, kBlock));
  memcpy(mac, state.chain, kBlock);
  return {};
}

Status HmacEnd(const Key& key, Digest digest, DigestState& inner, const MacState& state, uint8_t* mac) {
  const size_t block = inner.block();
  const size_t bytes = Row(digest).bytes;
  Wiped<DigestState::kMostBlock + SHA512_DIGEST_LENGTH> outer;
  DKE_RETURN_IF_ERROR(HmacBlock(key, digest, block, 0x5c, outer.bytes));
  inner.Finish(state.rest, state.rest_length, block + state.total, outer.bytes + block);
  Result<size_t> done = DigestMessage(digest, outer.bytes, block + bytes, mac, bytes);
  return done.ok() ? Status() : done.status();
}

}  // namespace

size_t CipherPartLength(PartUse use, const CipherParameters& parameters, bool last, size_t input_length) {
  if (use == PartUse::kCheck) return 0;
  if (!last) return input_length;
  if (use == PartUse::kEncrypt) return input_length + parameters.tag_length;
  return input_length < parameters.tag_length ? 0 : input_length - parameters.tag_length;
}

Result<std::vector<uint8_t>> CipherPart(KeyRef ref, PartUse use, const CipherParameters& parameters, const MessagePart& part, uint8_t* output,
                                        size_t output_length) {
  const bool encrypting = use == PartUse::kEncrypt;
  const size_t tag_length = !encrypting && part.last ? parameters.tag_length : 0;
  if (use == PartUse::kMac || (parameters.mode != CipherMode::kGcm && parameters.mode != CipherMode::kCcm)) {
    return BadArgument("only GCM and CCM go part by part");
  }
  DKE_RETURN_IF_ERROR(CheckCipherParameters(parameters));
  if (part.input_length > kMostPart) return DataLength("the input is longer than 2^30 bytes");
  if (part.input_length < tag_length) return DataLength("the input is shorter than its tag");
  if (output_length < CipherPartLength(use, parameters, part.last, part.input_length)) return BufferTooSmall();
  KeyUse key(ref);
  if (!key) return BadKey();
  if (!key.is_aes()) return WrongKeyType();

  const std::vector<uint8_t> binding = Binding(use, static_cast<uint8_t>(parameters.mode), &parameters, part);
  const bool is_first = part.state_length == 0;
  CipherState state;
  Wiped<CipherState::kSize> saved;
  if (is_first) {
    state.aad_length = parameters.aad_length;
  } else {
    if (parameters.aad_length != 0) return BadArgument("the additional data come with the first part");
    DKE_RETURN_IF_ERROR(Open(*key, binding, part, saved.bytes, sizeof saved.bytes));
    state.Load(saved.bytes);
  }
  const size_t length = part.input_length - tag_length;
  const uint64_t all = state.total + length;
  if (parameters.mode == CipherMode::kGcm && all > kMostGcm) return DataLength("the message is longer than GCM takes");
  if (parameters.mode == CipherMode::kCcm && (all > parameters.data_length || (part.last && all != parameters.data_length))) {
    return DataLength("the message is not as long as it was said to be");
  }
  PartCipher cipher(*key, parameters, state);
  DKE_RETURN_IF_ERROR(cipher.Begin(is_first));
  DKE_RETURN_IF_ERROR(cipher.Run(encrypting, part.input, length, use == PartUse::kCheck ? nullptr : output));
  if (!part.last) {
    cipher.Save();
    state.Save(saved.bytes);
    return Seal(*key, binding, saved.bytes, sizeof saved.bytes);
  }
  Wiped<kBlock> tag;
  DKE_RETURN_IF_ERROR(cipher.Tag(tag.bytes));
  if (encrypting) {
    memcpy(output + length, tag.bytes, parameters.tag_length);
  } else if (CRYPTO_memcmp(tag.bytes, part.input + length, tag_length) != 0) {
    if (use == PartUse::kDecrypt) Wipe(output, length);
    return AuthenticationFailed();
  }
  return std::vector<uint8_t>();
}

Result<std::vector<uint8_t>> MacPart(KeyRef ref, const MacParameters& parameters, const MessagePart& part) {
  if (part.input_length > kMostPart) return DataLength("the input is longer than 2^30 bytes");
  KeyUse key(ref);
  if (!key) return BadKey();
  if (!key.is_data_key() || (parameters.cmac && !key.is_aes())) return WrongKeyType();

  const uint8_t algorithm = parameters.cmac ? 0xff : static_cast<uint8_t>(parameters.digest);
  const std::vector<uint8_t> binding = Binding(PartUse::kMac, algorithm, nullptr, part);
  DigestState inner(parameters.digest);
  const size_t block = parameters.cmac ? kBlock : inner.block();
  const size_t chain = parameters.cmac ? kBlock : inner.saved_size();
  const size_t size = chain + block + 9;
  MacState state;
  Wiped<MacState::kMost> saved;
  if (part.state_length != 0) {
    DKE_RETURN_IF_ERROR(Open(*key, binding, part, saved.bytes, size));
    memcpy(state.chain, saved.bytes, chain);
    memcpy(state.rest, saved.bytes + chain, block);
    state.rest_length = saved.bytes[chain + block];
    state.total = GetU64(saved.bytes + chain + block + 1);
    if (!parameters.cmac) inner.Load(state.chain);
  } else if (!parameters.cmac) {
    Wiped<DigestState::kMostBlock> pad;
    DKE_RETURN_IF_ERROR(HmacBlock(*key, parameters.digest, block, 0x36, pad.bytes));
    inner.Blocks(pad.bytes, 1);
  }
  DKE_RETURN_IF_ERROR(Absorb(state, block, parameters.cmac, part.input, part.input_length, [&](const uint8_t* data, size_t length) -> Status {
    if (parameters.cmac) return ChainBlocks(*key, state.chain, data, length);
    if (length > 0) inner.Blocks(data, length / block);
    return {};
  }));
  if (!part.last) {
    if (!parameters.cmac) inner.Save(state.chain);
    memcpy(saved.bytes, state.chain, chain);
    memcpy(saved.bytes + chain, state.rest, block);
    saved.bytes[chain + block] = static_cast<uint8_t>(state.rest_length);
    PutU64(saved.bytes + chain + block + 1, state.total);
    return Seal(*key, binding, saved.bytes, size);
  }
  std::vector<uint8_t> mac(MacLength(parameters));
  DKE_RETURN_IF_ERROR(parameters.cmac ? CmacEnd(*key, state, mac.data()) : HmacEnd(*key, parameters.digest, inner, state, mac.data()));
  return mac;
}

}  // namespace dke
