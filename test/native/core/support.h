// What the native tests of the core share: bytes from hexadecimal, the vectors of addon/FORMAT.md,
// the key arena, short ways to a key. Leaves out everything that only one test needs.
#pragma once

#include <string.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tests.h"
#include "keys/key_table.h"
#include "base/secure_buffer.h"

namespace dke {

using ByteVector = std::vector<uint8_t>;

inline ByteVector Hex(std::string_view text) {
  ByteVector bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(strtoul(std::string(text.substr(i, 2)).c_str(), nullptr, 16)));
  }
  return bytes;
}

inline ByteVector BytesOf(std::string_view text) { return ByteVector(text.begin(), text.end()); }

// A row of numbers, as the vectors of FORMAT.md use them.
inline ByteVector Sequence(uint8_t first, size_t count) {
  ByteVector bytes(count);
  for (uint8_t& byte : bytes) byte = first++;
  return bytes;
}

// The lines "name = value" of the block ```vector <name> in addon/FORMAT.md.
class Vector {
 public:
  explicit Vector(const std::string& name) {
    const std::string here = __FILE__;
    std::ifstream file(here.substr(0, here.rfind("test/native/core/")) + "addon/FORMAT.md");
    std::string line;
    bool inside = false;
    while (std::getline(file, line)) {
      if (line == "```vector " + name) {
        inside = true;
      } else if (inside && line == "```") {
        break;
      } else if (inside) {
        const size_t equals = line.find(" =");
        members_[line.substr(0, equals)] = equals + 3 <= line.size() ? line.substr(equals + 3) : "";
      }
    }
    if (members_.empty()) fail_msg("addon/FORMAT.md has no vector %s", name.c_str());
  }
  const std::string& Text(const char* member) const {
    const auto found = members_.find(member);
    if (found == members_.end()) fail_msg("the vector has no %s", member);
    return found->second;
  }
  ByteVector Bytes(const char* member) const { return Hex(Text(member)); }
  uint32_t Number(const char* member) const { return static_cast<uint32_t>(strtoul(Text(member).c_str(), nullptr, 10)); }

 private:
  std::map<std::string, std::string> members_;
};

// For cmocka's group setup. A machine that locks too little still runs the tests;
// secure-buffer-test.cc is about locking.
inline int UseMemory(void**) { return InitializeMemory(size_t{4} << 20, true).ok() ? 0 : -1; }

template <typename T>
T Good(Result<T> result) {
  if (!result.ok()) fail_msg("%s: %s", CodeName(result.status().code()), result.status().message().c_str());
  return result.Take();
}
inline void Good(const Status& status) {
  if (!status.ok()) fail_msg("%s: %s", CodeName(status.code()), status.message().c_str());
}

template <typename T>
void Refused(const Result<T>& result, Code code) {
  if (result.ok()) fail_msg("accepted, but should be %s", CodeName(code));
  assert_string_equal(CodeName(result.status().code()), CodeName(code));
}
inline void Refused(const Status& status, Code code) { assert_string_equal(CodeName(status.code()), CodeName(code)); }

inline KeyRef Secret(KeyKind kind, const ByteVector& value) { return Good(ImportSecret(kind, value.data(), value.size())); }

inline ByteVector ValueOf(KeyRef key) {
  const SecureBuffer value = Good(ExportKey(FindKey(key)));
  return ByteVector(value.data(), value.data() + value.size());
}

inline void AssertBytes(const ByteVector& actual, const ByteVector& expected) {
  assert_int_equal(actual.size(), expected.size());
  if (!expected.empty()) assert_memory_equal(actual.data(), expected.data(), expected.size());
}

// A folder that only its owner can reach; its files are removed with it.
class Folder {
 public:
  Folder() {
    char made[] = "/tmp/dke-core-XXXXXX";
    if (mkdtemp(made) == nullptr) fail_msg("no temporary folder");
    path_ = made;
  }
  ~Folder() {
    const std::string command = "rm -rf " + path_;
    if (::system(command.c_str()) != 0) abort();
  }
  std::string File(const char* name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline ByteVector ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return ByteVector(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

inline void WriteWhole(const std::string& path, const ByteVector& bytes, mode_t mode) {
  chmod(path.c_str(), 0600);
  {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  assert_int_equal(chmod(path.c_str(), mode), 0);
}

}  // namespace dke
