// The records of virtual connections in an arena. A connection has one from its beginning until its receiver forgets
// it.
#pragma once

#include "fabric/engine/engine.hpp"

namespace ulfm::emulated {

/// One use of a record: it goes to others afterwards, and whoever still means this one finds that.
struct RecordUse {
  std::uint32_t record = 0;
  std::uint32_t generation = 0;
};

/// A record for a new connection, to be filled in and shown. Errc::full when all are in use; then those have been given
/// back first that nobody will meet or forget any more, which costs system calls. Any thread of any process.
Result<RecordUse> claim_record(fabric::FabricEngine& engine);
/// The record is filled in: its receiver may meet it.
void show_record(fabric::FabricArena& arena, RecordUse use) noexcept;
/// By its receiver, at its first frame. False when this use is over, or not shown.
bool meet_record(fabric::FabricArena& arena, RecordUse use) noexcept;
/// This use is not over: the receiver has not forgotten the connection.
bool has_record(const fabric::FabricArena& arena, RecordUse use) noexcept;
/// By its receiver, which forgets the connection.
void give_back_record(fabric::FabricArena& arena, RecordUse use) noexcept;
/// By its sender, of which no frame is on its way and none will be: when the receiver has not met it, it never will.
void give_back_unmet(fabric::FabricArena& arena, RecordUse use) noexcept;

}  // namespace ulfm::emulated
