// Where processes of other hosts find the arena of their job: ULFM_FABRIC_DOOR, which ulfmrun sets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace ulfm::proxy {

struct DoorAddress {
  std::uint64_t host = 0;            ///< of the arena, as host_identity() has it
  std::uint32_t frame = 0;           ///< most bytes of a frame between a process and its proxy
  std::vector<std::uint32_t> nodes;  ///< on which node each process of the job is
  std::string card;                  ///< of the door
};

std::string encode(const DoorAddress& address);
/// Errc::protocol for anything that encode() does not write.
Result<DoorAddress> decode(std::string_view text);

/// The door of this process's job, when that has its arena on another host; nullptr when it is here, or there is none.
Result<const DoorAddress*> door_of_this_job();

}  // namespace ulfm::proxy
