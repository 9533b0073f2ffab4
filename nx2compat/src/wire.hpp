// What nodes say to each other: a header in front of every port message.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nx2 {

/// Pierce, section 3: a short message takes one trip; a long one takes three, of which `proxy` is the first,
/// `request` the second, and the third is here as many `data` messages as it takes, each no longer than a
/// short buffer.
enum class Kind : std::uint8_t {
  message = 1,  ///< a whole short message follows the header
  proxy,        ///< stands for a long message; a ProxyBody follows
  request,      ///< type: the sender's number for the message; source_ptype: the receiver's
  refuse,       ///< type: the sender's number; the message is not wanted any more
  data,         ///< type: the receiver's number; the next bytes of the message follow
  buffers,      ///< nothing but the buffers it returns
  bye,          ///< this process ends; what is sent to it from now on is lost. type: which of its node's it is
  kill,         ///< killcube: end
  ping,         ///< is anybody there? Nothing to answer: that it can be sent is the answer
  entry,        ///< an EntryBody follows: a place of the cube, for a process that does not share the host's table
};

struct Header {
  std::uint16_t source;  ///< node that sends
  Kind kind;
  std::uint8_t buffers;  ///< short buffers that the sender of this returns to its receiver
  std::int32_t type;
  std::int32_t source_ptype;
  std::int32_t ptype;  ///< of the process it is for; -1 for whichever is there
};
// With the port's own 8 bytes, 24 bytes of data still travel in the cache line of the cell.
static_assert(sizeof(Header) == 16);

/// In `kind`: the message begins a cache line behind the header, so that copies of long ones are aligned.
inline constexpr std::uint8_t kApart = 0x80;
inline constexpr std::size_t kLine = 64;
/// A header with its distance.
struct alignas(kLine) ApartHeader {
  Header header;
  std::byte rest[kLine - sizeof(Header)];
};

/// The numbers of long messages begin with which of its node's processes chose them: what is still on its way from or
/// to a process that has ended is not taken for that of the program that was loaded there since.
inline constexpr std::uint32_t kNumberBits = 24;
inline constexpr std::uint32_t kNumberMask = (1u << kNumberBits) - 1;

/// A place of the cube as cube.hpp has it, between its host and nodes on other hosts.
struct EntryBody {
  std::int32_t node;
  std::uint32_t presence;
  std::int32_t ptype;
  std::int32_t pid;
  std::uint32_t use;
  std::uint32_t port;
  char card[1024];
};

struct ProxyBody {
  std::uint64_t count;
  std::uint32_t id;  ///< the sender's number for the message
  std::uint32_t reserved;
};

}  // namespace nx2
