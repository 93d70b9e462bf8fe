// Key records, format 1: a key at rest, sealed under a key encryption key. The bytes are described
// in ../FORMAT.md and never change; a new layout gets a new number.
#pragma once

#include <string>
#include <vector>

#include "keys/key_table.h"

namespace dke {

// What a record is bound to. A record opens only under exactly these.
struct RecordContext {
  uint8_t tenant[16];
  uint8_t object[16];
  uint32_t version;
  uint32_t epoch;
  std::string record_class;
  std::vector<uint8_t> attributes;
};

struct RecordHead {
  uint32_t epoch;
  uint32_t version;
};

constexpr size_t kRecordSalt = 32;

Result<std::vector<uint8_t>> SealRecord(KeyRef kek, const RecordContext& context, KeyRef key);
Result<KeyRef> OpenRecord(KeyRef kek, const RecordContext& context, const uint8_t* record, size_t size);
// Opens a record and seals its content under another KEK or another context, with a fresh salt. The
// key itself is never built: the cost is the same for every kind of key.
Result<std::vector<uint8_t>> ResealRecord(KeyRef from, const RecordContext& was, const uint8_t* record, size_t size, KeyRef to,
                                          const RecordContext& becomes);
Result<RecordHead> PeekRecord(const uint8_t* record, size_t size);

// Seals with a given salt, only for the fixed vectors: a salt is used once.
Result<std::vector<uint8_t>> SealRecordWithSalt(KeyRef kek, const RecordContext& context, KeyRef key, const uint8_t (&salt)[kRecordSalt]);

}  // namespace dke
