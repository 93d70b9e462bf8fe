#include "base/user_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/secret_files.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

namespace dke {
namespace {

// open_how and its flags from linux/openat2.h, which older systems do not have.
struct OpenHow {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
};
constexpr uint64_t kNoMagicLinks = 0x02;
constexpr uint64_t kNoSymlinks = 0x04;

// FIFOs and leases of others are not waited for.
constexpr int kReading = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

struct Capabilities {
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
  bool has(unsigned capability) const { return (words[capability / 32].effective >> (capability % 32) & 1) != 0; }
};

// The kernel's own calls: the C library's would change every thread of the process.
bool ReadCapabilities(Capabilities* out) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return syscall(SYS_capget, &header, out->words) == 0;
}

bool DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const Capabilities none{};
  Capabilities now{};
  if (syscall(SYS_capset, &header, none.words) != 0 || !ReadCapabilities(&now)) return false;
  return std::all_of(std::begin(now.words), std::end(now.words),
                     [](const auto& word) { return word.effective == 0 && word.permitted == 0; });
}

std::atomic<bool> dumps_forbidden{false};

// Said again after each change of identity, with which the kernel sets it to fs.suid_dumpable.
void KeepDumpsForbidden() {
  if (dumps_forbidden) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// setfsuid and setfsgid report no failure: they answer what was before, which is asked for with a
// number that no one has.
bool SetFileUser(uint32_t uid) {
  syscall(SYS_setfsuid, uid);
  KeepDumpsForbidden();
  return static_cast<uint32_t>(syscall(SYS_setfsuid, UINT32_MAX)) == uid;
}

bool SetFileGroups(uint32_t gid, const std::vector<uint32_t>& groups) {
  if (syscall(SYS_setgroups, groups.size(), groups.data()) != 0) return false;
  syscall(SYS_setfsgid, gid);
  KeepDumpsForbidden();
  if (static_cast<uint32_t>(syscall(SYS_setfsgid, UINT32_MAX)) != gid) return false;
  std::vector<uint32_t> now(groups.size() + 1);
  const auto count = syscall(SYS_getgroups, now.size(), now.data());
  if (count != static_cast<long>(groups.size())) return false;
  now.pop_back();
  std::vector<uint32_t> wanted = groups;
  std::sort(wanted.begin(), wanted.end());
  std::sort(now.begin(), now.end());
  return now == wanted;
}

// Root keeps the rights that this process has as root. Everybody else has none but those of their
// user and groups.
bool TakeIdentity(const UserIdentity& user) {
  Capabilities mine{};
  if (!ReadCapabilities(&mine)) return false;
  // An agent of one user serves that user, and root, who may act as this user, with the rights that
  // it has itself.
  if (!mine.has(CAP_SETUID) || !mine.has(CAP_SETGID)) return user.uid == geteuid() || user.uid == 0;
  return SetFileGroups(user.gid, user.groups) && SetFileUser(user.uid) && (user.uid == 0 || DropCapabilities());
}

// Before Linux 5.6. A magic link of /proc becomes the name that it shows.
int OpenResolved(const std::string& path, bool follow) {
  char real[PATH_MAX];
  if (realpath(path.c_str(), real) == nullptr) return -1;
  if (!follow && path != real) {
    errno = ELOOP;
    return -1;
  }
  return open(real, kReading | O_NOFOLLOW);
}

int OpenOnce(const std::string& path, bool follow) {
  const OpenHow how{kReading, 0, follow ? kNoMagicLinks : kNoSymlinks};
  const long fd = syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  // A filter of system calls that does not know this one answers EPERM.
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return OpenResolved(path, follow);
}

// Opens `name` in `directory`; what is forbidden, as the owner of the directory or of the file.
int Step(int directory, const std::string& name, int flags) {
  int fd = openat(directory, name.c_str(), flags);
  struct stat found{};
  if (fd < 0 && errno == EACCES && fstat(directory, &found) == 0 && SetFileUser(found.st_uid))
    fd = openat(directory, name.c_str(), flags);
  if (fd < 0 && errno == EACCES && fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && SetFileUser(found.st_uid))
    fd = openat(directory, name.c_str(), flags);
  return fd;
}

// Root may read what every user may read, also in an agent that has no right to pass over
// permissions, but may act as any user: step by step, as the owner of what is forbidden. Links are
// not followed.
int OpenAsOwners(const std::string& path) {
  constexpr int kDirectory = O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC;
  File at(open("/", kDirectory));
  for (size_t from = 1; at.fd() >= 0 && from < path.size();) {
    const size_t end = std::min(path.find('/', from), path.size());
    const std::string name = path.substr(from, end - from);
    if (end == path.size()) return Step(at.fd(), name, kReading | O_NOFOLLOW);
    if (!name.empty()) at = File(Step(at.fd(), name, kDirectory));
    from = end + 1;
  }
  return -1;
}

std::string StateOf(const struct stat& status) {
  const auto number = [](uint64_t value) { return std::to_string(value) + ":"; };
  const auto time = [&](const timespec& at) {
    return number(static_cast<uint64_t>(at.tv_sec)) + number(static_cast<uint64_t>(at.tv_nsec));
  };
  return number(status.st_dev) + number(status.st_ino) + number(static_cast<uint64_t>(status.st_size)) +
         time(status.st_mtim) + time(status.st_ctim) + number(status.st_uid) + std::to_string(status.st_mode);
}

// 0 or an error. One byte more than there should be shows that the file has grown.
int ReadWhole(int fd, uint64_t size, std::vector<uint8_t>* bytes) {
  bytes->resize(size + 1);
  size_t length = 0;
  while (length < bytes->size()) {
    const ssize_t got = read(fd, bytes->data() + length, bytes->size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  if (length != size) return EBUSY;
  bytes->pop_back();
  return 0;
}

}  // namespace

void ForbidDumps() {
  dumps_forbidden = true;
  KeepDumpsForbidden();
}

UserFile ReadUserFile(const UserFileRequest& request) {
  UserFile result;
  if (request.path.empty() || request.path[0] != '/' || request.path.find('\0') != std::string::npos) {
    result.error = EINVAL;
    return result;
  }
  if (!TakeIdentity(request.user)) {
    result.error = EPERM;
    result.identity = true;
    return result;
  }
  int opened = OpenOnce(request.path, request.follow);
  if (opened < 0 && errno == EACCES && request.user.uid == 0 && geteuid() != 0) opened = OpenAsOwners(request.path);
  const File file(opened);
  struct stat status{};
  if (file.fd() < 0 || fstat(file.fd(), &status) != 0) {
    result.error = errno;
    return result;
  }
  result.regular = S_ISREG(status.st_mode);
  result.uid = status.st_uid;
  result.mode = status.st_mode & 07777;
  result.size = static_cast<uint64_t>(status.st_size);
  result.state = StateOf(status);
  if (!result.regular || result.size > request.most || result.state == request.known) return result;
  result.error = ReadWhole(file.fd(), result.size, &result.bytes);
  result.read = result.error == 0;
  if (!result.read && !result.bytes.empty()) explicit_bzero(result.bytes.data(), result.bytes.size());
  return result;
}

}  // namespace dke
