// The labels that the core uses. Generated from addon/labels.ts (npm run generate): change it there.
#pragma once

#include <cstdint>
#include <string_view>

namespace dke {

enum class Label : uint8_t {
  kKeyRecord,
  kMessagePart,
  kHedge,
  kXksMessage,
};

constexpr std::string_view TextOf(Label label) {
  constexpr std::string_view kTexts[] = {"dke key record 1", "dke message part 2", "dke hedge 1", "dke xks 1"};
  return kTexts[static_cast<uint8_t>(label)];
}

}  // namespace dke
