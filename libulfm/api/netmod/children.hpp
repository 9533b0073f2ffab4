// Children that a rank forks: they have its memory, but not its place among the others.
#pragma once

#include <ulfm/netmod.h>

#include <string>

namespace ulfm::netmod {

/// From here on the table is that of a rank of this name. In a child that the process forks each function of it that
/// sends, takes or waits ends the child with a sentence. Once for each rank that is opened; one thread at a time.
void begin_rank(ulfm_nm_api& table, const std::string& name);

/// The rank is closed. When all are, a child may be a rank of its own.
void end_rank() noexcept;

}  // namespace ulfm::netmod
