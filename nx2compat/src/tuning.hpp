// The numbers of the protocol, by transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nx2 {

struct Tuning {
  std::string_view transport;
  std::size_t short_limit;     ///< bytes; longer messages ask first
  std::uint32_t buffers;       ///< short buffers that each node sets aside for each other node
  std::uint32_t data_buffers;  ///< of these, kept for the third trip of long messages
  std::size_t data_piece;      ///< bytes of a message of kind `data`
  std::size_t memory;          ///< bytes that a node keeps for messages nobody has asked for yet; 0: by the machine
  std::size_t to_all = 0;      ///< bytes; messages to all nodes that are no longer go by multicast; 0: none does
  std::size_t apart = ~std::size_t{0};  ///< bytes of messages that lie a line behind their headers
};

/// Rows for the transports that are tuned; the last one is for all others.
///
/// dcm: 100 bytes, as on the iPSC/2 (Pierce, section 3.1).
/// pointdesign: the network copies what is for all nodes, so that goes at once, up to what fits into one of its
/// messages beside the list of the receivers. What is for one node is as elsewhere.
/// direct: 16 KB. The two further trips cost more than copying that much into a buffer of the system would, and where
/// nodes share cores two turns of the scheduler; above it a proxy avoids that copy. A message is still one frame.
///
/// Data go in pieces of one frame of a lane of `direct`, which is small enough that what the sender has just written is
/// still in a cache when the receiver reads it. On dcm each is a message of the machine, whose software takes its time
/// for it (see pace=ipsc2), and the iPSC/2 sent the whole in one: as few as memory for send buffers allows.
inline constexpr std::size_t kFramePiece = 16 * 1024;
inline constexpr Tuning kTuning[] = {
    {"dcm", 100, 64, 16, 512 * 1024, 0},
    {"pointdesign", 100, 64, 16, kFramePiece, 0, 8 * 1024},
    {"direct", kFramePiece, 64, 16, kFramePiece, 0, 0, 1024},
    {"", 100, 64, 16, kFramePiece, 0},
};

/// The row for a transport, with NX2_SHORT, NX2_BUFFERS and NX2_MEMORY (bytes) taken from the environment.
Tuning tuning_for(std::string_view transport);

}  // namespace nx2
