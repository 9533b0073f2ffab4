// What the transports over emulated interconnects have in common: everything but the model.
#pragma once

#include "fabric/engine/engine.hpp"
#include "transport/contract.hpp"

namespace ulfm::emulated {

/// A transport on that engine's interconnect.
std::unique_ptr<Transport> on(std::unique_ptr<fabric::FabricEngine> engine);

/// A transport on the interconnect of this job, which must be the one of that name.
Result<std::unique_ptr<Transport>> make(const char* model);

/// The emulated node of each rank of this job, numbered from 0; empty when the job has no arena.
std::vector<int> nodes(int size);

/// What such a transport says of itself. Latency and bandwidth are rough ones of all of them on one host.
constexpr TransportDescriptor descriptor(const char* name, const char* summary, std::size_t max_frame,
                                         Result<std::unique_ptr<Transport>> (*make)(const Config&),
                                         bool control = false, bool multicast = false) {
  return {
      .name = name,
      .summary = summary,
      .reliable = true,
      .ordered = true,
      .single_copy = false,
      .multicast = multicast,
      .multi_host = false,
      .max_frame = max_frame,
      .latency_us = 1,
      .bandwidth_MBps = 5000,
      .config_rows = "TOPOLOGY",
      .takes_options = true,
      .links = true,
      .control = control,
      .nodes = nodes,
      .unavailable = [] { return std::string(); },
      .make = make,
  };
}

}  // namespace ulfm::emulated
