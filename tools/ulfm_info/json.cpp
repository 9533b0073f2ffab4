// The form for programs. The keys are documented in ulfm_info(1); they are only ever added to.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "print.hpp"

namespace info {
namespace {

using Json = nlohmann::ordered_json;

const char* type_name(ulfm::RowType type) {
  using ulfm::RowType;
  switch (type) {
    case RowType::boolean: return "boolean";
    case RowType::count: return "count";
    case RowType::bytes: return "bytes";
    case RowType::milliseconds: return "milliseconds";
    case RowType::text: return "text";
    case RowType::choice: return "choice";
  }
  return "";
}

Json json_of(const Setting& setting) {
  const ulfm::ConfigRow& row = *setting.row;
  Json json{{"name", setting.variable()},           {"value", setting.value},
            {"origin", ulfm::name(setting.origin)}, {"where", setting.where},
            {"type", type_name(row.type)},          {"unit", row.unit},
            {"default", row.default_value},         {"help", row.help}};
  json["number"] = setting.is_number() && !setting.value.empty() ? Json(setting.number) : Json();
  json["min"] = setting.is_number() ? Json(row.min) : Json();
  json["max"] = setting.is_number() ? Json(row.max) : Json();
  json["choices"] = row.choices;
  return json;
}

Json json_of(const TransportFacts& facts) {
  const auto& t = *facts.descriptor;
  return {{"name", t.name},
          {"summary", t.summary},
          {"usable", facts.unavailable.empty()},
          {"unusable_because", facts.unavailable},
          {"reliable", t.reliable},
          {"ordered", t.ordered},
          {"multicast", t.multicast},
          {"multi_host", t.multi_host},
          {"max_frame", t.max_frame},
          {"latency_us", t.latency_us},
          {"bandwidth_MBps", t.bandwidth_MBps},
          {"options", facts.options},
          {"settings", facts.settings()}};
}

Json json_of(const ulfm::WaitPolicy& policy) {
  return {{"spins", policy.spins},
          {"pauses", policy.pauses},
          {"yield_for_ns", policy.yield_for.count()},
          {"park_limit_ns", policy.park_limit.count()}};
}

}  // namespace

std::string json_of(const Facts& facts, const MpiLibrary& mpi) {
  Json json{{"version", facts.version},
            {"build", {{"compiler", facts.compiler}, {"optimised", facts.optimised}}},
            {"transport", {{"asked", facts.asked}, {"selected", facts.selected}, {"problem", facts.problem}}},
            {"transports", Json::array()},
            {"settings", Json::array()}};
  for (const auto& transport : facts.transports) json["transports"].push_back(json_of(transport));
  for (const auto& setting : facts.settings) json["settings"].push_back(json_of(setting));
  json["waiting"] = {{"cores", facts.waiting.cores},
                     {"barriers", facts.waiting.barriers},
                     {"a_core_each", json_of(facts.waiting.enough)},
                     {"more_processes_than_cores", json_of(facts.waiting.shared)}};
  json["warnings"] = facts.warnings;
  json["mpi"] = {{"library", mpi.path}, {"version", mpi.version}, {"is_ulfm", mpi.is_ulfm}, {"problem", mpi.problem}};
  return fmt::format("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace info
