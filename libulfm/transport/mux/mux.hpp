// One transport over several: direct for processes of this host, ofi for those of others. Which one carries to whom is
// decided for each process, by its card. A card is "mux:<card of the first>&<card of the second>&..."; what stands
// before the first '&' names the process, as control::identity_of() has it.
#pragma once

#include <memory>
#include <vector>

#include "transport/contract.hpp"

namespace ulfm {

/// Jobs on several hosts.
extern const TransportDescriptor mux_transport;

/// One over two or more. The first is asked first, for a process and for frames; it wakes by a doorbell of its own.
/// Each of the others has a descriptor to wait on.
Result<std::unique_ptr<Transport>> make_mux(std::vector<std::unique_ptr<Transport>> parts);

/// The launcher says that this job has processes on other hosts than this one.
bool spans_hosts();

}  // namespace ulfm
