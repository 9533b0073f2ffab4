// An environment of the test's own: without ULFM_* and PMI_* at first, as it was afterwards.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"

namespace test {

class Environment {
 public:
  using Settings = std::initializer_list<std::pair<const char*, std::string>>;
  explicit Environment(Settings settings) : Environment() {
    for (const auto& [name, value] : settings) set(name, value);
  }
  Environment() {
    std::vector<std::string> names;
    for (char** e = environ; *e != nullptr; ++e) {
      const std::string entry(*e);
      if (entry.rfind("ULFM_", 0) == 0 || entry.rfind("PMI_", 0) == 0)
        names.push_back(entry.substr(0, entry.find('=')));
    }
    for (const std::string& name : names) unset(name);
  }
  Environment(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_)
      if (value.empty()) unsetenv(name.c_str());
      else setenv(name.c_str(), value.c_str() + 1, 1);
  }
  void set(const std::string& name, const std::string& value) {
    remember(name);
    setenv(name.c_str(), value.c_str(), 1);
  }
  void unset(const std::string& name) {
    remember(name);
    unsetenv(name.c_str());
  }

 private:
  void remember(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    before_.try_emplace(name, value == nullptr ? "" : std::string("=") + value);
  }
  std::map<std::string, std::string> before_;
};

/// The defaults, and these rows as a command line sets them.
inline ulfm::Config config_with(std::initializer_list<std::pair<const char*, const char*>> rows) {
  Environment environment;
  ulfm::Config config = ulfm::Config::load().value();
  for (const auto& [row, value] : rows)
    if (auto ok = config.set(row, value, ulfm::Origin::command_line, "test"); !ok)
      throw std::runtime_error(ok.error().what);
  return config;
}

}  // namespace test
