#include "root/root_file.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/assert.h"
#include "base/bytes.h"
#include "digests/digest.h"
#include "base/secret_files.h"
#include "base/random.h"

namespace dke {
namespace {

// Head and slots have a block each, so that writing one never touches another.
constexpr size_t kSlotBlock = 4096;
constexpr off_t kSlotAt[2] = {kSlotBlock, 2 * kSlotBlock};
constexpr size_t kFileSize = 3 * kSlotBlock;
constexpr uint8_t kMagic[8] = {'D', 'K', 'E', '-', 'R', 'O', 'O', 'T'};
constexpr uint32_t kFormat = 1;
constexpr uint8_t kSlotMagic[4] = {'S', 'L', 'O', 'T'};
constexpr size_t kKey = 32;
constexpr size_t kSlotBody = 4 + 4 + kKey;  // magic, epoch, key
constexpr size_t kSlot = kSlotBody + 32;    // and their SHA-256, which distinguishes a torn slot from a complete one

struct OpenSlots {
  File file;
  // The epoch of each slot, by slot number; 0: the slot is empty.
  uint32_t epochs[2] = {0, 0};
  KeyRef keys[2] = {0, 0};
};

void ReleaseSlots(const OpenSlots& slots) {
  for (KeyRef key : slots.keys) {
    if (key != 0) ReleaseKey(key);
  }
}

Status WriteSlot(const File& file, const std::string& path, int index, uint32_t epoch, const SecureBuffer& key) {
  // What ReadSlot takes for an empty slot is never written as one.
  DKE_ASSERT(epoch > 0 && key.size() == kKey);
  Result<SecureBuffer> slot = SecureBuffer::Make(kSlot);
  if (!slot.ok()) return slot.status();
  uint8_t* bytes = slot.value().data();
  memcpy(bytes, kSlotMagic, sizeof kSlotMagic);
  PutU32(bytes + 4, epoch);
  memcpy(bytes + 8, key.data(), kKey);
  Result<size_t> hashed = DigestMessage(Digest::kSha256, bytes, kSlotBody, bytes + kSlotBody, 32);
  if (!hashed.ok()) return hashed.status();
  DKE_RETURN_IF_ERROR(WriteAt(file, path, bytes, kSlot, kSlotAt[index]));
  return Sync(file, path);
}

// Reads one slot into a key. Epoch 0: nothing (whole) is there.
Status ReadSlot(OpenSlots& slots, const std::string& path, int index) {
  Result<SecureBuffer> slot = SecureBuffer::Make(kSlot);
  if (!slot.ok()) return slot.status();
  uint8_t* bytes = slot.value().data();
  DKE_RETURN_IF_ERROR(ReadAt(slots.file, path, bytes, kSlot, kSlotAt[index]));
  if (memcmp(bytes, kSlotMagic, sizeof kSlotMagic) != 0) return {};
  uint8_t digest[32];
  Result<size_t> hashed = DigestMessage(Digest::kSha256, bytes, kSlotBody, digest, sizeof digest);
  if (!hashed.ok()) return hashed.status();
  const bool whole = CRYPTO_memcmp(digest, bytes + kSlotBody, sizeof digest) == 0;
  Wipe(digest, sizeof digest);
  const uint32_t epoch = GetU32(bytes + 4);
  if (!whole || epoch == 0) return {};
  Result<KeyRef> key = ImportSecret(KeyKind::kKek, bytes + 8, kKey);
  if (!key.ok()) return key.status();
  slots.epochs[index] = epoch;
  slots.keys[index] = key.value();
  return {};
}

Result<OpenSlots> Open(const std::string& path) {
  Result<File> file = OpenSecretFile(path, "0400");
  if (!file.ok()) return file.status();
  OpenSlots slots;
  slots.file = file.Take();
  uint8_t head[12];
  DKE_RETURN_IF_ERROR(ReadAt(slots.file, path, head, sizeof head, 0));
  if (memcmp(head, kMagic, sizeof kMagic) != 0) return Status(Code::kFormat, path + " is not a root key file");
  if (GetU32(head + 8) != kFormat) return Status(Code::kFormat, path + " is a root key file of a format that this version does not know: use the version that wrote it");
  for (int index = 0; index < 2; index++) {
    Status read = ReadSlot(slots, path, index);
    if (!read.ok()) {
      ReleaseSlots(slots);
      return read;
    }
  }
  if (slots.epochs[0] == 0 && slots.epochs[1] == 0) {
    return Status(Code::kFormat, path + " does not contain a complete root key: restore it from its copy");
  }
  if (slots.epochs[0] == slots.epochs[1]) {
    ReleaseSlots(slots);
    return Status(Code::kFormat, path + " holds one epoch twice: restore it from its copy");
  }
  return slots;
}

// The file is 0400; its owner may still change it through a descriptor that was opened while it was
// 0600.
Result<File> OpenForWriting(const OpenSlots& slots, const std::string& path) {
  if (fchmod(slots.file.fd(), 0600) != 0) return FileFailure("set the mode of", path);
  const std::string same_file = "/proc/self/fd/" + std::to_string(slots.file.fd());
  File file(open(same_file.c_str(), O_RDWR | O_CLOEXEC));
  const int error = errno;
  fchmod(slots.file.fd(), 0400);
  errno = error;
  if (file.fd() < 0) return FileFailure("open", path);
  return file;
}

// `given`: the KEK that goes into the slot; 0: a fresh one.
Result<RootSlot> FillSlot(const File& file, const std::string& path, int index, uint32_t epoch, KeyRef given) {
  Result<SecureBuffer> key = SecureBuffer::Make(kKey);
  if (!key.ok()) return key.status();
  if (given == 0) {
    DKE_RETURN_IF_ERROR(RandomSecret(key.value().data(), kKey));
  } else {
    KeyUse use(given);
    if (!use) return BadKey();
    if (use->description.kind != KeyKind::kKek || use->secret.size() != kKey) return WrongKeyType();
    memcpy(key.value().data(), use->secret.data(), kKey);
  }
  DKE_RETURN_IF_ERROR(WriteSlot(file, path, index, epoch, key.value()));
  Result<KeyRef> ref = AddSecretKey(KeyKind::kKek, key.Take());
  if (!ref.ok()) return ref.status();
  return RootSlot{epoch, ref.value()};
}

}  // namespace

Result<RootSlot> CreateRootFile(const std::string& path, const RootSlot& given) {
  if (given.key != 0 && given.epoch == 0) return BadArgument("a root key has an epoch from 1 on");
  Result<File> file = CreateFile(path, 0400);
  if (!file.ok()) return file.status();
  std::vector<uint8_t> empty(kFileSize);
  memcpy(empty.data(), kMagic, sizeof kMagic);
  PutU32(empty.data() + sizeof kMagic, kFormat);
  Status written = WriteAt(file.value(), path, empty.data(), empty.size(), 0);
  Result<RootSlot> slot = written.ok() ? FillSlot(file.value(), path, 0, given.key == 0 ? 1 : given.epoch, given.key) : Result<RootSlot>(written);
  Status synced = slot.ok() ? SyncDirectory(path) : slot.status();
  if (!synced.ok()) {
    // Nothing is sealed under it yet: a half-made file would only stop the next start.
    unlink(path.c_str());
    return synced;
  }
  return slot;
}

Result<std::vector<RootSlot>> OpenRootFile(const std::string& path) {
  Result<OpenSlots> opened = Open(path);
  if (!opened.ok()) return opened.status();
  std::vector<RootSlot> live;
  for (int index = 0; index < 2; index++) {
    if (opened.value().keys[index] != 0) live.push_back({opened.value().epochs[index], opened.value().keys[index]});
  }
  std::sort(live.begin(), live.end(), [](const RootSlot& a, const RootSlot& b) { return a.epoch > b.epoch; });
  return live;
}

Result<RootSlot> AddRootEpoch(const std::string& path, const RootSlot& given) {
  Result<OpenSlots> opened = Open(path);
  if (!opened.ok()) return opened.status();
  OpenSlots& slots = opened.value();
  ReleaseSlots(slots);
  if (slots.keys[0] != 0 && slots.keys[1] != 0) return BadArgument("the root file already has two epochs: erase the older one first");
  const int free = slots.keys[0] == 0 ? 0 : 1;
  const uint32_t newest = std::max(slots.epochs[0], slots.epochs[1]);
  if (newest == UINT32_MAX) return BadArgument("the root file has had its last epoch");
  const uint32_t epoch = given.key == 0 ? newest + 1 : given.epoch;
  if (epoch <= newest) return BadArgument("the root file has this epoch, or a newer one");
  Result<File> file = OpenForWriting(slots, path);
  if (!file.ok()) return file.status();
  Result<RootSlot> written = FillSlot(file.value(), path, free, epoch, given.key);
  if (!written.ok()) return written;
  // Proved by reading it back from the file.
  OpenSlots again;
  again.file = file.Take();
  Status read = ReadSlot(again, path, free);
  ReleaseSlots(again);
  if (!read.ok() || again.epochs[free] != epoch) {
    ReleaseKey(written.value().key);
    return read.ok() ? Status(Code::kIo, path + " did not keep the new root key") : read;
  }
  return written;
}

Status EraseRootEpoch(const std::string& path, uint32_t epoch) {
  Result<OpenSlots> opened = Open(path);
  if (!opened.ok()) return opened.status();
  OpenSlots& slots = opened.value();
  ReleaseSlots(slots);
  if (epoch == 0 || epoch >= std::max(slots.epochs[0], slots.epochs[1])) return BadArgument("the current epoch cannot be erased");
  // The slot next to the current one, also when nothing whole is in it: after a write whose sync
  // failed the cache says that it is erased, and the device may not.
  const int index = slots.epochs[0] > slots.epochs[1] ? 1 : 0;
  if (slots.epochs[index] != 0 && slots.epochs[index] != epoch) return {};  // erased before
  Result<File> file = OpenForWriting(slots, path);
  if (!file.ok()) return file.status();
  std::vector<uint8_t> block(kSlotBlock);
  DKE_RETURN_IF_ERROR(RandomPublic(block.data(), block.size()));
  DKE_RETURN_IF_ERROR(WriteAt(file.value(), path, block.data(), block.size(), kSlotAt[index]));
  DKE_RETURN_IF_ERROR(Sync(file.value(), path));
  std::fill(block.begin(), block.end(), uint8_t{0});
  DKE_RETURN_IF_ERROR(WriteAt(file.value(), path, block.data(), block.size(), kSlotAt[index]));
  DKE_RETURN_IF_ERROR(Sync(file.value(), path));
  // Asks the kernel to forget its copy, so that the check reads the device.
  posix_fadvise(file.value().fd(), kSlotAt[index], kSlotBlock, POSIX_FADV_DONTNEED);
  std::fill(block.begin(), block.end(), uint8_t{1});
  DKE_RETURN_IF_ERROR(ReadAt(file.value(), path, block.data(), block.size(), kSlotAt[index]));
  if (std::any_of(block.begin(), block.end(), [](uint8_t byte) { return byte != 0; })) {
    return Status(Code::kIo, path + " still holds the old root key after it was overwritten");
  }
  return {};
}

Status SettleRootFile(const std::string& path) {
  Result<OpenSlots> opened = Open(path);
  if (!opened.ok()) return opened.status();
  OpenSlots& slots = opened.value();
  ReleaseSlots(slots);
  const int index = slots.epochs[0] > slots.epochs[1] ? 0 : 1;
  Result<SecureBuffer> slot = SecureBuffer::Make(kSlot);
  if (!slot.ok()) return slot.status();
  DKE_RETURN_IF_ERROR(ReadAt(slots.file, path, slot.value().data(), kSlot, kSlotAt[index]));
  Result<File> file = OpenForWriting(slots, path);
  if (!file.ok()) return file.status();
  DKE_RETURN_IF_ERROR(WriteAt(file.value(), path, slot.value().data(), kSlot, kSlotAt[index]));
  return Sync(file.value(), path);
}

namespace {

struct FileSystemRow {
  long magic;
  const char* name;
  bool overwrites_in_place;
};
// statfs(2). Measured: ext4 (data=ordered), xfs and tmpfs overwrite in place; btrfs and ext4 with
// data=journal leave copies.
constexpr FileSystemRow kFileSystems[] = {
    {0xef53, "ext4", true},      {0x58465342, "xfs", true},        {0x01021994, "tmpfs", true},
    {0x9123683e, "btrfs", false}, {0x2fc12fc1, "zfs", false},      {0x794c7630, "overlayfs", false},
    {0xf2f52010, "f2fs", false}, {0x6969, "nfs", false},
};

// The options of the mount that a path is on, from /proc/mounts; the longest mount point wins.
std::string MountOptions(const std::string& path) {
  char resolved[4096];
  if (realpath(path.c_str(), resolved) == nullptr) return "";
  const std::string real(resolved);
  std::ifstream mounts("/proc/mounts");
  std::string line;
  std::string best;
  std::string options;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string device, point, type, flags;
    fields >> device >> point >> type >> flags;
    const bool below = point == "/" || real == point || real.compare(0, point.size() + 1, point + "/") == 0;
    if (below && point.size() >= best.size()) {
      best = point;
      options = flags;
    }
  }
  return options;
}

}  // namespace

Result<FileSystem> FileSystemOf(const std::string& path) {
  struct statfs status;
  if (statfs(path.c_str(), &status) != 0) return FileFailure("check the file system of", path);
  for (const FileSystemRow& row : kFileSystems) {
    if (row.magic != static_cast<long>(status.f_type)) continue;
    bool in_place = row.overwrites_in_place;
    if (row.magic == 0xef53 && ("," + MountOptions(path) + ",").find(",data=journal,") != std::string::npos) in_place = false;
    return FileSystem{row.name, in_place};
  }
  return FileSystem{"unknown", false};
}

}  // namespace dke
