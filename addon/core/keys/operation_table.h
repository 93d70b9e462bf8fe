// Running multi-part operations, behind numbers. A number is given once; each belongs to the thread
// that made it and goes with it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/owner.h"
#include "base/status.h"

namespace dke {

using OperationRef = uint64_t;

enum class OperationType : uint8_t { kCipher, kDigest, kMac };

class Operation {
 public:
  explicit Operation(OperationType type) : type_(type) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  OperationType type() const { return type_; }

 private:
  const OperationType type_;
};

OperationRef AddOperation(std::unique_ptr<Operation> operation);
// Null when the reference is unknown or of another type.
Operation* FindOperation(OperationRef ref, OperationType type);
void DropOperation(OperationRef ref);
void DropOperationsOf(Owner owner);
size_t OperationCount();

}  // namespace dke
