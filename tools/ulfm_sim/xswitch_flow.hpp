// X-Switches for synthetic load: the third form of the model, which knows frames and no units.
//
// fabric/xswitch/reference.hpp says what happens in a cycle. This form does the same to the unit and the cycle, and has
// neither faults, nor stalled nodes, nor the counters of live traffic; in return it handles one event for each switch
// that a frame crosses: the poll that finds its head. What follows from a poll is known at once, as long as nothing
// stops it:
//
//   an output sends the rest of a frame from `start` on, a unit a cycle, and polls again behind its last unit, in `end`
//   the frame comes to the next FIFO `link` cycles later; when its head can first be polled there, and by which output
//   of heads that have been announced in this way the output takes the one that its polling finds first
//
// Announcements are about cycles to come, so that they can be taken back: when ID-STOP arrives, a command takes the
// place of a unit, or a FIFO runs dry, `end` is not known until that is over, and what was announced on its account is
// withdrawn. Only then do units have to be counted, from the cycle of the first one. A FIFO is looked at for its
// thresholds only while its frames could fill it so far.
#pragma once

#include <memory>
#include <vector>

#include "fabric/xswitch/parameters.hpp"
#include "network.hpp"

namespace sim {

/// A network for so many frames at a time. nullptr: a switch has more than kFlowPorts ports.
std::unique_ptr<SubjectNetwork> make_flow(const Topology& topology, const ulfm::fabric::xswitch::Parameters& parameters,
                                          std::uint32_t frames);

inline constexpr std::uint32_t kFlowPorts = 256;

}  // namespace sim
