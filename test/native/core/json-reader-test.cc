// The strict JSON reader (RFC 8259): accepted and refused texts, and the calls of its visitor.
#include "base/json_reader.h"

#include "support.h"

namespace dke {
namespace {

// Records the visitor's calls: "depth parent/name type text;".
struct Recorder final : JsonVisitor {
  std::string seen;
  std::string refuse = "(none)";
  bool Member(size_t depth, std::string_view parent, std::string_view name, const JsonValue& value) override {
    static const char* const kTypes[] = {"object", "array", "string", "number", "boolean", "null"};
    seen += std::to_string(depth) + " " + std::string(parent) + "/" + std::string(name) + " " + kTypes[static_cast<size_t>(value.type)] + " " + std::string(value.text) + ";";
    return name != refuse;
  }
};

// Copied to its exact length, so that a sanitizer sees a read beyond the end.
const char* Read(const std::string& text, JsonVisitor& visitor, size_t max_depth = 16) {
  const ByteVector bytes = BytesOf(text);
  return ReadJsonObject(bytes.data(), bytes.size(), max_depth, visitor);
}

void Accepts(const std::string& text, const char* seen) {
  Recorder recorder;
  const char* refused = Read(text, recorder);
  if (refused != nullptr) fail_msg("%s: %s", text.c_str(), refused);
  assert_string_equal(recorder.seen.c_str(), seen);
}

void Refuses(const std::string& text, const char* why) {
  Recorder recorder;
  const char* refused = Read(text, recorder);
  if (refused == nullptr) fail_msg("accepted: %s", text.c_str());
  assert_string_equal(refused, why);
}

TEST(EveryMemberIsShownWithItsPlace) {
  Accepts("{}", "");
  Accepts(" \t\r\n{ \t\r\n} \t\r\n", "");
  Accepts(R"({"a":"x"})", "1 /a string x;");
  Accepts(R"({"a":{"b":{"c":1}},"d":2})", R"(3 b/c number 1;2 a/b object {"c":1};1 /a object {"b":{"c":1}};1 /d number 2;)");
  Accepts(R"({"a":[],"b":[1,{"a":2}, "x" ]})", R"(1 /a array [];3 []/a number 2;1 /b array [1,{"a":2}, "x" ];)");
  Accepts(R"({"a":true,"b":false,"c":null})", "1 /a boolean true;1 /b boolean false;1 /c null null;");
  Accepts(R"({"":"","a\u0062":""})", "1 / string ;1 /ab string ;");
}

TEST(NumbersAreThoseOfTheStandard) {
  for (const char* number : {"0", "-0", "7", "10", "-10", "0.5", "1.25", "1e5", "1E+5", "1e-05", "-0.0e0"}) {
    Accepts(std::string("{\"n\":") + number + "}", (std::string("1 /n number ") + number + ";").c_str());
  }
  for (const char* broken : {"-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "--1", "NaN", "Infinity", "x"}) {
    Recorder recorder;
    assert_non_null(Read(std::string("{\"n\":") + broken + "}", recorder));
  }
  for (const char* rest : {"01", "0x10", "1_000", "1 2"}) Refuses(std::string("{\"n\":") + rest + "}", "a comma is missing");
}

TEST(WhatIsNoObjectIsRefused) {
  for (const char* text : {"", " ", "[]", "1", "\"x\"", "null", "x", "\xef\xbb\xbf{}"}) Refuses(text, "the body is not a JSON object");
  Refuses("{}{}", "there is more after the JSON object");
  Refuses("{} x", "there is more after the JSON object");
  Refuses(std::string("{}\0", 3), "there is more after the JSON object");
}

TEST(BrokenStructureIsRefused) {
  Refuses("{", "a member's name is missing");
  Refuses("{,}", "a member's name is missing");
  Refuses(R"({"a":1,})", "a member's name is missing");
  Refuses(R"({a:1})", "a member's name is missing");
  Refuses(R"({'a':1})", "a member's name is missing");
  Refuses(R"({"a"})", "a colon is missing");
  Refuses(R"({"a" 1})", "a colon is missing");
  Refuses(R"({"a":})", "the JSON holds a broken number");
  Refuses(R"({"a":)", "the JSON ends too early");
  Refuses(R"({"a":1)", "a comma is missing");
  Refuses(R"({"a":1 "b":2})", "a comma is missing");
  Refuses(R"({"a":[1 2]})", "a comma is missing");
  Refuses(R"({"a":[1,]})", "the JSON holds a broken number");
  Refuses(R"({"a":[)", "the JSON ends too early");
  Refuses(R"({"a":tru})", "the JSON holds an unknown word");
  Refuses(R"({"a":TRUE})", "the JSON holds a broken number");
  Refuses(R"({"a":1/**/})", "a comma is missing");
}

TEST(StringsAreThoseOfTheStandard) {
  Accepts(R"({"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"})", R"(1 /a string \"\\\/\b\f\n\r\t\u00e9\ud83d\ude00;)");
  const char* const broken = "the JSON holds a broken string";
  Refuses(R"({"a":"x)", broken);
  Refuses("{\"a\":\"\\", broken);
  Refuses(R"({"a":"\x41"})", broken);
  Refuses(std::string("{\"a\":\"\\\0\"}", 9), broken);
  Refuses(R"({"a":"\u12"})", broken);
  Refuses(R"({"a":"\u12g4"})", broken);
  Refuses(R"({"a":"\ud83d"})", broken);
  Refuses(R"({"a":"\ud83dx"})", broken);
  Refuses(R"({"a":"\ud83d\u0041"})", broken);
  Refuses(R"({"a":"\ude00"})", broken);
  Refuses(R"({"a":"\ude00\ud83d"})", broken);
  Refuses("{\"a\":\"\\ud83d\\", broken);
  for (char c = 0; c < 0x20; c++) Refuses(std::string("{\"a\":\"") + c + "\"}", broken);
  Accepts("{\"a\":\"\x7f\"}", "1 /a string \x7f;");
}

TEST(OnlyValidUtf8IsAccepted) {
  for (const char* good : {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    Accepts(std::string("{\"a\":\"") + good + "\"}", (std::string("1 /a string ") + good + ";").c_str());
  }
  for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2x", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xe1\x80", "\xed\xa0\x80", "\xed\xbf\xbf",
                          "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xfe", "\xf0\x90\x80"}) {
    Refuses(std::string("{\"a\":\"") + bad + "\"}", "the JSON is not valid UTF-8");
  }
  // In a name, too, and at the very end of the input.
  Refuses("{\"\xff\":1}", "the JSON is not valid UTF-8");
  Refuses("{\"a\":\"\xf0\x9f", "the JSON is not valid UTF-8");
}

TEST(NoMemberStandsTwice) {
  Refuses(R"({"a":1,"a":1})", "a member stands twice");
  Refuses(R"({"a":1,"b":2,"\u0061":3})", "a member stands twice");
  Refuses(R"({"x":{"a":1,"a":2}})", "a member stands twice");
  Refuses(R"({"":1,"":2})", "a member stands twice");
  Accepts(R"({"a":{"a":1},"A":2})", R"(2 a/a number 1;1 /a object {"a":1};1 /A number 2;)");
}

TEST(DepthAndWidthAreCapped) {
  const auto nested = [](size_t depth, const char* open, const char* close) {
    std::string text = "{\"a\":";
    for (size_t i = 1; i < depth; i++) text += open;
    text += "1";
    for (size_t i = 1; i < depth; i++) text += close;
    return text + "}";
  };
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    Recorder recorder;
    assert_null(Read(nested(4, open, close), recorder, 4));
    const char* refused = Read(nested(5, open, close), recorder, 4);
    assert_non_null(refused);
    assert_string_equal(refused, "the JSON is nested too deeply");
    // A million levels cost nothing: the reader stops at the cap.
    assert_non_null(Read(nested(1000000, open, ""), recorder));
  }
  std::string wide = "{";
  for (int i = 0; i < 256; i++) wide += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  Recorder recorder;
  assert_null(Read(wide + "}", recorder));
  Refuses(wide + ",\"256\":0}", "an object has too many members");
}

TEST(AVisitorMayRefuse) {
  Recorder recorder;
  recorder.refuse = "b";
  assert_string_equal(Read(R"({"a":1,"b":2,"c":3})", recorder), "a member is refused");
  assert_string_equal(recorder.seen.c_str(), "1 /a number 1;1 /b number 2;");
}

TEST(EscapesAreResolved) {
  const auto resolved = [](const std::string& text) {
    std::string out(text.size(), '#');
    out.resize(UnescapeJson(text, reinterpret_cast<uint8_t*>(out.data())));
    return out;
  };
  assert_string_equal(resolved("plain").c_str(), "plain");
  assert_string_equal(resolved(R"(\"\\\/\b\f\n\r\t)").c_str(), "\"\\/\b\f\n\r\t");
  assert_string_equal(resolved(R"(\u0041\u00e9\u20AC\ud83d\ude00)").c_str(), "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  assert_string_equal(resolved(R"(\uD800\uDC00\udbff\udfff\uffff)").c_str(), "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xef\xbf\xbf");
  assert_int_equal(resolved(R"(\u0000)").size(), 1);
  assert_int_equal(resolved("").size(), 0);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(nullptr, nullptr); }
