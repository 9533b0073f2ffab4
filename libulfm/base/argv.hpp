// Words of a command as execve(2) takes them.
#pragma once

#include <string>
#include <vector>

namespace ulfm {

/// Points into `words`, and ends with a null pointer.
inline std::vector<char*> argv_of(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

}  // namespace ulfm
