// The numbers of the protocol: those of shared memory, and those of all else, which the transport adjusts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nx2 {

class Channel;

struct Tuning {
  std::size_t short_limit;     ///< bytes; longer messages ask first
  std::uint32_t buffers;       ///< short buffers that each node sets aside for each other node
  std::uint32_t data_buffers;  ///< of these, kept for the third trip of long messages
  std::size_t data_piece;      ///< bytes of a message of kind `data`
  std::size_t memory;          ///< bytes that a node keeps for messages nobody has asked for yet; 0: by the machine
  std::size_t to_all = 0;      ///< bytes; messages to all nodes that are no longer go by multicast; 0: none does
  std::size_t apart = ~std::size_t{0};  ///< bytes of messages that lie a line behind their headers
};

/// Data go in pieces of one frame of a lane of `direct`, which is small enough that what the sender has just written is
/// still in a cache when the receiver reads it, or in those that suit the transport. Where the network itself copies
/// what is for all nodes, that goes at once.
inline constexpr std::size_t kFramePiece = 16 * 1024;
/// 100 bytes, as on the iPSC/2 (Pierce, section 3.1).
inline constexpr Tuning kUsual{100, 64, 16, kFramePiece, 0};
/// 16 KB: the two further trips cost more than copying that much into a buffer of the system would, and where nodes
/// share cores two turns of the scheduler; above it a proxy avoids that copy. A message is still one frame.
inline constexpr Tuning kSharedMemory{kFramePiece, 64, 16, kFramePiece, 0, 0, 1024};

/// The numbers for an open channel, with NX2_SHORT, NX2_BUFFERS and NX2_MEMORY (bytes) taken from the environment.
Tuning tuning_for(const Channel& channel);

}  // namespace nx2
