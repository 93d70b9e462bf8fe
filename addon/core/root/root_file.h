// The root file: where the root provider `file` keeps the root key. Two preallocated slots, so that
// a new epoch can be written and proved before the old one is overwritten in place. The bytes are
// described in ../FORMAT.md.
#pragma once

#include <string>
#include <vector>

#include "keys/key_table.h"

namespace dke {

struct RootSlot {
  uint32_t epoch;
  KeyRef key;
};

// Fails when the file exists. Mode 0400; file and directory are fsynced. With a fresh root key of
// epoch 1, or with the one given (its key is not 0). Answers a reference of its own.
Result<RootSlot> CreateRootFile(const std::string& path, const RootSlot& given = {0, 0});
// The live slots, the highest epoch first: one, or two while a rotation is unfinished.
Result<std::vector<RootSlot>> OpenRootFile(const std::string& path);
// Writes a key into the free slot: a fresh one with the next epoch, or the one given (its key is
// not 0), whose epoch must be newer. Answers a reference of its own. kBadArgument when both are in
// use.
Result<RootSlot> AddRootEpoch(const std::string& path, const RootSlot& given = {0, 0});
// Overwrites the slot of an epoch in place and reads it back. Refuses the highest epoch.
Status EraseRootEpoch(const std::string& path, uint32_t epoch);

// Writes the current slot again and syncs it: after a failed sync, what is read may be only in the
// cache, and a later sync says nothing of it.
Status SettleRootFile(const std::string& path);

struct FileSystem {
  std::string name;
  bool overwrites_in_place;
};
Result<FileSystem> FileSystemOf(const std::string& path);

}  // namespace dke
