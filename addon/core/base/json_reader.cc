#include "base/json_reader.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace dke {
namespace {

class Reader {
 public:
  Reader(const uint8_t* data, size_t size, size_t max_depth, JsonVisitor& visitor)
      : cursor_(data), end_(data + size), max_depth_(max_depth), visitor_(visitor) {}

  const char* Document() {
    SkipSpace();
    if (!At('{')) return "the body is not a JSON object";
    if (!Object(1, std::string_view())) return error_;
    SkipSpace();
    if (cursor_ != end_) return "there is more after the JSON object";
    return nullptr;
  }

 private:
  bool Refuse(const char* why) {
    error_ = why;
    return false;
  }
  bool At(char c) const { return cursor_ != end_ && *cursor_ == static_cast<uint8_t>(c); }
  bool Take(char c) {
    if (!At(c)) return false;
    cursor_++;
    return true;
  }
  void SkipSpace() {
    while (cursor_ != end_ && (*cursor_ == ' ' || *cursor_ == '\t' || *cursor_ == '\n' || *cursor_ == '\r')) cursor_++;
  }

  bool Object(size_t depth, std::string_view parent) {
    if (depth > max_depth_) return Refuse("the JSON is nested too deeply");
    cursor_++;
    SkipSpace();
    if (Take('}')) return true;
    std::vector<std::string_view> names;
    names.reserve(kUsualMembers);
    for (;;) {
      std::string_view raw;
      if (!At('"') || !String(&raw)) return error_ != nullptr ? false : Refuse("a member's name is missing");
      const std::string_view name = Name(raw);
      if (std::find(names.begin(), names.end(), name) != names.end()) return Refuse("a member stands twice");
      if (names.size() == kMaxMembers) return Refuse("an object has too many members");
      names.push_back(name);
      SkipSpace();
      if (!Take(':')) return Refuse("a colon is missing");
      SkipSpace();
      JsonValue value;
      if (!Value(depth, name, &value)) return false;
      if (!visitor_.Member(depth, parent, name, value)) return Refuse("a member is refused");
      SkipSpace();
      if (Take('}')) return true;
      if (!Take(',')) return Refuse("a comma is missing");
      SkipSpace();
    }
  }

  // A name is in the input as it is, but for the rare one with escapes, which is kept until the
  // document is read.
  std::string_view Name(std::string_view raw) {
    if (raw.find('\\') == std::string_view::npos) return raw;
    std::string& name = names_with_escapes_.emplace_back(raw.size(), '\0');
    name.resize(UnescapeJson(raw, reinterpret_cast<uint8_t*>(name.data())));
    return name;
  }

  bool Array(size_t depth) {
    if (depth > max_depth_) return Refuse("the JSON is nested too deeply");
    cursor_++;
    SkipSpace();
    if (Take(']')) return true;
    for (;;) {
      JsonValue value;
      SkipSpace();
      // An object in an array has no name of its own: nothing in it is a member anyone asks for.
      if (!Value(depth, "[]", &value)) return false;
      SkipSpace();
      if (Take(']')) return true;
      if (!Take(',')) return Refuse("a comma is missing");
    }
  }

  bool Value(size_t depth, std::string_view name, JsonValue* value) {
    if (cursor_ == end_) return Refuse("the JSON ends too early");
    const uint8_t* start = cursor_;
    switch (*cursor_) {
      case '{':
        value->type = JsonType::kObject;
        if (!Object(depth + 1, name)) return false;
        break;
      case '[':
        value->type = JsonType::kArray;
        if (!Array(depth + 1)) return false;
        break;
      case '"':
        value->type = JsonType::kString;
        return String(&value->text);
      case 't':
        value->type = JsonType::kBoolean;
        if (!Word("true")) return false;
        break;
      case 'f':
        value->type = JsonType::kBoolean;
        if (!Word("false")) return false;
        break;
      case 'n':
        value->type = JsonType::kNull;
        if (!Word("null")) return false;
        break;
      default:
        value->type = JsonType::kNumber;
        if (!Number()) return false;
    }
    value->text = {reinterpret_cast<const char*>(start), static_cast<size_t>(cursor_ - start)};
    return true;
  }

  bool Word(const char* word) {
    const size_t length = strlen(word);
    if (static_cast<size_t>(end_ - cursor_) < length || memcmp(cursor_, word, length) != 0) return Refuse("the JSON holds an unknown word");
    cursor_ += length;
    return true;
  }

  bool Digits() {
    if (cursor_ == end_ || *cursor_ < '0' || *cursor_ > '9') return false;
    while (cursor_ != end_ && *cursor_ >= '0' && *cursor_ <= '9') cursor_++;
    return true;
  }

  bool Number() {
    static const char* const kBroken = "the JSON holds a broken number";
    Take('-');
    if (At('0')) {
      cursor_++;
    } else if (!Digits()) {
      return Refuse(kBroken);
    }
    if (Take('.') && !Digits()) return Refuse(kBroken);
    if (At('e') || At('E')) {
      cursor_++;
      if (!Take('+')) Take('-');
      if (!Digits()) return Refuse(kBroken);
    }
    return true;
  }

  static int Hex(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  bool Unicode(unsigned* unit) {
    if (end_ - cursor_ < 4) return false;
    *unit = 0;
    for (int i = 0; i < 4; i++) {
      const int digit = Hex(*cursor_++);
      if (digit < 0) return false;
      *unit = *unit << 4 | static_cast<unsigned>(digit);
    }
    return true;
  }

  bool String(std::string_view* text) {
    static const char* const kBroken = "the JSON holds a broken string";
    cursor_++;
    const uint8_t* start = cursor_;
    while (cursor_ != end_) {
      const uint8_t c = *cursor_;
      if (c == '"') {
        *text = {reinterpret_cast<const char*>(start), static_cast<size_t>(cursor_ - start)};
        cursor_++;
        return true;
      }
      if (c < 0x20) return Refuse(kBroken);
      if (c == '\\') {
        cursor_++;
        if (cursor_ == end_) return Refuse(kBroken);
        const uint8_t escaped = *cursor_++;
        if (escaped == 'u') {
          unsigned unit;
          if (!Unicode(&unit)) return Refuse(kBroken);
          if (unit >= 0xdc00 && unit <= 0xdfff) return Refuse(kBroken);
          if (unit >= 0xd800 && unit <= 0xdbff) {
            unsigned low;
            if (end_ - cursor_ < 6 || cursor_[0] != '\\' || cursor_[1] != 'u') return Refuse(kBroken);
            cursor_ += 2;
            if (!Unicode(&low) || low < 0xdc00 || low > 0xdfff) return Refuse(kBroken);
          }
        } else if (strchr("\"\\/bfnrt", escaped) == nullptr || escaped == 0) {
          return Refuse(kBroken);
        }
      } else if (c < 0x80) {
        cursor_++;
      } else if (!Utf8()) {
        return Refuse("the JSON is not valid UTF-8");
      }
    }
    return Refuse(kBroken);
  }

  // One multi-byte character (RFC 3629): shortest form, no surrogates, at most U+10FFFF.
  bool Utf8() {
    const uint8_t lead = *cursor_;
    size_t length;
    uint8_t least = 0x80;
    uint8_t most = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
      length = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      length = 3;
      if (lead == 0xe0) least = 0xa0;
      if (lead == 0xed) most = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      length = 4;
      if (lead == 0xf0) least = 0x90;
      if (lead == 0xf4) most = 0x8f;
    } else {
      return false;
    }
    if (static_cast<size_t>(end_ - cursor_) < length) return false;
    if (cursor_[1] < least || cursor_[1] > most) return false;
    for (size_t i = 2; i < length; i++) {
      if (cursor_[i] < 0x80 || cursor_[i] > 0xbf) return false;
    }
    cursor_ += length;
    return true;
  }

  static constexpr size_t kMaxMembers = 256;
  static constexpr size_t kUsualMembers = 16;
  const uint8_t* cursor_;
  const uint8_t* const end_;
  const size_t max_depth_;
  JsonVisitor& visitor_;
  const char* error_ = nullptr;
  std::deque<std::string> names_with_escapes_;  // elements do not move
};

uint8_t* PutUtf8(uint8_t* out, unsigned point) {
  if (point < 0x80) {
    *out++ = static_cast<uint8_t>(point);
  } else if (point < 0x800) {
    *out++ = static_cast<uint8_t>(0xc0 | point >> 6);
    *out++ = static_cast<uint8_t>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    *out++ = static_cast<uint8_t>(0xe0 | point >> 12);
    *out++ = static_cast<uint8_t>(0x80 | (point >> 6 & 0x3f));
    *out++ = static_cast<uint8_t>(0x80 | (point & 0x3f));
  } else {
    *out++ = static_cast<uint8_t>(0xf0 | point >> 18);
    *out++ = static_cast<uint8_t>(0x80 | (point >> 12 & 0x3f));
    *out++ = static_cast<uint8_t>(0x80 | (point >> 6 & 0x3f));
    *out++ = static_cast<uint8_t>(0x80 | (point & 0x3f));
  }
  return out;
}

unsigned HexUnit(const char* text) {
  unsigned unit = 0;
  for (int i = 0; i < 4; i++) {
    const char c = text[i];
    unit = unit << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return unit;
}

}  // namespace

const char* ReadJsonObject(const uint8_t* data, size_t size, size_t max_depth, JsonVisitor& visitor) {
  return Reader(data, size, max_depth, visitor).Document();
}

size_t UnescapeJson(std::string_view text, uint8_t* out) {
  uint8_t* const start = out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '\\') {
      *out++ = static_cast<uint8_t>(text[i]);
      continue;
    }
    const char escaped = text[++i];
    switch (escaped) {
      case 'b': *out++ = '\b'; break;
      case 'f': *out++ = '\f'; break;
      case 'n': *out++ = '\n'; break;
      case 'r': *out++ = '\r'; break;
      case 't': *out++ = '\t'; break;
      case 'u': {
        unsigned point = HexUnit(text.data() + i + 1);
        i += 4;
        if (point >= 0xd800 && point <= 0xdbff) {
          point = 0x10000 + ((point - 0xd800) << 10) + (HexUnit(text.data() + i + 3) - 0xdc00);
          i += 6;
        }
        out = PutUtf8(out, point);
        break;
      }
      default: *out++ = static_cast<uint8_t>(escaped);
    }
  }
  return static_cast<size_t>(out - start);
}

}  // namespace dke
