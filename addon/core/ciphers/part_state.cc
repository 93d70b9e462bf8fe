#include "ciphers/part_state.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/assert.h"
#include "base/bytes.h"
#include "ciphers/ccm.h"
#include "ciphers/mode_blocks.h"
#include "ciphers/mac_parts.h"

namespace dke {
namespace {

// What must be the same in every part, the token key among it.
Result<std::vector<uint8_t>> Binding(const ServiceKey& service, const Key& key, PartUse use, uint8_t algorithm, const CipherParameters* cipher) {
  std::vector<uint8_t> binding = {static_cast<uint8_t>(use), algorithm};
  uint8_t fingerprint[32];
  DKE_RETURN_IF_ERROR(service.Fingerprint(key.secret, fingerprint));
  AppendField(binding, fingerprint, sizeof fingerprint);
  if (cipher == nullptr) return binding;
  uint8_t length[8];
  PutU64(length, cipher->mode == CipherMode::kCcm ? cipher->data_length : 0);
  binding.push_back(static_cast<uint8_t>(cipher->tag_length));
  binding.insert(binding.end(), length, length + sizeof length);
  AppendField(binding, cipher->iv, cipher->iv_length);
  return binding;
}

// The state that the part before has left, or that of a new message.
template <typename State, typename Algorithm>
Result<State> StateOf(const ServiceKey& service, const std::vector<uint8_t>& binding, const MessagePart& part, const Algorithm& algorithm) {
  if (part.state_length == 0) return State();
  Result<SecureBuffer> plain = service.Open(binding, part.state, part.state_length);
  if (!plain.ok()) return plain.status();
  return State::Parse(algorithm, plain.value().data(), plain.value().size());
}

// --- GCM and CCM ---------------------------------------------------------------------------------

// One part of a message: authenticates ciphertext (GCM) or plaintext (CCM), and encrypts or
// decrypts.
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
      return Authenticate(encrypting ? output : input, length);
    }
    Wiped<kChunk> scratch;
    for (size_t at = 0; at < length;) {
      const size_t piece = output == nullptr ? std::min(length - at, kChunk) : length - at;
      uint8_t* const out = output == nullptr ? scratch.bytes : output + at;
      DKE_RETURN_IF_ERROR(ApplyCounter(key_, first_, false, state_.total, input + at, piece, out));
      DKE_RETURN_IF_ERROR(Authenticate(encrypting ? input + at : out, piece));
      at += piece;
    }
    return {};
  }

  Status Tag(uint8_t tag[kBlock]) {
    Wiped<kBlock> mask;
    DKE_RETURN_IF_ERROR(EncryptBlock(key_, first_, mask.bytes));
    if (is_gcm_) {
      DKE_RETURN_IF_ERROR(ghash_->AddPadded(state_.rest, state_.rest_length()));
      StoreElement(ghash_->End(state_.aad_length * 8, state_.total * 8), tag);
    } else {
      // Padded with zeros, which are there.
      DKE_RETURN_IF_ERROR(ChainBlocks(key_, state_.chain, state_.rest, state_.rest_length() == 0 ? 0 : kBlock));
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
    DKE_RETURN_IF_ERROR(Absorb(state_.rest, state_.rest_length(), kBlock, false, data, length,
                               [this](const uint8_t* blocks, size_t size) { return Blocks(blocks, size); }));
    state_.total += length;
    return {};
  }

  const Key& key_;
  const CipherParameters& parameters_;
  const bool is_gcm_;
  CipherState& state_;
  std::unique_ptr<Ghash> ghash_;
  uint8_t first_[kBlock] = {};
};

}  // namespace

Result<std::vector<uint8_t>> PartBinding(const ServiceKey& service, const Key& key, PartUse use, const CipherParameters& parameters) {
  return Binding(service, key, use, static_cast<uint8_t>(parameters.mode), &parameters);
}

size_t CipherPartLength(PartUse use, const CipherParameters& parameters, bool last, size_t input_length) {
  if (use == PartUse::kCheck) return 0;
  if (!last) return input_length;
  if (use == PartUse::kEncrypt) return input_length + parameters.tag_length;
  return input_length < parameters.tag_length ? 0 : input_length - parameters.tag_length;
}

Result<CipherPartDone> CipherPart(KeyRef ref, const ServiceKey& service, PartUse use, const CipherParameters& parameters, const MessagePart& part,
                                  uint8_t* output, size_t output_length) {
  const bool encrypting = use == PartUse::kEncrypt;
  const size_t tag_length = !encrypting && part.last ? parameters.tag_length : 0;
  if (use == PartUse::kMac || (parameters.mode != CipherMode::kGcm && parameters.mode != CipherMode::kCcm)) {
    return BadArgument("only GCM and CCM go part by part");
  }
  DKE_RETURN_IF_ERROR(CheckCipherParameters(parameters));
  if (part.input_length > kMostInput) return DataLength("the input is longer than 2^30 bytes");
  if (part.input_length < tag_length) return DataLength("the input is shorter than its tag");
  if (output_length < CipherPartLength(use, parameters, part.last, part.input_length)) return BufferTooSmall();
  const bool is_first = part.state_length == 0;
  if (!is_first && parameters.aad_length != 0) return BadArgument("the additional data come with the first part");
  KeyUse key(ref);
  if (!key) return BadKey();
  if (!key.is_aes()) return WrongKeyType();

  const Result<std::vector<uint8_t>> binding = PartBinding(service, *key, use, parameters);
  if (!binding.ok()) return binding.status();
  Result<CipherState> opened = StateOf<CipherState>(service, binding.value(), part, parameters);
  if (!opened.ok()) return opened.status();
  CipherState& state = opened.value();
  if (is_first) state.aad_length = parameters.aad_length;
  const size_t length = part.input_length - tag_length;
  const uint64_t at = state.total;
  const uint64_t all = at + length;
  if (parameters.mode == CipherMode::kGcm && all > kMostGcm) return DataLength("the message is longer than GCM takes");
  if (parameters.mode == CipherMode::kCcm && (all > parameters.data_length || (part.last && all != parameters.data_length))) {
    return DataLength("the message is not as long as it was said to be");
  }
  PartCipher cipher(*key, parameters, state);
  DKE_RETURN_IF_ERROR(cipher.Begin(is_first));
  DKE_RETURN_IF_ERROR(cipher.Run(encrypting, part.input, length, use == PartUse::kCheck ? nullptr : output));
  DKE_ASSERT(state.total == all);
  if (!part.last) {
    cipher.Save();
    Wiped<CipherState::kSize> saved;
    state.Save(saved.bytes);
    Result<std::vector<uint8_t>> sealed = service.Seal(binding.value(), saved.bytes, sizeof saved.bytes);
    if (!sealed.ok()) return sealed.status();
    return CipherPartDone{sealed.Take(), at};
  }
  Wiped<kBlock> tag;
  DKE_RETURN_IF_ERROR(cipher.Tag(tag.bytes));
  if (encrypting) {
    memcpy(output + length, tag.bytes, parameters.tag_length);
  } else if (CRYPTO_memcmp(tag.bytes, part.input + length, tag_length) != 0) {
    if (use == PartUse::kDecrypt) Wipe(output, length);
    return AuthenticationFailed();
  }
  return CipherPartDone{{}, at};
}

Result<std::vector<uint8_t>> MacPart(KeyRef ref, const ServiceKey& service, const MacParameters& parameters, const MessagePart& part) {
  if (part.input_length > kMostInput) return DataLength("the input is longer than 2^30 bytes");
  const MacRow& row = Row(parameters);
  KeyUse key(ref);
  DKE_RETURN_IF_ERROR(CheckMacKey(key, row));

  const Result<std::vector<uint8_t>> binding = Binding(service, *key, PartUse::kMac, static_cast<uint8_t>(row.index), nullptr);
  if (!binding.ok()) return binding.status();
  Result<MacState> opened = StateOf<MacState>(service, binding.value(), part, row);
  if (!opened.ok()) return opened.status();
  MacState& state = opened.value();
  Result<std::unique_ptr<MacParts>> parts = MacParts::Begin(*key, row, state, part.state_length == 0);
  if (!parts.ok()) return parts.status();
  DKE_RETURN_IF_ERROR(parts.value()->Update(part.input, part.input_length));
  if (!part.last) {
    parts.value()->Keep();
    Wiped<MacState::kMost> saved;
    state.Save(row, saved.bytes);
    return service.Seal(binding.value(), saved.bytes, MacState::Size(row));
  }
  std::vector<uint8_t> mac(row.bytes);
  DKE_RETURN_IF_ERROR(parts.value()->End(mac.data()));
  return mac;
}

}  // namespace dke
