// Options behind a transport's name: "frame=256,fifo=128".
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace ulfm::fabric {

class Options {
 public:
  struct Row {
    const char* name;
    std::int64_t least, most;
    const char* words = nullptr;  ///< "store|cut-through": one of these in place of a number, counted from 0
  };
  /// Errc::invalid for a name that is neither in `rows` nor a duration (durations.hpp), a number out of its bounds, a
  /// word that is none of them, or one given twice.
  static Result<Options> parse(std::string_view text, std::span<const Row> rows);
  /// The number of one option in such a text; `otherwise` when it is not given.
  static std::int64_t one(std::string_view text, std::string_view name, std::int64_t otherwise);

  std::int64_t number(const std::string& name, std::int64_t otherwise) const {
    const auto it = values_.find(name);
    return it != values_.end() ? it->second : otherwise;
  }
  /// Takes the option's value where it is given, and leaves what is there otherwise.
  template <typename Value>
  void set(Value& value, const std::string& name) const {
    const auto it = values_.find(name);
    if (it != values_.end()) value = static_cast<Value>(it->second);
  }

 private:
  std::map<std::string, std::int64_t> values_;
};

}  // namespace ulfm::fabric
