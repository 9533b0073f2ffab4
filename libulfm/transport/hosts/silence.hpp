// Whether the host at the other end of a TCP connection is still there.
//
// A host that is gone acknowledges nothing. A process that reads nothing, for however long, has a kernel that does, and
// so has one that is stopped. TCP_USER_TIMEOUT does not tell the two apart (since Linux 5.11), so this asks TCP_INFO.
#pragma once

#include <chrono>

#include "base/error.hpp"
#include "transport/contract.hpp"

namespace ulfm::hosts {

/// A network asks is_silent() of its connections so often.
inline constexpr std::chrono::milliseconds kLookForSilenceEvery{1000};
/// After the end of a connection, what its process sent on another one may still be on the way here.
inline constexpr std::chrono::seconds kTrailFor{2};
/// A process that ends waits so long for peers to take what it has sent.
inline constexpr std::chrono::seconds kDrainFor{10};

/// Has the kernel ask the other host for a sign of life: on an idle connection often enough for is_silent(), and of
/// what is not acknowledged too. It gives an idle connection up by itself after `probes` without an answer.
void ask_for_life(int socket, std::chrono::milliseconds give_up, int probes) noexcept;
/// The probes after which is_silent() has known for long.
int more_probes(std::chrono::milliseconds give_up) noexcept;

/// The other host has been asked at least twice, and nothing has come from it for `give_up`. A system call.
bool is_silent(int socket, std::chrono::milliseconds give_up) noexcept;

/// What is said of such a peer.
Error silence_of(const ProcessId& peer, std::chrono::milliseconds give_up);

}  // namespace ulfm::hosts
