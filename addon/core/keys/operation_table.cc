#include "keys/operation_table.h"

#include <deque>
#include <mutex>
#include <vector>

#include "base/assert.h"

namespace dke {
namespace {

// Slots are used again, numbers are not: a number contains its slot and how often the slot has been
// used.
constexpr unsigned kSlotBits = 22;
// JavaScript carries numbers up to 2^53. A slot that has been used so often is not used again.
constexpr uint64_t kMostGenerations = (uint64_t{1} << (53 - kSlotBits)) - 1;

struct Slot {
  std::unique_ptr<Operation> operation;
  uint64_t generation = 0;
  Owner owner = 0;
};
struct Table {
  std::mutex mutex;
  std::deque<Slot> slots;
  std::vector<uint32_t> free;
  size_t count = 0;
};
Table& OperationTable() {
  static Table* table = new Table;
  return *table;
}

// With the table locked. The caller ends the operation.
std::unique_ptr<Operation> Empty(Table& table, size_t index) {
  Slot& slot = table.slots[index];
  DKE_ASSERT(slot.operation != nullptr && slot.generation > 0 && slot.generation <= kMostGenerations);
  if (slot.generation < kMostGenerations) table.free.push_back(static_cast<uint32_t>(index));
  DKE_ASSERT(table.count > 0);
  table.count--;
  DKE_ASSERT(table.count + table.free.size() <= table.slots.size());
  return std::move(slot.operation);
}

Slot* SlotOf(Table& table, OperationRef ref) {
  size_t index = ref & ((1u << kSlotBits) - 1);
  if (index >= table.slots.size()) return nullptr;
  Slot& slot = table.slots[index];
  return slot.operation != nullptr && slot.generation == ref >> kSlotBits ? &slot : nullptr;
}

}  // namespace

OperationRef AddOperation(std::unique_ptr<Operation> operation) {
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  uint32_t index;
  if (!table.free.empty()) {
    index = table.free.back();
    table.free.pop_back();
  } else if (table.slots.size() < (1u << kSlotBits)) {
    index = static_cast<uint32_t>(table.slots.size());
    table.slots.emplace_back();
  } else {
    return 0;
  }
  Slot& slot = table.slots[index];
  slot.generation++;
  DKE_ASSERT(slot.operation == nullptr && slot.generation <= kMostGenerations);
  slot.operation = std::move(operation);
  slot.owner = ThisThread();
  table.count++;
  DKE_ASSERT(table.count + table.free.size() <= table.slots.size());
  return slot.generation << kSlotBits | index;
}

Operation* FindOperation(OperationRef ref, OperationType type) {
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  Slot* slot = SlotOf(table, ref);
  // Another thread's operation is as unknown as a dropped one: its owner may be ending it at this
  // moment.
  if (slot == nullptr || slot->owner != ThisThread()) return nullptr;
  return slot->operation->type() == type ? slot->operation.get() : nullptr;
}

void DropOperation(OperationRef ref) {
  std::unique_ptr<Operation> dropped;
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  Slot* slot = SlotOf(table, ref);
  if (slot == nullptr || slot->owner != ThisThread()) return;
  dropped = Empty(table, ref & ((1u << kSlotBits) - 1));
}

void DropOperationsOf(Owner owner) {
  std::vector<std::unique_ptr<Operation>> dropped;
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  for (size_t index = 0; index < table.slots.size(); index++) {
    Slot& slot = table.slots[index];
    if (slot.operation == nullptr || slot.owner != owner) continue;
    dropped.push_back(Empty(table, index));
  }
}

size_t OperationCount() {
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  return table.count;
}

}  // namespace dke
