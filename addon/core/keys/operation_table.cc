#include "keys/operation_table.h"

#include <deque>
#include <mutex>
#include <vector>

namespace dke {
namespace {

// Slots are used again, numbers are not: a number contains its slot and how often the slot has been used.
constexpr unsigned kSlotBits = 22;

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
  slot.operation = std::move(operation);
  slot.owner = ThisThread();
  table.count++;
  return slot.generation << kSlotBits | index;
}

Operation* FindOperation(OperationRef ref, OperationType type) {
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  Slot* slot = SlotOf(table, ref);
  // Another thread's operation is as unknown as a dropped one: its owner may be ending it at this moment.
  if (slot == nullptr || slot->owner != ThisThread()) return nullptr;
  return slot->operation->type() == type ? slot->operation.get() : nullptr;
}

void DropOperation(OperationRef ref) {
  std::unique_ptr<Operation> dropped;
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  Slot* slot = SlotOf(table, ref);
  if (slot == nullptr || slot->owner != ThisThread()) return;
  dropped = std::move(slot->operation);
  table.free.push_back(static_cast<uint32_t>(ref & ((1u << kSlotBits) - 1)));
  table.count--;
}

void DropOperationsOf(Owner owner) {
  std::vector<std::unique_ptr<Operation>> dropped;
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  for (size_t index = 0; index < table.slots.size(); index++) {
    Slot& slot = table.slots[index];
    if (slot.operation == nullptr || slot.owner != owner) continue;
    dropped.push_back(std::move(slot.operation));
    table.free.push_back(static_cast<uint32_t>(index));
    table.count--;
  }
}

size_t OperationCount() {
  Table& table = OperationTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  return table.count;
}

}  // namespace dke
