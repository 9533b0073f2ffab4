// The one list of transports.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transport/contract.hpp"

namespace ulfm {

std::span<const TransportDescriptor* const> transports();

/// The transport of that name; "auto" takes the first that can be used. The options behind a comma belong to the
/// transport. The path of a shared object with a model in it names that model's transport. An unknown or unusable one
/// is an error that names what there is.
Result<const TransportDescriptor*> select_transport(std::string_view name);

}  // namespace ulfm
