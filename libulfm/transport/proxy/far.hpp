// The transport of a process on another host than the arena of its job: everything is done by a proxy there.
#pragma once

#include "transport/contract.hpp"
#include "transport/proxy/address.hpp"

namespace ulfm::proxy {

/// A transport by way of that door, on an interconnect of that model.
Result<std::unique_ptr<Transport>> make_far(const Config& config, const DoorAddress& door, std::string_view model);

}  // namespace ulfm::proxy
