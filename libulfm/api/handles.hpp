// Handles: numbers that stand for jobs and ports, so that a stale one is an error and not a crash.
//
// job handle   {slot + 1 : 32, generation : 32}
// port handle  {port number + 1 : 16, job slot : 16, port generation : 32}
#pragma once

#include <ulfm/ulfm.h>

#include <memory>

#include "port/node.hpp"

namespace ulfm {

/// Gives a node a handle. The table owns it from here on. Errc::full after 64 jobs at a time.
Result<ulfm_job> adopt_node(std::unique_ptr<Node> node);
/// The node of a handle, or Errc::stale.
Result<Node*> node_of(ulfm_job job);
/// Takes it out of the table.
Result<std::unique_ptr<Node>> disown_node(ulfm_job job);

struct OpenPort {
  Node* node = nullptr;
  PortCore* core = nullptr;
};
Result<ulfm_port> open_port(ulfm_job job, std::uint16_t number, std::uint32_t slot_bytes, std::uint32_t depth);
/// The port of a handle; core is nullptr when the handle is stale.
OpenPort port_of(ulfm_port port) noexcept;
Result<void> close_port(ulfm_port port);

}  // namespace ulfm
