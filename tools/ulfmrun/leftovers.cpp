#include "leftovers.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <vector>

namespace ulfmrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "mpich_shar_tmp";

std::vector<std::string> old_files(const std::string& folder, std::chrono::seconds age) {
  std::vector<std::string> old;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct stat info {};
    const std::string path = entry.path();
    if (entry.path().filename().string().starts_with(kPrefix) && lstat(path.c_str(), &info) == 0 &&
        S_ISREG(info.st_mode) && info.st_uid == geteuid() && std::time(nullptr) - info.st_mtime > age.count())
      old.push_back(path);
  }
  return old;
}

bool is_number(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Takes away from `files` what some process of this user has mapped: a job that was stopped goes on some day.
void keep_mapped(std::vector<std::string>& files) {
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    if (files.empty()) return;
    if (!is_number(process.path().filename())) continue;
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);)
      std::erase_if(files, [&](const std::string& file) { return line.ends_with(file); });
  }
}

}  // namespace

void remove_leftovers(const std::string& folder, std::chrono::seconds age) {
  std::vector<std::string> files = old_files(folder, age);
  if (files.empty()) return;
  keep_mapped(files);
  for (const std::string& file : files) (void)unlink(file.c_str());
}

}  // namespace ulfmrun
