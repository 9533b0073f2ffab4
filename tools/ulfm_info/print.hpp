// The forms ulfm_info prints in.
#pragma once

#include <string>
#include <vector>

#include "facts.hpp"
#include "mpi.hpp"

namespace info {

/// Parts of the text.
struct Sections {
  bool version = false, transports = false, config = false, waiting = false, full = false, effective = false;
};

std::string text_of(const Facts& facts, const Sections& sections);
std::string text_of(const MpiLibrary& mpi);
std::string json_of(const Facts& facts, const MpiLibrary& mpi);

/// Rows in the language of man pages, one .TP paragraph each.
std::string man_rows(const std::vector<const ulfm::ConfigRow*>& rows);

}  // namespace info
