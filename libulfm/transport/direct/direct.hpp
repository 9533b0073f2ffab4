// The `direct` transport: shared memory between processes of one host.
#pragma once

#include "transport/contract.hpp"

namespace ulfm {
extern const TransportDescriptor direct_transport;
}
