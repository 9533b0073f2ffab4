#pragma once

#include "transport/contract.hpp"

namespace ulfm {
extern const TransportDescriptor ideal_transport;
}
