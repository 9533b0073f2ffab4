#include "transport/direct/pool.hpp"

#include <algorithm>

#include "job/liveness.hpp"

namespace ulfm::direct {
namespace {
constexpr auto kLookEvery = std::chrono::milliseconds(100);  // for the dead, while no buffer is free
}

bool Pool::is_free(std::uint32_t buffer) const noexcept {
  for (std::uint32_t w = 0; w < at_.words; ++w)
    if (word(buffer, w * 64).load(std::memory_order_acquire) != 0) return false;
  return true;
}

// Relaxed: the receiver learns of it by its lane.
void Pool::acquire(std::uint32_t buffer, std::uint32_t member) const noexcept {
  word(buffer, member).fetch_or(std::uint64_t{1} << member % 64, std::memory_order_relaxed);
}

void Pool::release(std::uint32_t buffer, std::uint32_t member) const noexcept {
  word(buffer, member).fetch_and(~(std::uint64_t{1} << member % 64), std::memory_order_release);
}

std::int64_t Pool::buffer_at(const std::byte* address) const noexcept {
  const std::byte* first = buffer(0);
  if (address < first || address >= first + std::size_t{kPoolBuffers} * kPoolBuffer) return -1;
  return (address - first) / kPoolBuffer;
}

// ---- the sender -----------------------------------------------------------------------------------------------------

DirectMulticast::DirectMulticast(std::vector<DirectOutlet*> outlets, Pool pool, PassedDescriptors& passed)
    : outlets_(std::move(outlets)),
      announced_(outlets_.size(), 0),
      pool_(std::move(pool)),
      passed_(passed),
      what_(passed.add(pool_.segment().fd())) {
  for (std::uint32_t i = 0; i < outlets_.size(); ++i) announce(i);
}

DirectMulticast::~DirectMulticast() {
  pool_.header().closed.store(1, std::memory_order_relaxed);
  passed_.remove(what_);
}

std::unique_ptr<Multicast> DirectMulticast::make(std::span<Outlet* const> outlets, PassedDescriptors& passed) {
  std::vector<DirectOutlet*> own;
  for (Outlet* outlet : outlets) own.push_back(dynamic_cast<DirectOutlet*>(outlet));
  if (own.size() > kMostMembers || own.size() - std::count(own.begin(), own.end(), nullptr) < 2) return nullptr;
  const PoolLayout at(static_cast<std::uint32_t>(own.size()));
  auto segment = Segment::create("ulfm-group", at.end);
  if (!segment || !segment->commit(0, at.buffers)) return nullptr;  // without memory for it there are copies
  auto* header = segment->at<PoolHeader>(0);
  header->magic = kPoolMagic;
  header->token = random_token();
  header->members = at.members;
  return std::unique_ptr<Multicast>(new DirectMulticast(std::move(own), Pool(std::move(*segment), at.members), passed));
}

// References go by lanes, so a receiver that holds one blocks nobody else. A member whose lane has no room gets the
// notice later.
void DirectMulticast::announce(std::uint32_t member) {
  if (outlets_[member] == nullptr) return;
  const PoolNotice notice{pool_.header().token, pool_.segment().fd(), what_,
                          static_cast<std::uint32_t>(outlets_.size()), member};
  announced_[member] = outlets_[member]->push_in_lane(kCellPool, {}, &notice, sizeof notice) ? 1 : 0;
}

bool DirectMulticast::may_share(std::uint32_t member) {
  if (outlets_[member] == nullptr) return false;
  if (announced_[member] == 0) announce(member);
  return pool_.attached(member).load(std::memory_order_relaxed) == 1;
}

// A buffer that nobody holds; -1 when there is none, or no memory for it.
std::int64_t DirectMulticast::take_buffer() {
  for (std::uint32_t looks = 0; looks < kPoolBuffers; ++looks) {
    const std::uint32_t at = next_;
    next_ = next_ + 1 < std::min(committed_ + 1, kPoolBuffers) ? next_ + 1 : 0;
    if (at == committed_) {
      if (!pool_.commit(at)) continue;
      ++committed_;
    }
    if (pool_.is_free(at)) return at;
  }
  if (const auto now = std::chrono::steady_clock::now(); now - looked_ >= kLookEvery) {
    looked_ = now;
    look_for_dead();
  }
  return -1;
}

bool DirectMulticast::push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
                           std::vector<std::uint32_t>& who) {
  std::vector<std::uint32_t> shares;
  if (length > kLeastFrame && headers.length + sizeof(PoolReference) <= kInline)
    std::copy_if(who.begin(), who.end(), std::back_inserter(shares), [&](auto member) { return may_share(member); });
  const std::int64_t buffer = shares.size() > 1 ? take_buffer() : -1;
  if (buffer < 0) {
    data.skip(length);
    return true;
  }
  const auto at = static_cast<std::uint32_t>(buffer);
  data.copy(pool_.buffer(at), length);
  const PoolReference reference{pool_.header().token, static_cast<std::uint32_t>(length),
                                static_cast<std::uint16_t>(at), static_cast<std::uint8_t>(kind)};
  for (const std::uint32_t member : shares) {
    pool_.acquire(at, member);
    if (outlets_[member]->push_in_lane(kCellShared, headers.of(member), &reference, sizeof reference)) {
      std::erase(who, member);
    } else {
      pool_.release(at, member);
    }
  }
  return true;
}

void DirectMulticast::look_for_dead() {
  for (std::uint32_t i = 0; i < outlets_.size(); ++i)
    if (outlets_[i] != nullptr && !outlets_[i]->peer_listening())
      for (std::uint32_t b = 0; b < committed_; ++b) pool_.release(b, i);
}

// ---- the receiver ---------------------------------------------------------------------------------------------------

Result<Pool> Opener::open_pool(const DirectCard& of, const PoolNotice& notice) const {
  const auto wrong = [] { return fail(Errc::protocol, "what a sender has announced is no pool of a group"); };
  if (notice.members == 0 || notice.members > kMostMembers || notice.member >= notice.members) return wrong();
  auto segment = open(of, notice.fd, notice.what);
  if (!segment) return fail(segment.error());
  const auto* header = segment->at<PoolHeader>(0);
  if (segment->size() < PoolLayout(notice.members).end || header->magic != kPoolMagic ||
      header->token != notice.token || header->members != notice.members)
    return wrong();
  return Pool(std::move(*segment), notice.members);
}

}  // namespace ulfm::direct
