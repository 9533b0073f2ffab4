// What the facts of a host mean for a job.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report.hpp"

namespace doctor {

/// They have all that the checks look at: an agent of another version may leave something out.
bool is_complete(const nlohmann::json& facts);

/// `here` and `there` are complete facts of this host and of another (or the same).
Finding check_version(const nlohmann::json& here, const nlohmann::json& there);
Finding check_name(const std::string& host, const nlohmann::json& here, const nlohmann::json& there);
Finding check_network(const nlohmann::json& there);
Finding check_limits(const nlohmann::json& there);
Finding check_folder(const std::string& folder, const nlohmann::json& there);
Finding check_clock(double difference, double within);
/// `way` is what the agent said of it.
Finding check_way(const nlohmann::json& way, int mtu_back);

}  // namespace doctor
