// Files that a local user names, read with that user's rights: on a thread that takes the user's
// identity for files, proves that it has it, and ends after the one file. A thread that hangs (a
// file system of the user's own) delays no other one.
//
// What is believed, and why. The user, the group and the other groups are the kernel's word about
// the peer of a socket. The path is the user's, and so is everything on the way: no magic link of
// /proc is followed (it would lead to what this process has open), and other links only where the
// caller says so. The file's type, owner, mode and size are those of the open descriptor. A file
// that is longer when it is read than when it was opened is refused. An error is the one that the
// user's own open gives, so it tells this user nothing new.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dke {

struct UserIdentity {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
};

struct UserFileRequest {
  UserIdentity user;
  std::string path;
  // Whether symbolic links are followed.
  bool follow = false;
  // A longer file is not read.
  uint64_t most = 0;
  // Nor is one whose state is this.
  std::string known;
};

struct UserFile {
  // An errno value; 0: the file was opened, and what had to be read was read. `identity`: this
  // process cannot act as the user.
  int error = 0;
  bool identity = false;

  bool regular = false;
  uint32_t uid = 0;
  uint32_t mode = 0;
  uint64_t size = 0;
  // Changes when the file is another one, or is changed.
  std::string state;
  // Whether `bytes` are its content.
  bool read = false;
  std::vector<uint8_t> bytes;
};

// From here on no core dump of this process, and no other process of its user reads its memory,
// also where the kernel would allow it again because a thread acts as another user
// (fs.suid_dumpable).
void ForbidDumps();

// Changes the identity of the calling thread, which must end after it. The receiver wipes the bytes
// where they are secret.
UserFile ReadUserFile(const UserFileRequest& request);

}  // namespace dke
