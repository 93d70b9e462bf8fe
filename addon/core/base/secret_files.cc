#include "base/secret_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dke {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

Status FileFailure(const char* what, const std::string& path) {
  return {Code::kIo, std::string("cannot ") + what + " " + path + ": " + strerror(errno)};
}

Result<File> OpenSecretFile(const std::string& path, const char* wanted_mode) {
  // Without blocking: a pipe in the file's place is refused below, not waited for.
  File file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) {
    if (errno == ELOOP) return Status(Code::kPermission, path + " is a symbolic link: name the file itself");
    return FileFailure("open", path);
  }
  struct stat status;
  if (fstat(file.fd(), &status) != 0) return FileFailure("read the status of", path);
  if (!S_ISREG(status.st_mode)) return Status(Code::kPermission, path + " is not a regular file");
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return Status(Code::kPermission, path + " belongs to another user: it must belong to the user that runs the service");
  }
  if ((status.st_mode & 077) != 0) {
    return Status(Code::kPermission, path + " can be reached by others: set its mode to " + wanted_mode);
  }
  const std::string directory = DirectoryOf(path);
  if (stat(directory.c_str(), &status) != 0) return FileFailure("read the status of", directory);
  const bool sticky = (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & 022) != 0 && !sticky) {
    return Status(Code::kPermission, directory + " can be written by others: set its mode to 0700");
  }
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return Status(Code::kPermission, directory + " belongs to another user: it must belong to the user that runs the service");
  }
  return file;
}

Result<File> CreateFile(const std::string& path, unsigned mode) {
  File file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (file.fd() < 0) return FileFailure("make", path);
  // The umask may have taken bits away, never added any.
  if (fchmod(file.fd(), mode) != 0) return FileFailure("set the mode of", path);
  return file;
}

Status WriteAt(const File& file, const std::string& path, const void* data, size_t size, off_t offset) {
  const char* cursor = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = pwrite(file.fd(), cursor, size, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileFailure("write", path);
    cursor += written;
    offset += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

Status ReadAt(const File& file, const std::string& path, void* data, size_t size, off_t offset) {
  char* cursor = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = pread(file.fd(), cursor, size, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileFailure("read", path);
    if (got == 0) return Status(Code::kFormat, path + " is shorter than it should be");
    cursor += got;
    offset += got;
    size -= static_cast<size_t>(got);
  }
  return {};
}

Status Sync(const File& file, const std::string& path) {
  if (fsync(file.fd()) != 0) return FileFailure("sync", path);
  return {};
}

Status SyncDirectory(const std::string& path_of_file) {
  const std::string directory = DirectoryOf(path_of_file);
  File file(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.fd() < 0) return FileFailure("open", directory);
  return Sync(file, directory);
}

}  // namespace dke
