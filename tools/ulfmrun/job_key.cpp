#include "job_key.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
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

// Whole or not at all, and of two that do so at once the first one's stays.
void write_key(const fs::path& path, const std::string& key) {
  const std::string draft = fmt::format("{}.{}", path.string(), getpid());
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  const bool written = write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size());
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
  fs::create_directories(folder, error);
  if (std::string key = read_key(path); !key.empty()) return key;
  write_key(path, fresh);
  const std::string key = read_key(path);
  return key.empty() ? fresh : key;
}

}  // namespace ulfmrun
