// One transport over two: direct for processes of this host, ofi for those of others. Which one carries to whom is
// decided for each process, by its card. A card is "mux:<card of direct>&<card of ofi>"; what stands before the '&'
// names the process, as control::identity_of() has it.
#pragma once

#include <memory>

#include "transport/contract.hpp"

namespace ulfm {

/// Jobs on several hosts.
extern const TransportDescriptor mux_transport;

/// One over any two. `near` is asked first, for a process and for frames; it wakes by a doorbell of its own. `far` has
/// a descriptor to wait on.
Result<std::unique_ptr<Transport>> make_mux(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far);

/// The launcher says that this job has processes on other hosts than this one.
bool spans_hosts();

}  // namespace ulfm
