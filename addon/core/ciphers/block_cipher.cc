#include "ciphers/block_cipher.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "ciphers/ccm.h"
#include "ciphers/message_state.h"

namespace dke {
namespace {

// Longest CCM message in parts, in bytes: just too long for a signed 32-bit number.
constexpr size_t kMaxCcm = size_t{1} << 31;

int Encrypting(Direction direction) { return direction == Direction::kEncrypt ? 1 : 0; }

// Sets a context up for one message. With `fresh`, cipher and key too; otherwise only the IV.
Status Arm(EVP_CIPHER_CTX* context, const Key& key, Direction direction, const CipherParameters& parameters, bool fresh) {
  const CipherRow& row = Row(parameters.mode);
  const EVP_CIPHER* cipher = fresh ? AesCipher(row, key.secret.size()) : nullptr;
  const uint8_t* secret = fresh ? key.secret.data() : nullptr;
  const uint8_t* iv = row.iv_max == 0 ? nullptr : parameters.iv;
  int encrypting = Encrypting(direction);
  if (parameters.mode == CipherMode::kGcm) {
    if (fresh && EVP_CipherInit_ex(context, cipher, nullptr, nullptr, nullptr, encrypting) != 1) return CryptoFailure("GCM");
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(parameters.iv_length), nullptr) != 1 ||
        EVP_CipherInit_ex(context, nullptr, nullptr, secret, iv, encrypting) != 1) {
      return CryptoFailure("GCM");
    }
    int ignored = 0;
    if (parameters.aad_length != 0 &&
        EVP_CipherUpdate(context, nullptr, &ignored, parameters.aad, static_cast<int>(parameters.aad_length)) != 1) {
      return CryptoFailure("GCM additional data");
    }
    return {};
  }
  if (EVP_CipherInit_ex(context, cipher, nullptr, secret, iv, encrypting) != 1) return CryptoFailure("cipher setup");
  if (fresh) EVP_CIPHER_CTX_set_padding(context, row.padded ? 1 : 0);
  return {};
}

bool Authenticates(CipherMode mode) { return mode == CipherMode::kGcm || mode == CipherMode::kCcm; }

// Bytes that a message of CCM may have: its length has 15 - n bytes for a nonce of n bytes (SP
// 800-38C, A.1).
size_t LongestCcm(size_t nonce_length) {
  const size_t bytes = 15 - nonce_length;
  return bytes >= 4 ? kMaxCcm : (size_t{1} << 8 * bytes) - 1;
}

// CCM wants everything before the first byte: the lengths of tag and nonce before the key
// (libcrypto works them into what it prepares with the key), the tag to be checked before that, the
// length of the message before the additional data.
Result<size_t> RunCcm(EVP_CIPHER_CTX* context, const Key& key, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                      uint8_t* output, bool fresh) {
  const int encrypting = Encrypting(direction);
  const size_t body = parameters.data_length;
  const EVP_CIPHER* cipher = fresh ? AesCipher(Row(CipherMode::kCcm), key.secret.size()) : nullptr;
  uint8_t tag[16] = {};
  if (direction == Direction::kDecrypt) memcpy(tag, input + body, parameters.tag_length);
  int written = 0;
  const uint8_t nothing = 0;
  if (EVP_CipherInit_ex(context, cipher, nullptr, nullptr, nullptr, encrypting) != 1 ||
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(parameters.iv_length), nullptr) != 1 ||
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(parameters.tag_length),
                          direction == Direction::kDecrypt ? tag : nullptr) != 1 ||
      EVP_CipherInit_ex(context, nullptr, nullptr, key.secret.data(), parameters.iv, encrypting) != 1 ||
      EVP_CipherUpdate(context, nullptr, &written, nullptr, static_cast<int>(body)) != 1) {
    return CryptoFailure("CCM");
  }
  if (parameters.aad_length != 0 &&
      EVP_CipherUpdate(context, nullptr, &written, parameters.aad, static_cast<int>(parameters.aad_length)) != 1) {
    return CryptoFailure("CCM additional data");
  }
  // The one call that does the work, for an empty message too: it checks the tag, or makes it.
  // Neither pointer may be null.
  uint8_t none;
  if (EVP_CipherUpdate(context, body == 0 ? &none : output, &written, body == 0 ? &nothing : input, static_cast<int>(body)) != 1) {
    if (direction == Direction::kEncrypt) return CryptoFailure("CCM");
    (void)CryptoFailure("");
    Wipe(output, body);
    return AuthenticationFailed();
  }
  if (direction == Direction::kDecrypt) return body;
  if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(parameters.tag_length), output + body) != 1) {
    return CryptoFailure("CCM tag");
  }
  return body + parameters.tag_length;
}

bool FitsBlocks(Direction direction, const CipherRow& row, size_t length) {
  if (!row.whole_blocks) return true;
  if (row.padded && direction == Direction::kEncrypt) return true;
  if (row.padded && length == 0) return false;
  return length % kBlock == 0;
}

// The counter of SP 800-38A may be fewer than 128 bits wide (CK_AES_CTR_PARAMS): it must not run
// over.
bool CounterRunsOver(const CipherParameters& parameters, size_t length) {
  if (parameters.counter_bits >= 128) return false;
  using Number = unsigned __int128;
  Number counter = 0;
  for (size_t i = 0; i < kBlock; i++) counter = counter << 8 | parameters.iv[i];
  const Number limit = Number{1} << parameters.counter_bits;
  return (counter & (limit - 1)) + (length + kBlock - 1) / kBlock > limit;
}

// Whole messages on a context that is already armed.
Result<size_t> RunMessage(EVP_CIPHER_CTX* context, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                          size_t input_length, uint8_t* output) {
  const bool gcm = parameters.mode == CipherMode::kGcm;
  size_t body = input_length;
  if (gcm && direction == Direction::kDecrypt) body -= parameters.tag_length;
  uint8_t tag[16];
  if (gcm && direction == Direction::kDecrypt) memcpy(tag, input + body, parameters.tag_length);
  int written = 0;
  int last = 0;
  if (body != 0 && EVP_CipherUpdate(context, output, &written, input, static_cast<int>(body)) != 1) return CryptoFailure("cipher");
  if (gcm && direction == Direction::kDecrypt &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(parameters.tag_length), tag) != 1) {
    return CryptoFailure("GCM tag");
  }
  if (EVP_CipherFinal_ex(context, output + written, &last) != 1) {
    (void)CryptoFailure("");
    Wipe(output, body);
    return AuthenticationFailed();
  }
  size_t total = static_cast<size_t>(written) + static_cast<size_t>(last);
  if (gcm && direction == Direction::kEncrypt) {
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(parameters.tag_length), output + total) != 1) {
      return CryptoFailure("GCM tag");
    }
    total += parameters.tag_length;
  }
  return total;
}

Status CheckMessage(Direction direction, const CipherParameters& parameters, size_t input_length) {
  const CipherRow& row = Row(parameters.mode);
  if (input_length > kMostInput) return DataLength("the input is longer than 2^30 bytes");
  if (!FitsBlocks(direction, row, input_length)) return DataLength("the input is not a multiple of 16 bytes");
  if (Authenticates(parameters.mode) && direction == Direction::kDecrypt && input_length < parameters.tag_length) {
    return DataLength("the input is shorter than its tag");
  }
  if (parameters.mode == CipherMode::kCcm &&
      input_length != parameters.data_length + (direction == Direction::kDecrypt ? parameters.tag_length : 0)) {
    return DataLength("the message is not as long as it was said to be");
  }
  if (parameters.mode == CipherMode::kCtr && CounterRunsOver(parameters, input_length)) {
    return DataLength("the counter would run over");
  }
  return {};
}

// The padded plaintext may be up to a block shorter than the ciphertext: when the caller's buffer
// has the right size for the plaintext but not for the block, decrypt aside.
Result<size_t> DecryptPaddedAside(EVP_CIPHER_CTX* context, const CipherParameters& parameters, const uint8_t* input, size_t input_length,
                                  uint8_t* output, size_t output_length) {
  std::unique_ptr<uint8_t, CryptoFree> aside(static_cast<uint8_t*>(OPENSSL_malloc(input_length)));
  if (aside == nullptr) return CryptoFailure("memory");
  Result<size_t> length = RunMessage(context, Direction::kDecrypt, parameters, input, input_length, aside.get());
  if (!length.ok()) return length;
  if (length.value() > output_length) return BufferTooSmall();
  if (length.value() != 0) memcpy(output, aside.get(), length.value());
  return length;
}

// With the key locked: one message on the key's cached context.
Result<size_t> MessageWith(Key& key, Direction direction, const CipherParameters& parameters, const uint8_t* input, size_t input_length,
                           uint8_t* output, size_t output_length) {
  DKE_RETURN_IF_ERROR(CheckMessage(direction, parameters, input_length));
  const size_t needed = CipherLength(direction, parameters, input_length);
  const bool padded_decryption = parameters.mode == CipherMode::kCbcPad && direction == Direction::kDecrypt;
  if (output_length < needed && !(padded_decryption && output_length + kBlock >= needed)) return BufferTooSmall();
  EvpCipherCtxPtr& cached = key.contexts[static_cast<size_t>(parameters.mode)][direction == Direction::kEncrypt ? 0 : 1];
  const bool fresh = cached == nullptr;
  if (fresh) cached.reset(EVP_CIPHER_CTX_new());
  if (cached == nullptr) return CryptoFailure("cipher context");
  if (parameters.mode == CipherMode::kCcm) {
    Result<size_t> done = RunCcm(cached.get(), key, direction, parameters, input, output, fresh);
    if (!done.ok()) cached.reset();
    return done;
  }
  Status armed = Arm(cached.get(), key, direction, parameters, fresh);
  if (!armed.ok()) {
    cached.reset();
    return armed;
  }
  Result<size_t> done = output_length < needed
                            ? DecryptPaddedAside(cached.get(), parameters, input, input_length, output, output_length)
                            : RunMessage(cached.get(), direction, parameters, input, input_length, output);
  if (!done.ok()) cached.reset();  // no message inherits the state of a failed one
  return done;
}

}  // namespace

Status CheckCipherParameters(const CipherParameters& parameters) {
  const CipherRow& row = Row(parameters.mode);
  if (parameters.iv_length < row.iv_min || parameters.iv_length > row.iv_max) return BadArgument("the IV has the wrong length");
  if (parameters.mode == CipherMode::kGcm && (parameters.tag_length < 12 || parameters.tag_length > 16)) {
    return BadArgument("a GCM tag has 12 to 16 bytes");
  }
  if (parameters.mode == CipherMode::kCcm) {
    // 4 and 6 bytes are for callers that limit how many forgeries can be tried (SP 800-38C,
    // appendix B.2).
    if (parameters.tag_length < 4 || parameters.tag_length > 16 || parameters.tag_length % 2 != 0) {
      return BadArgument("a CCM tag has 4, 6, 8, 10, 12, 14 or 16 bytes");
    }
    if (parameters.data_length > LongestCcm(parameters.iv_length)) return BadArgument("the message is longer than CCM takes with this nonce");
  }
  if (parameters.counter_bits < 1 || parameters.counter_bits > 128) return BadArgument("a counter has 1 to 128 bits");
  if (parameters.aad_length > kMostAad) return DataLength("the additional data are longer than 2^30 bytes");
  return {};
}

size_t CipherLength(Direction direction, const CipherParameters& parameters, size_t input_length) {
  switch (parameters.mode) {
    case CipherMode::kCbcPad:
      return direction == Direction::kEncrypt ? input_length + kBlock - input_length % kBlock : input_length;
    case CipherMode::kGcm:
    case CipherMode::kCcm:
      if (direction == Direction::kEncrypt) return input_length + parameters.tag_length;
      return input_length < parameters.tag_length ? 0 : input_length - parameters.tag_length;
    default:
      return input_length;
  }
}

Result<size_t> CipherMessage(KeyRef ref, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                             size_t input_length, uint8_t* output, size_t output_length) {
  return CipherMessage(FindKey(ref), direction, parameters, input, input_length, output, output_length);
}

Result<size_t> CipherMessage(const KeyPtr& handle, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                             size_t input_length, uint8_t* output, size_t output_length) {
  DKE_RETURN_IF_ERROR(CheckCipherParameters(parameters));
  KeyUse key(handle);
  if (!key) return BadKey();
  if (!key.is_aes()) return WrongKeyType();
  return MessageWith(*key, direction, parameters, input, input_length, output, output_length);
}

Result<KeyRef> DeriveByEncryption(KeyRef base, const CipherParameters& parameters, const uint8_t* data, size_t length, KeyKind kind,
                                  size_t bytes) {
  if (parameters.mode != CipherMode::kEcb && parameters.mode != CipherMode::kCbc) return BadArgument("keys are derived in ECB and CBC");
  if (length % kBlock != 0 || bytes == 0 || bytes > length) return DataLength("the data is whole blocks, and as long as the key");
  // In both modes no block depends on a later one.
  const size_t used = (bytes + kBlock - 1) / kBlock * kBlock;
  Result<SecureBuffer> made = SecureBuffer::Make(used);
  if (!made.ok()) return made.status();
  Result<size_t> written = CipherMessage(base, Direction::kEncrypt, parameters, data, used, made.value().data(), used);
  if (!written.ok()) return written.status();
  made.value().Truncate(bytes);
  return AddSecretKey(kind, made.Take());
}

CipherOperation::CipherOperation(KeyPtr key, Direction direction, const CipherParameters& parameters, Unchecked unchecked)
    : Operation(OperationType::kCipher), key_(std::move(key)), direction_(direction), unchecked_(unchecked), parameters_(parameters) {}

CipherOperation::~CipherOperation() = default;

Result<std::unique_ptr<CipherOperation>> CipherOperation::Begin(KeyRef ref, Direction direction, const CipherParameters& parameters,
                                                                Unchecked unchecked) {
  DKE_RETURN_IF_ERROR(CheckCipherParameters(parameters));
  KeyPtr key = FindKey(ref);
  if (key == nullptr) return BadKey();
  if (key->description.kind != KeyKind::kAes) return WrongKeyType();
  std::unique_ptr<CipherOperation> operation(new CipherOperation(std::move(key), direction, parameters, unchecked));
  if (parameters.aad_length != 0) {
    operation->aad_.assign(parameters.aad, parameters.aad + parameters.aad_length);
    operation->parameters_.aad = operation->aad_.data();
  }
  return operation;
}

bool CipherOperation::OpensAuthenticated() const { return direction_ == Direction::kDecrypt && Authenticates(parameters_.mode); }

bool CipherOperation::HoldsBack() const { return OpensAuthenticated() && unchecked_ == Unchecked::kHeldBack; }

size_t CipherOperation::Released(size_t input_length) const {
  const size_t all = tail_length_ + input_length;
  return all > parameters_.tag_length ? all - parameters_.tag_length : 0;
}

Status CipherOperation::Start() {
  KeyUse key(key_);
  if (!key) return BadKey();
  if (parameters_.mode == CipherMode::kCcm) {
    Result<std::unique_ptr<CcmStream>> stream = CcmStream::Begin(*key, direction_, parameters_);
    if (!stream.ok()) return stream.status();
    ccm_ = stream.Take();
  } else {
    context_.reset(EVP_CIPHER_CTX_new());
    if (context_ == nullptr) return CryptoFailure("cipher context");
    DKE_RETURN_IF_ERROR(Arm(context_.get(), *key, direction_, parameters_, true));
  }
  started_ = true;
  return {};
}

// A released key's schedule does not outlive the moment in which its end is noticed.
Status CipherOperation::CheckKey() {
  KeyUse key(key_);
  if (key) return {};
  context_.reset();
  ccm_.reset();
  last_.reset();
  return BadKey();
}

size_t CipherOperation::OneShotLength(size_t input_length) const { return CipherLength(direction_, parameters_, input_length); }

Result<size_t> CipherOperation::OneShot(const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length) {
  if (started()) return BadArgument("the operation is already under way");
  KeyUse key(key_);
  if (!key) return BadKey();
  return MessageWith(*key, direction_, parameters_, input, input_length, output, output_length);
}

size_t CipherOperation::UpdateLength(size_t input_length) const {
  const CipherRow& row = Row(parameters_.mode);
  if (HoldsBack()) return 0;
  if (OpensAuthenticated()) return Released(input_length);
  if (!row.whole_blocks) return input_length;
  const size_t pending = total_ % kBlock;
  size_t length = (pending + input_length) / kBlock * kBlock;
  // Padded decryption keeps the last whole block until it knows whether it is the last.
  if (row.padded && direction_ == Direction::kDecrypt) {
    const size_t held = total_ == 0 ? 0 : (pending == 0 ? kBlock : pending);
    const size_t available = held + input_length;
    length = available == 0 ? 0 : (available - 1) / kBlock * kBlock;
  }
  return length;
}

size_t CipherOperation::FinalLength() const {
  const CipherRow& row = Row(parameters_.mode);
  if (OpensAuthenticated()) return held_.size();
  if (Authenticates(parameters_.mode)) return parameters_.tag_length;
  if (row.padded) return kBlock;
  return 0;
}

Status CipherOperation::Transform(const uint8_t* input, size_t length, uint8_t* output) {
  int written = 0;
  if (length == 0) return {};
  if (ccm_ != nullptr) return ccm_->Update(input, length, output);
  return EVP_CipherUpdate(context_.get(), output, &written, input, static_cast<int>(length)) == 1 ? Status() : CryptoFailure("cipher");
}

// All but the last bytes, which may be the tag, are decrypted as they come.
Result<size_t> CipherOperation::Open(const uint8_t* input, size_t input_length, uint8_t* output) {
  const size_t length = Released(input_length);
  const size_t from_tail = std::min(length, tail_length_);
  const size_t from_input = length - from_tail;
  if (HoldsBack() && length != 0) {
    if (held_.size() + length > HeldBytes::kMost) return DataLength("more plaintext than is held back until its tag is checked");
    output = held_.Extend(length);
    if (output == nullptr) return CryptoFailure("memory");
  }
  DKE_RETURN_IF_ERROR(Transform(tail_, from_tail, output));
  DKE_RETURN_IF_ERROR(Transform(input, from_input, length == 0 ? nullptr : output + from_tail));
  memmove(tail_, tail_ + from_tail, tail_length_ - from_tail);
  tail_length_ -= from_tail;
  if (input_length > from_input) memcpy(tail_ + tail_length_, input + from_input, input_length - from_input);
  tail_length_ += input_length - from_input;
  return HoldsBack() ? 0 : length;
}

Result<size_t> CipherOperation::Update(const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length) {
  if (last_ != nullptr || checked_) return BadArgument("the operation waits for its final call");
  if (input_length > kMostInput) return DataLength("the input is longer than 2^30 bytes");
  if (output_length < UpdateLength(input_length)) return BufferTooSmall();
  if (parameters_.mode == CipherMode::kCtr && CounterRunsOver(parameters_, total_ + input_length)) {
    return DataLength("the counter would run over");
  }
  if (parameters_.mode == CipherMode::kGcm && total_ + input_length > kMostGcm) return DataLength("the message is longer than GCM takes");
  if (parameters_.mode == CipherMode::kCcm &&
      total_ + input_length > parameters_.data_length + (direction_ == Direction::kDecrypt ? parameters_.tag_length : 0)) {
    return DataLength("the message is longer than it was said to be");
  }
  DKE_RETURN_IF_ERROR(CheckKey());
  if (!started()) DKE_RETURN_IF_ERROR(Start());
  total_ += input_length;
  if (OpensAuthenticated()) return Open(input, input_length, output);
  if (ccm_ != nullptr) {
    DKE_RETURN_IF_ERROR(Transform(input, input_length, output));
    return input_length;
  }
  int written = 0;
  if (input_length != 0 &&
      EVP_CipherUpdate(context_.get(), output, &written, input, static_cast<int>(input_length)) != 1) {
    return CryptoFailure("cipher");
  }
  return static_cast<size_t>(written);
}

Result<size_t> CipherOperation::Final(uint8_t* output, size_t output_length) {
  const CipherRow& row = Row(parameters_.mode);
  if (OpensAuthenticated()) {
    DKE_RETURN_IF_ERROR(CheckKey());
    if (output_length < held_.size()) return BufferTooSmall();
    if (!checked_) DKE_RETURN_IF_ERROR(Check());
    return held_.Take(output, output_length);
  }
  DKE_RETURN_IF_ERROR(CheckKey());
  if (!started()) DKE_RETURN_IF_ERROR(Start());
  if (row.whole_blocks && !(row.padded && direction_ == Direction::kEncrypt)) {
    if (total_ % kBlock != 0 || (row.padded && total_ == 0)) return DataLength("the input is not a multiple of 16 bytes");
  }
  if (row.padded && direction_ == Direction::kDecrypt) return FinalPadded(output, output_length);
  if (output_length < FinalLength()) return BufferTooSmall();
  if (Authenticates(parameters_.mode)) return FinalSealed(output);
  uint8_t last[kBlock];
  int written = 0;
  if (EVP_CipherFinal_ex(context_.get(), last, &written) != 1) return CryptoFailure("cipher");
  size_t length = static_cast<size_t>(written);
  if (length != 0) memcpy(output, last, length);
  Wipe(last, sizeof last);
  return length;
}

Result<size_t> CipherOperation::FinalSealed(uint8_t* output) {
  if (ccm_ != nullptr) {
    if (total_ != parameters_.data_length) return DataLength("the message is shorter than it was said to be");
    uint8_t tag[kBlock];
    DKE_RETURN_IF_ERROR(ccm_->Tag(tag));
    memcpy(output, tag, parameters_.tag_length);
    return parameters_.tag_length;
  }
  uint8_t none[kBlock];
  int written = 0;
  if (EVP_CipherFinal_ex(context_.get(), none, &written) != 1) return CryptoFailure("cipher");
  if (EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(parameters_.tag_length), output) != 1) {
    return CryptoFailure("GCM tag");
  }
  return parameters_.tag_length;
}

Status CipherOperation::Check() {
  if (!OpensAuthenticated() || checked_) return BadArgument("there is no tag to check");
  DKE_RETURN_IF_ERROR(CheckKey());
  if (!started()) DKE_RETURN_IF_ERROR(Start());
  if (tail_length_ != parameters_.tag_length) return DataLength("the input is shorter than its tag");
  if (ccm_ != nullptr) {
    if (total_ != parameters_.data_length + parameters_.tag_length) return DataLength("the message is shorter than it was said to be");
    uint8_t tag[kBlock];
    DKE_RETURN_IF_ERROR(ccm_->Tag(tag));
    if (CRYPTO_memcmp(tag, tail_, parameters_.tag_length) != 0) return AuthenticationFailed();
  } else {
    uint8_t none[kBlock];
    int written = 0;
    if (EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(parameters_.tag_length), tail_) != 1) {
      return CryptoFailure("GCM tag");
    }
    if (EVP_CipherFinal_ex(context_.get(), none, &written) != 1) {
      (void)CryptoFailure("");
      return AuthenticationFailed();
    }
  }
  checked_ = true;
  return {};
}

Result<size_t> CipherOperation::Take(uint8_t* output, size_t output_length) {
  if (!checked_) return BadArgument("the tag has not been checked");
  DKE_RETURN_IF_ERROR(CheckKey());
  return held_.Take(output, output_length);
}

// The length of a padded message's last piece is known only when the context has given it away: it
// is kept until the caller brings room for it.
Result<size_t> CipherOperation::FinalPadded(uint8_t* output, size_t output_length) {
  if (last_ == nullptr) {
    std::unique_ptr<uint8_t, CryptoFree> block(static_cast<uint8_t*>(OPENSSL_malloc(kBlock)));
    if (block == nullptr) return CryptoFailure("memory");
    int written = 0;
    if (EVP_CipherFinal_ex(context_.get(), block.get(), &written) != 1) {
      (void)CryptoFailure("");
      return AuthenticationFailed();
    }
    last_ = std::move(block);
    last_length_ = static_cast<size_t>(written);
  }
  if (output_length < last_length_) return BufferTooSmall();
  if (last_length_ != 0) memcpy(output, last_.get(), last_length_);
  return last_length_;
}

}  // namespace dke
