// Files that contain secrets: opened without following links, owner and mode checked, written
// whole.
#pragma once

#include <string>

#include "base/status.h"

namespace dke {

// A descriptor that closes itself.
class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(File&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// "cannot <what> <path>: <reason>"
Status FileFailure(const char* what, const std::string& path);

// Opens a secret file for reading: a regular file of ours (or root's) that no one else can read or
// write, in a directory that no one else can write. `wanted_mode` is the mode that the error
// message says to set.
Result<File> OpenSecretFile(const std::string& path, const char* wanted_mode);
// Makes a file that must not exist yet, and makes its name durable after `SyncDirectory`.
Result<File> CreateFile(const std::string& path, unsigned mode);
Status WriteAt(const File& file, const std::string& path, const void* data, size_t size, off_t offset);
Status ReadAt(const File& file, const std::string& path, void* data, size_t size, off_t offset);
Status Sync(const File& file, const std::string& path);
Status SyncDirectory(const std::string& path_of_file);

}  // namespace dke
