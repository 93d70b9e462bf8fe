// AES in the modes of SP 800-38A (ECB, CBC, CTR), CBC with PKCS#7 padding, CCM of SP 800-38C and
// GCM of SP 800-38D: whole messages and in parts. In parts, decryption in GCM and CCM holds the
// plaintext back until the tag has been checked, unless the caller takes that over.
#pragma once

#include <memory>
#include <vector>

#include "base/held_bytes.h"
#include "keys/key_table.h"
#include "keys/operation_table.h"

namespace dke {

struct CipherParameters {
  CipherMode mode;
  uint8_t iv[128];
  size_t iv_length = 0;
  const uint8_t* aad = nullptr;
  size_t aad_length = 0;
  size_t tag_length = 16;
  // CCM: how long the message is, without its tag. CCM says so in its first block.
  size_t data_length = 0;
  int counter_bits = 128;
};

// Most bytes of a message in one call, and of additional data: libcrypto counts them in int.
constexpr size_t kMostInput = size_t{1} << 30;
constexpr size_t kMostAad = kMostInput;

// Checks everything that can be checked before a key is there.
Status CheckCipherParameters(const CipherParameters& parameters);

// Upper bound, exact but for padded decryption, of a whole message's output.
size_t CipherLength(Direction direction, const CipherParameters& parameters, size_t input_length);

// Returns the bytes written. kBufferTooSmall before anything is written; input and output may be
// the same memory.
Result<size_t> CipherMessage(KeyRef key, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                             size_t input_length, uint8_t* output, size_t output_length);
Result<size_t> CipherMessage(const KeyPtr& key, Direction direction, const CipherParameters& parameters, const uint8_t* input,
                             size_t input_length, uint8_t* output, size_t output_length);

// A secret key of `bytes` bytes from the front of what `data` encrypts to, in ECB or CBC. `data` is
// whole blocks, and not shorter.
Result<KeyRef> DeriveByEncryption(KeyRef base, const CipherParameters& parameters, const uint8_t* data, size_t length, KeyKind kind,
                                  size_t bytes);

class CcmStream;

class CipherOperation : public Operation {
 public:
  // What decryption in GCM and CCM does with plaintext whose tag was not checked yet.
  enum class Unchecked : uint8_t { kHeldBack, kGivenOut };

  // With `kGivenOut` the caller answers for what is done with the plaintext before `Final` has
  // checked the tag.
  static Result<std::unique_ptr<CipherOperation>> Begin(KeyRef key, Direction direction, const CipherParameters& parameters,
                                                        Unchecked unchecked = Unchecked::kHeldBack);
  ~CipherOperation() override;

  size_t UpdateLength(size_t input_length) const;
  size_t FinalLength() const;
  Result<size_t> Update(const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length);
  Result<size_t> Final(uint8_t* output, size_t output_length);
  // The end of a message whose plaintext is held back, apart from giving it out: checks the tag.
  // Then `Take` gives the plaintext out in pieces, each at most `output_length` bytes long, and
  // `Final` the rest.
  Status Check();
  Result<size_t> Take(uint8_t* output, size_t output_length);
  // The whole message at once, from the key's cached context. Only before the first Update.
  Result<size_t> OneShot(const uint8_t* input, size_t input_length, uint8_t* output, size_t output_length);
  size_t OneShotLength(size_t input_length) const;
  bool started() const { return started_; }

 private:
  CipherOperation(KeyPtr key, Direction direction, const CipherParameters& parameters, Unchecked unchecked);
  Status Start();
  Status CheckKey();
  bool HoldsBack() const;
  bool OpensAuthenticated() const;
  // Bytes of an authenticated message that are known not to be its tag, once so many more have
  // come.
  size_t Released(size_t input_length) const;
  Status Transform(const uint8_t* input, size_t length, uint8_t* output);
  Result<size_t> Open(const uint8_t* input, size_t input_length, uint8_t* output);
  Result<size_t> FinalSealed(uint8_t* output);
  Result<size_t> FinalPadded(uint8_t* output, size_t output_length);

  KeyPtr key_;
  const Direction direction_;
  const Unchecked unchecked_;
  CipherParameters parameters_;
  std::vector<uint8_t> aad_;
  EvpCipherCtxPtr context_;
  std::unique_ptr<CcmStream> ccm_;
  bool started_ = false;
  bool checked_ = false;
  size_t total_ = 0;
  HeldBytes held_;
  // The last bytes that have come, which may be the tag of a message that is being decrypted.
  uint8_t tail_[16] = {};
  size_t tail_length_ = 0;
  // Padded decryption: the last piece, when the caller's buffer was too small for it.
  std::unique_ptr<uint8_t, CryptoFree> last_;
  size_t last_length_ = 0;
};

}  // namespace dke
