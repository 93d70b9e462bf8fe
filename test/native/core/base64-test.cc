// Base64 (RFC 4648): the written form is the only one that is accepted.
#include "base/base64.h"

#include "support.h"

namespace dke {
namespace {

std::string Encoded(const ByteVector& bytes) {
  std::string text(Base64Length(bytes.size()), '#');
  EncodeBase64(bytes.data(), bytes.size(), reinterpret_cast<uint8_t*>(text.data()));
  return text;
}

// The decoded length, or -1. The text is in memory of its own length.
ptrdiff_t Decoded(const std::string& text, ByteVector* out = nullptr) {
  const ByteVector input = BytesOf(text);
  ByteVector bytes(input.size() / 4 * 3);
  const ptrdiff_t length = DecodeBase64(input.data(), input.size(), bytes.data());
  if (length >= 0) bytes.resize(static_cast<size_t>(length));
  if (out != nullptr) *out = bytes;
  return length;
}

TEST(TheStandardsExamplesHold) {
  const std::pair<const char*, const char*> rows[] = {{"", ""},           {"f", "Zg=="},         {"fo", "Zm8="},        {"foo", "Zm9v"},
                                                      {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : rows) {
    assert_string_equal(Encoded(BytesOf(plain)).c_str(), text);
    ByteVector back;
    assert_int_equal(Decoded(text, &back), strlen(plain));
    AssertBytes(back, BytesOf(plain));
  }
  assert_string_equal(Encoded({0xfb, 0xef, 0xff}).c_str(), "++//");
}

TEST(EveryLengthAndEveryByteComesBack) {
  for (size_t length = 0; length <= 300; length++) {
    for (const uint8_t first : {0, 0x55, 0xff}) {
      const ByteVector bytes = Sequence(first, length);
      std::string text = Encoded(bytes);
      assert_int_equal(text.size(), (length + 2) / 3 * 4);
      ByteVector back;
      assert_int_equal(Decoded(text, &back), length);
      AssertBytes(back, bytes);
      // In its own place, too.
      uint8_t* const place = reinterpret_cast<uint8_t*>(text.data());
      assert_int_equal(DecodeBase64(place, text.size(), place), length);
      if (length != 0) assert_memory_equal(place, bytes.data(), length);
    }
  }
}

TEST(OnlyTheAlphabetIsRead) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int c = 0; c < 256; c++) {
    for (size_t at = 0; at < 8; at++) {
      std::string text = "AAAAAAAA";
      text[at] = static_cast<char>(c);
      const bool good = alphabet.find(static_cast<char>(c)) != std::string::npos || (c == '=' && at == 7);
      if ((Decoded(text) >= 0) != good) fail_msg("character %d at %zu", c, at);
    }
  }
}

TEST(LengthsAndPaddingAreExact) {
  for (const char* text : {"A", "AA", "AAA", "AAAAA", "AA=", "=", "==", "====", "A===", "=AAA", "A=AA", "AA=A", "AA==AAAA", "AAA=AAAA", "AAAA====", "AAAA=",
                           "Zg==\n", "Zm9v ", "Zm 9v==="}) {
    if (Decoded(text) >= 0) fail_msg("accepted: %s", text);
  }
}

TEST(OneTextOnlyStandsForTheSameBytes) {
  // Before the padding, only the characters whose spare bits are zero are accepted.
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t value = 0; value < 64; value++) {
    assert_int_equal(Decoded(std::string("A") + alphabet[value] + "=="), value % 16 == 0 ? 1 : -1);
    assert_int_equal(Decoded(std::string("AA") + alphabet[value] + "="), value % 4 == 0 ? 2 : -1);
  }
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(nullptr, nullptr); }
