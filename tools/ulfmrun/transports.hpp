// The one place that knows which transports there are.
#pragma once

#include <string>

namespace ulfmrun {

/// Checks NAME[,option=value...]; `origin` ("--transport", "ULFM_TRANSPORT") is for messages. Fails with
/// kUsage.
void check_transport(const std::string& spec, const std::string& origin);

/// Checks that the transport is one that takes --topology. Fails with kUsage.
void check_emulated(const std::string& spec, const std::string& option);

/// Checks the expression of --fault, and that the transport has what it takes away. Fails with kUsage.
void check_fault(const std::string& spec, const std::string& expression);

/// "auto, direct".
std::string transport_list();

}  // namespace ulfmrun
