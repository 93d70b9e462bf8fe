// A strict JSON reader (RFC 8259) over bytes: valid UTF-8, no byte order mark, no member twice in
// an object, a depth cap, one value and nothing after it. It stores nothing: a visitor receives
// each value with its position and decides what to copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dke {

enum class JsonType : uint8_t { kObject, kArray, kString, kNumber, kBoolean, kNull };

// A value as it is in the input. For a string, `text` is what is between the quotes, escapes and
// all.
struct JsonValue {
  JsonType type;
  std::string_view text;
};

class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  // A member of an object at `depth` (1 for the outermost), named `name` (escapes resolved).
  // `parent` is the name of the member that contains this object, empty for the outermost. Return
  // false to refuse the document. Names and value are good during the call.
  virtual bool Member(size_t depth, std::string_view parent, std::string_view name, const JsonValue& value) = 0;
};

// Null, or why the document is refused: a sentence without data.
const char* ReadJsonObject(const uint8_t* data, size_t size, size_t max_depth, JsonVisitor& visitor);

// The characters of a JSON string, escapes resolved, as UTF-8 into `out` (which must have
// text.size() bytes; the result is never longer). Returns the length. Only for text that
// ReadJsonObject accepted.
size_t UnescapeJson(std::string_view text, uint8_t* out);

}  // namespace dke
