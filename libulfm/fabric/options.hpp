// Options behind a transport's name: "frame=256,fifo=128".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace ulfm::fabric {

class Options {
 public:
  struct Row {
    const char* name;
    std::int64_t least, most;
    const char* word = nullptr;  ///< what there is instead of numbers; number() gives 1 for it
  };
  /// Errc::invalid for a name that is not in `rows`, a number out of its bounds, or one given twice.
  static Result<Options> parse(std::string_view text, std::initializer_list<Row> rows);

  std::int64_t number(const std::string& name, std::int64_t otherwise) const {
    const auto it = values_.find(name);
    return it != values_.end() ? it->second : otherwise;
  }

 private:
  std::map<std::string, std::int64_t> values_;
};

}  // namespace ulfm::fabric
