// What ulfm_info knows: gathered once, then printed in the form asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/wait.hpp"
#include "transport/registry.hpp"

namespace info {

/// One setting as it takes effect.
struct Setting {
  const ulfm::ConfigRow* row;
  std::string value;    ///< as given, or the default
  std::int64_t number;  ///< what the library reads; -1 when it is unset, 0 for text
  ulfm::Origin origin;
  std::string where;  ///< "file:line" for Origin::file

  std::string variable() const { return fmt::format("ULFM_{}", row->name); }
  bool changed() const { return origin != ulfm::Origin::default_value; }
  bool is_number() const { return row->type != ulfm::RowType::text && row->type != ulfm::RowType::choice; }
  /// "default", "environment", "settings.toml:3".
  std::string origin_text() const { return origin == ulfm::Origin::file ? where : ulfm::name(origin); }
};

struct TransportFacts {
  const ulfm::TransportDescriptor* descriptor;
  std::string unavailable;           ///< "" when it can be used
  std::vector<std::string> options;  ///< of a model, "width=1..4096"
  std::vector<std::string> settings() const;
};

struct Waiting {
  int cores;
  bool barriers;            ///< the kernel's process-wide barrier can be used
  ulfm::WaitPolicy enough;  ///< a core for every process
  ulfm::WaitPolicy shared;  ///< more processes than cores
};

struct Facts {
  std::string version, compiler;
  bool optimised;
  std::vector<TransportFacts> transports;
  std::string asked, selected, problem;  ///< of the transport: setting, what it comes to, or why it does not
  std::vector<Setting> settings;
  Waiting waiting;
  std::vector<std::string> warnings;
};

/// Fails when a setting has a value that cannot be.
ulfm::Result<Facts> gather();

/// The settings a transport reads, or all of them for "".
std::vector<const ulfm::ConfigRow*> rows_of(std::string_view transport);

/// What a row accepts: "from 64 to 1048576", "one of a, b".
std::string range_text(const ulfm::ConfigRow& row);

}  // namespace info
