// The way between nodes: one port of this process, and the addresses of the others.
#pragma once

#include <ulfm/pieces.h>
#include <ulfm/ulfm.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cube.hpp"
#include "wire.hpp"

namespace nx2 {

inline constexpr std::uint16_t kPort = 2;  ///< 1 is MPI's; a host has one more for each further cube
inline constexpr std::uint16_t kPorts = 64;

class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() { close(); }

  /// Joins the job or the cube and opens the port. "" or why not.
  std::string open(Cube& cube);
  /// For a host, whose channels share a job: open() and close() are about that port of it only.
  void lend(ulfm_job job, std::uint16_t port) noexcept { lent_ = job, number_ = port; }
  /// Sends what was posted and leaves.
  void close();
  /// After fork(): what was opened is the parent's.
  void forget() noexcept { job_ = lent_ = port_ = 0, number_ = kPort, holds_ = false, group_ = 0; }
  bool is_open() const noexcept { return port_ != 0; }

  /// This process's number, the number of nodes, and how many numbers there are: one more when there is a
  /// host.
  int self() const noexcept { return self_; }
  int nodes() const noexcept { return nodes_; }
  int places() const noexcept { return static_cast<int>(peers_.size()); }
  const std::string& transport() const noexcept { return transport_; }
  /// What suits the transport (ULFM_SUITS_*).
  std::size_t suits(int what) const { return ulfm_job_suits(job_, what); }

  enum class Reach {
    there,
    not_yet,  ///< its program is being loaded, or none has been so far
    absent,   ///< what ran there has ended
  };
  Reach reach(int node);
  /// Counts the processes that were loaded at that place, the one that is being loaded included.
  std::uint32_t loads(int node) const noexcept { return cube_->exists() ? cube_->entry(node).use : 0; }
  /// This process ends: it does not wait for programs that nobody has begun to load.
  void wait_for_nobody_new() noexcept { waits_for_new_ = false; }
  /// Counts the processes that have been at that place, as far as reach() has seen them.
  std::uint32_t use(int node) const noexcept { return peers_[static_cast<std::size_t>(node)].use; }

  enum class Sent { gone, no_room, lost };
  /// Header and data as one port message. `lost`: the destination has closed its port.
  Sent send(ulfm_address to, const Header& header, const void* data, std::size_t size) {
    if (__builtin_expect(send_at_once(to, header, data, size), 1)) return Sent::gone;
    return send_by(header, data, size, [&] { return ulfm_post(port_, to); });
  }
  /// The same to all nodes but this one, of which reach() has found each: one message that the network copies.
  Sent send_to_all(const Header& header, const void* data, std::size_t size);
  /// Where a place is that reach() has found there.
  ulfm_address address(int node) const noexcept { return peers_[static_cast<std::size_t>(node)].address; }
  /// Nobody else can come to a place: nodes of a job, not of a cube.
  bool addresses_stay() const noexcept { return !cube_->exists(); }
  Cube& cube() noexcept { return *cube_; }

  /// The next message, which stays until the next poll(), wait() or close(): whoever has what he waited for goes on,
  /// and the buffer goes back when there is time. nullptr when nothing is there.
  const ulfm_message* poll() {
    give_back();
    holds_ = ulfm_poll(port_, &last_) == 1;
    return holds_ ? &last_ : nullptr;
  }
  /// The same, but waits: nullptr after `limit_ns`, and after a failure that the port had to tell of.
  const ulfm_message* wait(std::int64_t limit_ns) {
    give_back();
    const int rc = ulfm_wait(port_, limit_ns, &last_);
    holds_ = rc == 1;
    peer_failed_ = peer_failed_ || rc == ULFM_ERR_PEER_FAILED;
    return holds_ ? &last_ : nullptr;
  }
  /// Whether a wait has told, since the last call, that a process has ended or does not answer any more.
  bool take_failure() noexcept { return std::exchange(peer_failed_, false); }
  /// Messages of so many bytes are set apart from their headers.
  void set_apart_from(std::size_t bytes) noexcept { apart_from_ = bytes; }
  ulfm_port port() const noexcept { return port_; }
  ulfm_job job() const noexcept { return job_; }

 private:
  struct Peer {
    ulfm_address address{};
    bool known = false;
    std::uint32_t use = 0;  ///< of the cube's entry, when the address was taken from it
  };
  /// Short messages go in one piece, which a cell of the transport takes without a loop.
  static constexpr std::size_t kOnePiece = 128;
  bool send_at_once(ulfm_address to, const Header& header, const void* data, std::size_t size) {
    if (size >= apart_from_) {
      const ApartHeader apart = set_apart(header);
      const iovec pieces[] = {{const_cast<ApartHeader*>(&apart), sizeof apart}, {const_cast<void*>(data), size}};
      return ulfm_send_pieces(port_, to, pieces, 2) == 1;
    }
    if (sizeof header + size <= kOnePiece) {
      std::byte together[kOnePiece];
      std::memcpy(together, &header, sizeof header);
      if (size != 0) std::memcpy(together + sizeof header, data, size);
      const iovec piece{together, sizeof header + size};
      return ulfm_send_pieces(port_, to, &piece, 1) == 1;
    }
    const iovec pieces[] = {{const_cast<Header*>(&header), sizeof header}, {const_cast<void*>(data), size}};
    return ulfm_send_pieces(port_, to, pieces, 2) == 1;
  }
  static ApartHeader set_apart(const Header& header) noexcept {
    ApartHeader apart{header, {}};
    apart.header.kind = static_cast<Kind>(static_cast<std::uint8_t>(header.kind) | kApart);
    return apart;
  }
  template <typename Post>
  Sent send_by(const Header& header, const void* data, std::size_t size, Post post) {
    void* buffer = nullptr;
    if (ulfm_compose(port_, sizeof header + size, &buffer) < 0) return Sent::no_room;
    std::memcpy(buffer, &header, sizeof header);
    if (size != 0) std::memcpy(static_cast<std::byte*>(buffer) + sizeof header, data, size);
    if (__builtin_expect(post() == ULFM_OK, 1)) return Sent::gone;
    (void)ulfm_discard(port_);
    return Sent::lost;
  }
  void give_back() {
    if (holds_) (void)ulfm_release(port_, &last_);
    holds_ = false;
  }
  std::string open_in_job();
  std::string open_in_cube();
  std::string open_port();
  static Presence presence_of(CubeEntry& entry);

  Cube* cube_ = nullptr;
  ulfm_job job_ = 0;
  ulfm_job lent_ = 0;
  std::uint16_t number_ = kPort;
  ulfm_port port_ = 0;
  ulfm_group group_ = 0;  ///< of all other nodes, once it was used
  ulfm_message last_{};
  bool peer_failed_ = false;
  bool holds_ = false;
  std::size_t apart_from_ = ~std::size_t{0};
  int self_ = 0, nodes_ = 1;
  bool waits_for_new_ = true;
  std::vector<Peer> peers_;
  std::string transport_;
};

}  // namespace nx2
