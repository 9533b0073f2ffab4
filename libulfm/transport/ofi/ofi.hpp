#pragma once

#include "transport/contract.hpp"

namespace ulfm {

/// Data of a frame where ULFM_FRAME says nothing. Each frame is a system call at either end and a copy into and out of
/// libfabric's buffers, which are touched only as far as frames are long.
inline constexpr std::size_t kLongestOfiFrame = 128 * 1024;

/// Other hosts: libfabric's connections.
extern const TransportDescriptor ofi_transport;

/// The same for the library's own use, beside what the program has: frames of at least so many bytes, and a port more,
/// of number kPortsPerProcess.
Result<std::unique_ptr<Transport>> make_carrier(const Config& config, std::size_t frame);

}  // namespace ulfm
