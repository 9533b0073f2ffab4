#include "job_key.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

namespace ulfmrun {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigits = 32;

std::string random_key() {
  std::array<unsigned char, kDigits / 2> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Only a file of ours that others can neither read nor write; "" for anything else.
std::string read_key(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return "";
  struct stat facts {};
  std::string text(kDigits, '\0');
  const bool good = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
                    (facts.st_mode & 077) == 0 && facts.st_size == static_cast<off_t>(kDigits) &&
                    ::read(fd, text.data(), text.size()) == static_cast<ssize_t>(kDigits) &&
                    text.find_first_not_of("0123456789abcdef") == text.npos;
  close(fd);
  return good ? text : "";
}

// What is missing of it, for this user alone, whatever the umask.
void make_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::exists(folder, error)) return;
  make_folder(folder.parent_path());
  if (mkdir(folder.c_str(), 0700) == 0) (void)chmod(folder.c_str(), 0700);
}

// Two jobs that begin at once agree about the key. A file system without such locks does without.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : fd_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ >= 0) (void)flock(fd_, LOCK_EX);
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

// A file that was begun and lost its content, when the machine stopped: in no way of the user's making.
void remove_empty(const fs::path& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0) (void)unlink(path.c_str());
}

// Whole or not at all, and of two that do so at once the first one's stays.
void write_key(const fs::path& path, const std::string& key) {
  const std::string draft = fmt::format("{}.{}", path.string(), getpid());
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  const bool written = write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size()) && fsync(fd) == 0;
  close(fd);
  if (written) (void)link(draft.c_str(), path.c_str());
  (void)unlink(draft.c_str());
}

}  // namespace

std::string key_of_user() {
  std::string fresh = random_key();
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if ((cache == nullptr || *cache != '/') && (home == nullptr || *home != '/')) return fresh;
  const fs::path folder = cache != nullptr && *cache == '/' ? fs::path(cache) / "ulfm" : fs::path(home) / ".cache/ulfm";
  const fs::path path = folder / "job-key";
  std::error_code error;
  make_folder(folder);
  const FolderLock one_at_a_time(folder);
  if (std::string key = read_key(path); !key.empty()) return key;
  remove_empty(path);
  write_key(path, fresh);
  const std::string key = read_key(path);
  if (key.empty() && fs::exists(fs::symlink_status(path, error)))
    std::fprintf(stderr,
                 "ulfmrun: %s: needs %zu hexadecimal digits, in a file of yours that nobody else can read; remove it, "
                 "and a new one is made. This job has a key of its own, and others cannot connect to it\n",
                 path.c_str(), kDigits);
  return key.empty() ? fresh : key;
}

}  // namespace ulfmrun
