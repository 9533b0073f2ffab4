// The forms ulfm_sim prints in.
#pragma once

#include <string>

#include "curves.hpp"

namespace sim {

std::string table_of(const Curves& curves, const Options& options);
std::string json_of(const Curves& curves, const Options& options);
std::string csv_of(const Curves& curves);
/// Latency against offered load, all curves in one picture.
std::string svg_of(const Curves& curves);
/// The topology of the last curve, its links coloured by how busy they were at the last rate. Errc::too_large when it
/// is too large to draw.
Result<std::string> links_of(const Curve& curve);

/// `zero`: messages of every pair of nodes, each alone in a new network.
struct Zero {
  std::string text;          ///< to be printed
  std::uint64_t pairs = 0;   ///< simulated: all, or every so manieth when there are more than 20000
  std::uint64_t differ = 0;  ///< not as the closed form says
};
Result<Zero> run_zero(const Options& options);

}  // namespace sim
