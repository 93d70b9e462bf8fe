// The root key file, format 1 (addon/FORMAT.md): its bytes, its turn from one epoch to the next,
// what a crash may leave, and which files are refused.
#include "root/root_file.h"

#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"
#include "digests/digest.h"
#include "wrapping/key_record.h"
#include "support.h"

namespace dke {
namespace {

constexpr size_t kSlotAt[2] = {4096, 8192};
constexpr size_t kSlot = 72;

ByteVector EmptyFile() {
  ByteVector file(12288);
  memcpy(file.data(), "DKE-ROOT\0\0\0\1", 12);
  return file;
}

void PutSlot(ByteVector& file, int index, const ByteVector& slot) {
  std::copy(slot.begin(), slot.end(), file.begin() + static_cast<std::ptrdiff_t>(kSlotAt[index]));
}

ByteVector SlotOf(uint32_t epoch, const ByteVector& key) {
  ByteVector slot = {'S', 'L', 'O', 'T'};
  AppendU32(slot, epoch);
  slot.insert(slot.end(), key.begin(), key.end());
  ByteVector digest(32);
  Good(DigestMessage(Digest::kSha256, slot.data(), slot.size(), digest.data(), digest.size()));
  slot.insert(slot.end(), digest.begin(), digest.end());
  return slot;
}

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  assert_int_equal(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

bool Contains(const ByteVector& bytes, const ByteVector& wanted) {
  return std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()) != bytes.end();
}

void RefusedSaying(const std::string& path, Code code, const char* words) {
  const Result<std::vector<RootSlot>> opened = OpenRootFile(path);
  Refused(opened, code);
  if (strstr(opened.status().message().c_str(), words) == nullptr) fail_msg("'%s' does not say '%s'", opened.status().message().c_str(), words);
  assert_non_null(strstr(opened.status().message().c_str(), "/tmp/dke-core-"));
}

TEST(ANewFileHasTheDocumentsLayout) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  const RootSlot made = Good(CreateRootFile(path));
  assert_int_equal(made.epoch, 1);
  assert_int_equal(ModeOf(path), 0400);
  ByteVector expected = EmptyFile();
  PutSlot(expected, 0, SlotOf(1, ValueOf(made.key)));
  AssertBytes(ReadWhole(path), expected);
  const std::vector<RootSlot> slots = Good(OpenRootFile(path));
  assert_int_equal(slots.size(), 1);
  assert_int_equal(slots[0].epoch, 1);
  AssertBytes(ValueOf(slots[0].key), ValueOf(made.key));
  assert_int_equal(static_cast<int>(Good(DescribeKey(made.key)).kind), static_cast<int>(KeyKind::kKek));
}

TEST(TheDocumentsSlotIsReadInEitherPlace) {
  const Vector vector("root slot");
  AssertBytes(SlotOf(vector.Number("epoch"), vector.Bytes("key")), vector.Bytes("slot"));
  for (int index = 0; index < 2; index++) {
    const Folder folder;
    ByteVector file = EmptyFile();
    PutSlot(file, index, vector.Bytes("slot"));
    WriteWhole(folder.File("root.key"), file, 0400);
    const std::vector<RootSlot> slots = Good(OpenRootFile(folder.File("root.key")));
    assert_int_equal(slots.size(), 1);
    assert_int_equal(slots[0].epoch, vector.Number("epoch"));
    AssertBytes(ValueOf(slots[0].key), vector.Bytes("key"));
    // The opened key opens a record that was sealed under it.
    const Vector record("record generic");
    RecordContext context{};
    memcpy(context.tenant, record.Bytes("tenant").data(), 16);
    memcpy(context.object, record.Bytes("object").data(), 16);
    context.version = record.Number("version");
    context.epoch = record.Number("epoch");
    context.record_class = record.Text("class");
    const ByteVector bytes = record.Bytes("record");
    Good(OpenRecord(slots[0].key, context, bytes.data(), bytes.size()));
  }
}

TEST(ATurnLeavesTheNewEpochAlone) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  RootSlot current = Good(CreateRootFile(path));
  for (uint32_t epoch = 2; epoch < 6; epoch++) {
    const RootSlot added = Good(AddRootEpoch(path));
    assert_int_equal(added.epoch, epoch);
    assert_int_equal(ModeOf(path), 0400);
    const std::vector<RootSlot> both = Good(OpenRootFile(path));
    assert_int_equal(both.size(), 2);
    assert_int_equal(both[0].epoch, epoch);
    assert_int_equal(both[1].epoch, epoch - 1);
    AssertBytes(ValueOf(both[0].key), ValueOf(added.key));
    AssertBytes(ValueOf(both[1].key), ValueOf(current.key));
    assert_true(ValueOf(added.key) != ValueOf(current.key));
    // There is no third place, and the newest one stays.
    Refused(AddRootEpoch(path), Code::kBadArgument);
    Refused(EraseRootEpoch(path, epoch), Code::kBadArgument);

    Good(EraseRootEpoch(path, epoch - 1));
    Good(EraseRootEpoch(path, epoch - 1));  // a second time, as after a crash, changes nothing
    assert_int_equal(ModeOf(path), 0400);
    const ByteVector bytes = ReadWhole(path);
    assert_int_equal(bytes.size(), 12288);
    assert_false(Contains(bytes, ValueOf(current.key)));
    ByteVector expected = EmptyFile();
    PutSlot(expected, (epoch - 1) % 2, SlotOf(epoch, ValueOf(added.key)));
    AssertBytes(bytes, expected);
    current = added;
  }
  Refused(EraseRootEpoch(path, 0), Code::kBadArgument);
  Refused(EraseRootEpoch(path, 5), Code::kBadArgument);
  Refused(EraseRootEpoch(path, 6), Code::kBadArgument);
}

TEST(AGivenKeyIsTakenUnderItsOwnEpoch) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  Good(CreateRootFile(path));
  const ByteVector value = Sequence(0x20, 32);
  const KeyRef given = Secret(KeyKind::kKek, value);
  // Not the next one: other nodes may have had epochs that this one has not seen.
  const RootSlot taken = Good(AddRootEpoch(path, {7, given}));
  assert_int_equal(taken.epoch, 7);
  AssertBytes(ValueOf(taken.key), value);
  // A key of its own: the given one is the caller's to release.
  ReleaseKey(given);
  AssertBytes(ValueOf(taken.key), value);
  const std::vector<RootSlot> both = Good(OpenRootFile(path));
  assert_int_equal(both.size(), 2);
  assert_int_equal(both[0].epoch, 7);
  AssertBytes(ValueOf(both[0].key), value);
  assert_int_equal(both[1].epoch, 1);
  Good(EraseRootEpoch(path, 1));
  ByteVector expected = EmptyFile();
  PutSlot(expected, 1, SlotOf(7, value));
  AssertBytes(ReadWhole(path), expected);
  assert_int_equal(Good(AddRootEpoch(path)).epoch, 8);
}

TEST(AGivenKeyThatIsNoNewerOrNoKekIsRefusedAndChangesNothing) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  Good(CreateRootFile(path));
  Good(AddRootEpoch(path, {7, Secret(KeyKind::kKek, Sequence(0x20, 32))}));
  Good(EraseRootEpoch(path, 1));
  const ByteVector before = ReadWhole(path);
  const KeyRef kek = Secret(KeyKind::kKek, Sequence(0x60, 32));
  for (const uint32_t epoch : {uint32_t{0}, uint32_t{6}, uint32_t{7}}) Refused(AddRootEpoch(path, {epoch, kek}), Code::kBadArgument);
  Refused(AddRootEpoch(path, {8, Good(GenerateAes(256))}), Code::kKeyType);
  Refused(AddRootEpoch(path, {8, Good(GenerateEc(Curve::kEd25519))}), Code::kKeyType);
  const KeyRef released = Secret(KeyKind::kKek, Sequence(0x60, 32));
  ReleaseKey(released);
  Refused(AddRootEpoch(path, {8, released}), Code::kBadKey);
  AssertBytes(ReadWhole(path), before);
  assert_int_equal(ModeOf(path), 0400);
  Good(AddRootEpoch(path, {8, kek}));
  Refused(AddRootEpoch(path, {9, kek}), Code::kBadArgument);  // both places are taken
}

TEST(AKeyInUseLivesOnWhenItsSlotIsErased) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  const RootSlot first = Good(CreateRootFile(path));
  Good(AddRootEpoch(path));
  Good(EraseRootEpoch(path, 1));
  assert_int_equal(ValueOf(first.key).size(), 32);
}

TEST(ASlotThatACrashToreIsAFreeOne) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  const ByteVector old_key = Sequence(0x40, 32);
  const ByteVector fresh = SlotOf(8, Sequence(0x90, 32));
  for (size_t written = 0; written <= kSlot; written++) {
    ByteVector file = EmptyFile();
    PutSlot(file, 0, SlotOf(7, old_key));
    std::copy(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(written), file.begin() + 8192);
    WriteWhole(path, file, 0400);
    const std::vector<RootSlot> slots = Good(OpenRootFile(path));
    assert_int_equal(slots.size(), written == kSlot ? 2 : 1);
    AssertBytes(ValueOf(slots.back().key), old_key);
    for (const RootSlot& slot : slots) ReleaseKey(slot.key);
  }
  // AddRootEpoch writes a complete slot over the torn one.
  ByteVector file = EmptyFile();
  PutSlot(file, 0, SlotOf(7, old_key));
  std::copy(fresh.begin(), fresh.begin() + 50, file.begin() + 8192);
  WriteWhole(path, file, 0400);
  assert_int_equal(Good(AddRootEpoch(path)).epoch, 8);
  assert_int_equal(Good(OpenRootFile(path)).size(), 2);
}

TEST(EveryChangedByteOfTheOnlySlotIsRefused) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  ByteVector file = EmptyFile();
  PutSlot(file, 0, Vector("root slot").Bytes("slot"));
  for (size_t at = 0; at < kSlot; at++) {
    for (const uint8_t change : {0x01, 0x80, 0xff}) {
      ByteVector changed = file;
      changed[4096 + at] ^= change;
      WriteWhole(path, changed, 0400);
      RefusedSaying(path, Code::kFormat, "does not contain a complete root key");
    }
  }
  for (size_t at = 0; at < 12; at++) {
    ByteVector changed = file;
    changed[at] ^= 1;
    WriteWhole(path, changed, 0400);
    RefusedSaying(path, Code::kFormat, at < 8 ? "is not a root key file" : "format that this version does not know");
  }
  for (const size_t length : {size_t{0}, size_t{11}, size_t{12}, size_t{4096}, size_t{4167}, size_t{8192}, size_t{8263}}) {
    WriteWhole(path, ByteVector(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length)), 0400);
    RefusedSaying(path, Code::kFormat, "is shorter than it should be");
  }
  PutSlot(file, 1, Vector("root slot").Bytes("slot"));
  WriteWhole(path, file, 0400);
  RefusedSaying(path, Code::kFormat, "holds one epoch twice");
}

TEST(TheLastEpochHasNoSuccessor) {
  const Folder folder;
  ByteVector file = EmptyFile();
  PutSlot(file, 0, SlotOf(0xffffffff, Sequence(1, 32)));
  WriteWhole(folder.File("root.key"), file, 0400);
  Refused(AddRootEpoch(folder.File("root.key")), Code::kBadArgument);
}

TEST(WhatOthersCanReachIsRefusedWithTheModeToSet) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  Good(CreateRootFile(path));
  for (const mode_t mode : {0440, 0404, 0420, 0402, 0410, 0401, 0600 | 040, 0777}) {
    assert_int_equal(chmod(path.c_str(), mode), 0);
    RefusedSaying(path, Code::kPermission, "set its mode to 0400");
    Refused(AddRootEpoch(path), Code::kPermission);
  }
  assert_int_equal(chmod(path.c_str(), 0600), 0);
  Good(OpenRootFile(path));
  assert_int_equal(chmod(path.c_str(), 0400), 0);

  assert_int_equal(chmod(folder.path().c_str(), 0770), 0);
  RefusedSaying(path, Code::kPermission, "set its mode to 0700");
  assert_int_equal(chmod(folder.path().c_str(), 0750), 0);
  Good(OpenRootFile(path));
  assert_int_equal(chmod(folder.path().c_str(), 0700), 0);

  if (geteuid() == 0) {
    assert_int_equal(chown(path.c_str(), 65533, 65533), 0);
    RefusedSaying(path, Code::kPermission, "belongs to another user");
    assert_int_equal(chown(path.c_str(), 0, 0), 0);
    assert_int_equal(chown(folder.path().c_str(), 65533, 65533), 0);
    RefusedSaying(path, Code::kPermission, "belongs to another user");
    assert_int_equal(chown(folder.path().c_str(), 0, 0), 0);
  } else {
    print_message("skipped: only root can give a file to another user\n");
  }
}

TEST(WhatIsNoFileOfItsOwnIsRefused) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  Good(CreateRootFile(path));
  const std::string link = folder.File("link");
  assert_int_equal(symlink(path.c_str(), link.c_str()), 0);
  RefusedSaying(link, Code::kPermission, "symbolic link");
  const std::string pipe = folder.File("pipe");
  assert_int_equal(mkfifo(pipe.c_str(), 0400), 0);
  RefusedSaying(pipe, Code::kPermission, "not a regular file");  // and at once: nothing writes to it
  RefusedSaying(folder.path(), Code::kPermission, "not a regular file");
  RefusedSaying(folder.File("missing"), Code::kIo, "No such file");
}

TEST(AnExistingFileIsNotReplaced) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  Good(CreateRootFile(path));
  const ByteVector before = ReadWhole(path);
  Refused(CreateRootFile(path), Code::kIo);
  AssertBytes(ReadWhole(path), before);
  Refused(CreateRootFile(folder.File("no/root.key")), Code::kIo);
}

TEST(ARefusedFileLeavesNoKeyBehind) {
  const Folder folder;
  const std::string path = folder.File("root.key");
  Good(CreateRootFile(path));
  Good(AddRootEpoch(path));
  const size_t before = KeyCount();
  const size_t used = KeyArenaStatus().used;
  Refused(AddRootEpoch(path), Code::kBadArgument);
  Refused(EraseRootEpoch(path, 9), Code::kBadArgument);
  Good(EraseRootEpoch(path, 1));
  ByteVector file = EmptyFile();
  PutSlot(file, 0, Vector("root slot").Bytes("slot"));
  PutSlot(file, 1, Vector("root slot").Bytes("slot"));
  WriteWhole(path, file, 0400);
  Refused(OpenRootFile(path), Code::kFormat);
  assert_int_equal(KeyCount(), before);
  assert_int_equal(KeyArenaStatus().used, used);
}

TEST(TheFileSystemIsNamed) {
  const FileSystem system = Good(FileSystemOf("/proc/.."));
  assert_true(!system.name.empty());
  // procfs is none of those that are known to overwrite in place.
  assert_false(Good(FileSystemOf("/proc")).overwrites_in_place);
  Refused(FileSystemOf("/tmp/dke-core-no-such-folder"), Code::kIo);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(dke::UseMemory, nullptr); }
