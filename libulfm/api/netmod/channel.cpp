#include "api/netmod/channel.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include <fmt/core.h>

#include "api/last_error.hpp"
#include "base/gone.hpp"
#include "base/last_words.hpp"
#include "base/virtual_time.hpp"
#include "base/wait_word.hpp"
#include "job/control/key.hpp"

// A system call for less is not worth it.
constexpr std::size_t kLeastPlace = 4096;

std::span<std::byte> ulfm_nm_places::place_for(std::uint32_t origin) {
  void* const cookie = origin < nm.cookies.size() ? nm.cookies[origin] : nullptr;
  std::size_t length = 0;
  void* const place = cookie == nullptr ? nullptr : ask(cookie, &length);
  if (place == nullptr || length < kLeastPlace) return {};
  return {static_cast<std::byte*>(place), length};
}

namespace ulfm::netmod {
namespace {

Result<ulfm_nm*> open_nm(const char* job_id, int rank, int size, int local_processes) {
  auto config = Config::load();
  if (!config) return fail(config.error());
  auto process = Process::start(std::move(*config), {rank, size, local_processes, false});
  if (!process) return fail(process.error());
  InletOptions options;
  options.shares_core = !(*process)->wait_policy().has_own_core();
  auto inlet = (*process)->open(kMpiPort, options);
  if (!inlet) return fail(inlet.error());
  Transport& transport = (*process)->transport();
  transport.introduce(job_id, static_cast<std::uint32_t>(rank), transport.card());
  std::unique_ptr<ulfm_nm> nm(new ulfm_nm(std::move(*process), std::move(*inlet)));
  nm->inlet->use_counters(nm->counters);
  nm->job = job_id;
  if (local_processes > 1 && transport.card_of(job_id, static_cast<std::uint32_t>(rank)).empty())
    if (auto cards = CardBoard::join(job_id, rank, size, transport.card())) nm->cards = std::move(*cards);
  return nm.release();
}

// The frame that MPICH sees is the inlet's, in its memory; the type in <ulfm/netmod.h> may alias this one.
Frame& frame_of(ulfm_nm_frame* frame) { return *reinterpret_cast<Frame*>(frame); }
const Frame& frame_of(const ulfm_nm_frame* frame) { return *reinterpret_cast<const Frame*>(frame); }

static_assert(sizeof(Frame) == offsetof(ulfm_nm_frame, cookie) && alignof(Frame) == alignof(ulfm_nm_frame));
static_assert(offsetof(Frame, header) == offsetof(ulfm_nm_frame, header) &&
              offsetof(Frame, data) == offsetof(ulfm_nm_frame, data) &&
              offsetof(Frame, header_length) == offsetof(ulfm_nm_frame, header_length) &&
              offsetof(Frame, length) == offsetof(ulfm_nm_frame, length) &&
              offsetof(Frame, kind) == offsetof(ulfm_nm_frame, kind) &&
              offsetof(Frame, fresh) == offsetof(ulfm_nm_frame, fresh) &&
              offsetof(Frame, shared_room) == offsetof(ulfm_nm_frame, shared) &&
              offsetof(Frame, origin) == offsetof(ulfm_nm_frame, origin) &&
              offsetof(Frame, source) == offsetof(ulfm_nm_frame, source) &&
              offsetof(Frame, position) == offsetof(ulfm_nm_frame, position));
static_assert(int{ULFM_NM_FIRST} == static_cast<int>(Kind::first) &&
              int{ULFM_NM_MORE} == static_cast<int>(Kind::more) && int{ULFM_NM_BYE} == static_cast<int>(Kind::bye));

void release_spent(ulfm_nm* nm) {
  if (std::exchange(nm->has_spent, false)) nm->inlet->release(nm->spent);
}

// Without a way to a process that lives, what was to be sent to it is lost, and it waits for ever: that is like giving
// it up. A process that has gone is another matter: MPI has an error for it.
void lose_way(ulfm_nm* nm, const Error& error) {
  if (tells_of_one_gone(error.code)) return;
  if (!std::exchange(nm->lost_way, true)) say_before_the_end(fmt::format("{}: {}", nm->process->name(), error.what));
}

std::ptrdiff_t push_more(ulfm_nm_vc* vc, Gather& data, std::size_t total, std::size_t sent) {
  while (sent < total) {
    const std::size_t length = std::min(total - sent, vc->outlet->max_frame(0));
    if (!vc->outlet->push(Kind::more, {}, data, length)) {
      vc->owner->full = vc;
      break;
    }
    sent += length;
    begin_waits_anew(*vc->owner);
  }
  vc->owner->counters.sent_bytes.add(sent);
  return static_cast<std::ptrdiff_t>(sent);
}

void*& cookie_of(ulfm_nm* nm, std::uint32_t origin) {
  if (origin >= nm->cookies.size()) nm->cookies.resize(origin + 1, nullptr);
  return nm->cookies[origin];
}

int fail_origin(ulfm_nm* nm, std::int64_t origin, ulfm_nm_frame* out) {
  const auto index = static_cast<std::uint32_t>(origin);
  *out = {};
  out->kind = ULFM_NM_LOST;
  out->origin = index;
  out->cookie = std::exchange(cookie_of(nm, index), nullptr);
  nm->inlet->drop_origin(index);
  return 1;
}

}  // namespace

int nodes(int size, int* node_of) {
  auto config = Config::load();
  // What is wrong with the settings is open()'s to say.
  if (!config || config->text("SHARE") == "host") return 0;
  auto descriptor = select_transport(config->text("TRANSPORT"));
  if (!descriptor) return 0;
  const std::vector<int> nodes = (*descriptor)->nodes(size);
  // Processes of one emulated node may be on several hosts, where they share no memory.
  std::map<std::pair<int, int>, int> numbers;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    node_of[i] = numbers.try_emplace({nodes[i], node_of[i]}, static_cast<int>(numbers.size())).first->second;
  return static_cast<int>(numbers.size());
}

// MPICH's error stack cuts long sentences, and this one tells what to do.
int open(const char* job_id, int rank, int size, int local_processes, ulfm_nm** out) {
  auto nm = open_nm(job_id, rank, size, local_processes);
  if (!nm) {
    say_before_the_end(fmt::format("rank {}: {}", rank, nm.error().what));
    return report(nm.error());
  }
  *out = *nm;
  return 0;
}

// To unmap a port takes the kernel 0.1 ms where page tables are costly, and a rank has as many as it has peers.
void ending(ulfm_nm* nm) { nm->keeps_ended = !nm->own_core; }

// Without a core of its own a process that ends keeps others from theirs: the kernel takes a millisecond for what it
// has mapped. So all end together, those who wait sleep, and nobody waits long for one that computes or has died.
void leave(ulfm_nm* nm) {
  constexpr auto kLongest = std::chrono::milliseconds(100);
  if (!nm->cards || nm->own_core || VirtualTime::of_process() != nullptr || nm->cards->leave()) return;
  WakeSource& source = nm->inlet->wake_source();
  const auto until = std::chrono::steady_clock::now() + kLongest;
  for (;;) {
    source.arm();
    const WaitWord left = nm->cards->await_all();
    const auto now = std::chrono::steady_clock::now();
    if (now >= until || nm->cards->have_all_left()) break;
    source.sleep(until - now, left, [nm] { return nm->cards->have_all_left(); });
  }
  source.cancel();
}

void close(ulfm_nm* nm) {
  nm->waiter.reset();
  while (!nm->groups.empty()) group_close(nm->groups.back());
  release_spent(nm);
  nm->process->note_closed_port(kMpiPort, nm->counters);
  nm->inlet.reset();  // may send again what was lost of the last frames, which counts too
  nm->process->report_statistics();
  delete nm;
}

// The first time it goes into the key-value space of the job, which only the job reads. Later it becomes part of a port
// name (MPI_Open_port), which programs print and hand on: without the endpoint key, which holds a secret. Who connects
// by such a name does without a control connection.
const char* card(ulfm_nm* nm) {
  if (!std::exchange(nm->card_published, true)) return nm->process->transport().card().c_str();
  nm->name = control::without_key(nm->process->transport().card());  // all parts of a mux: others are on other hosts
  return nm->name.c_str();
}

// No exception passes into C: without memory there is no card, and no connection.
int card_of(ulfm_nm* nm, const char* job_id, int rank, char* card, std::size_t size) try {
  std::string found = nm->process->transport().card_of(job_id, static_cast<std::uint32_t>(rank));
  if (found.empty() && nm->cards && nm->job == job_id) found = nm->cards->card_of(rank);
  if (found.empty() || found.size() >= size) return 0;
  found.copy(card, found.size());
  card[found.size()] = 0;
  return 1;
} catch (const std::bad_alloc&) {
  return 0;
}

std::size_t eager_limit(ulfm_nm* nm, const ulfm_nm_vc* to) {
  constexpr std::size_t kEagerLimit = 64 * 1024;
  const std::int64_t set = nm->process->config().number("EAGER");
  if (set >= 0) return static_cast<std::size_t>(set);
  const std::size_t preferred = to == nullptr ? 0 : to->outlet->eager_limit();
  return preferred != 0 ? preferred : kEagerLimit;
}

int connect(ulfm_nm* nm, const char* card, const void* hello, std::size_t length, ulfm_nm_vc** out) try {
  auto outlet = nm->process->transport().connect(card, kMpiPort, kMpiPort,
                                                 {static_cast<const std::byte*>(hello), length}, nm->counters);
  if (!outlet) {
    lose_way(nm, outlet.error());
    return report(outlet.error());
  }
  std::unique_ptr<ulfm_nm_vc> made(new ulfm_nm_vc{.outlet = std::move(*outlet), .owner = nm});
  nm->vcs.push_back(made.get());
  *out = made.release();
  return 0;
} catch (const std::bad_alloc&) {
  return report({Errc::no_memory, "there is no memory for a connection"});
}

int disconnect(ulfm_nm* nm, ulfm_nm_vc* vc, int force) {
  if (!vc->outlet->bye() && !force && vc->outlet->peer_listening()) return 0;
  if (nm->full == vc) nm->full = nullptr;
  std::erase(nm->vcs, vc);
  for (ulfm_nm_group* group : nm->groups)
    std::replace(group->members.begin(), group->members.end(), vc, static_cast<ulfm_nm_vc*>(nullptr));
  if (nm->keeps_ended && vc->outlet->shares_memory()) nm->ended.push_back(std::move(vc->outlet));
  delete vc;
  return 1;
}

// A peer that has gone counts as listening until all that it sent has been read: its last packet may close the
// connection properly.
int listening(ulfm_nm_vc* vc) { return vc->outlet->peer_listening() || vc->owner->inlet->has_frame() ? 1 : 0; }

int shares_memory(ulfm_nm_vc* vc) { return vc->outlet->shares_memory() ? 1 : 0; }

// ---- sending --------------------------------------------------------------------------------------------------------

namespace {

// Always a part of its callers: every message is begun here.
[[gnu::always_inline]] inline std::ptrdiff_t begin_with(ulfm_nm_vc* vc, const void* header, std::size_t header_length,
                                                        Gather& data, std::size_t total) {
  // Every frame takes this much, so that a short message need not ask.
  const std::size_t length = total <= kLeastFrame ? total : std::min(total, vc->outlet->max_begin(header_length));
  if (!vc->outlet->push(Kind::first, {static_cast<const std::byte*>(header), header_length}, data, length)) {
    vc->owner->full = vc;
    return -1;
  }
  begin_waits_anew(*vc->owner);
  vc->owner->counters.sent_messages.add();
  vc->owner->counters.sent_bytes.add(header_length);  // MPI puts its shortest messages into its header
  if (length == total) {
    vc->owner->counters.sent_bytes.add(total);
    return static_cast<std::ptrdiff_t>(total);
  }
  return push_more(vc, data, total, length);
}

}  // namespace

std::ptrdiff_t begin(ulfm_nm_vc* vc, const void* header, std::size_t header_length, const iovec* pieces, int n) {
  Gather data(std::span(pieces, static_cast<std::size_t>(n)));
  return begin_with(vc, header, header_length, data, n == 1 ? pieces[0].iov_len : data.remaining());
}

std::ptrdiff_t begin_packed(ulfm_nm_vc* vc, const void* header, std::size_t header_length, ulfm_nm_pack pack,
                            void* message, std::size_t length) {
  Gather data(pack, message, length);
  return begin_with(vc, header, header_length, data, length);
}

int send_whole(ulfm_nm_vc* vc, const void* header, std::size_t header_length, const void* data, std::size_t length) {
  if (length > kLeastFrame && length > vc->outlet->max_frame(header_length)) return 0;
  const iovec piece{const_cast<void*>(data), length};
  Gather gather(std::span(&piece, 1));
  if (!vc->outlet->push(Kind::first, {static_cast<const std::byte*>(header), header_length}, gather, length)) {
    vc->owner->full = vc;
    return 0;
  }
  begin_waits_anew(*vc->owner);
  vc->owner->counters.sent_messages.add();
  vc->owner->counters.sent_bytes.add(header_length + length);
  return 1;
}

std::ptrdiff_t more(ulfm_nm_vc* vc, const iovec* pieces, int n) {
  Gather data(std::span(pieces, static_cast<std::size_t>(n)));
  return push_more(vc, data, data.remaining(), 0);
}

std::ptrdiff_t more_packed(ulfm_nm_vc* vc, ulfm_nm_pack pack, void* message, std::size_t length) {
  Gather data(pack, message, length);
  return push_more(vc, data, length, 0);
}

// ---- receiving ------------------------------------------------------------------------------------------------------

namespace {

// On the way of every message: as a call it costs a receive six instructions more (docs/walks.md).
template <bool (Inlet::*kNext)(Frame&)>
[[gnu::always_inline]] inline int take_next(ulfm_nm* nm, ulfm_nm_frame* out) {
  Frame& frame = frame_of(out);
  release_spent(nm);
  if (!(nm->inlet.get()->*kNext)(frame)) {
    if (const std::int64_t broken = nm->inlet->take_broken(); broken >= 0) return fail_origin(nm, broken, out);
    if (nm->dead >= 0) return fail_origin(nm, std::exchange(nm->dead, -1), out);
    return 0;
  }
  begin_waits_anew(*nm);
  if (frame.fresh) [[unlikely]]
    cookie_of(nm, frame.origin) = nullptr;
  out->cookie = nm->cookies[frame.origin];
  nm->counters.received_messages.add(frame.kind == Kind::first ? 1 : 0);
  nm->counters.received_bytes.add(frame.header_length + frame.length);
  return 1;
}

}  // namespace

int next(ulfm_nm* nm, ulfm_nm_frame* out) { return take_next<&Inlet::next>(nm, out); }

int timed(ulfm_nm*) { return VirtualTime::of_process() != nullptr ? 1 : 0; }

int next_awaited(ulfm_nm* nm, ulfm_nm_frame* out) { return take_next<&Inlet::next_awaited>(nm, out); }

int next_at_hand(ulfm_nm* nm, ulfm_nm_frame* out) { return take_next<&Inlet::next_at_hand>(nm, out); }

int next_soon(ulfm_nm* nm, ulfm_nm_frame* out) {
  if (VirtualTime::of_process() != nullptr) return -1;
  if (next(nm, out) != 0) return 1;
  if (!nm->has_core_to_itself()) return -1;
  return nm->inlet->spin(kSpinTurns) && next(nm, out) != 0 ? 1 : 0;
}

void release(ulfm_nm* nm, const ulfm_nm_frame* frame) {
  if (frame->kind == ULFM_NM_LOST) return;
  release_spent(nm);
  nm->spent = frame_of(frame);
  nm->has_spent = true;
  const bool bye = frame->kind == ULFM_NM_BYE;
  // Not now, as a rule: the program waits for what was in it.
  if (nm->spent.shared_room || bye) release_spent(nm);
  if (bye) [[unlikely]] {
    cookie_of(nm, frame->origin) = nullptr;
    nm->inlet->drop_origin(frame->origin);
  }
}

void use_places(ulfm_nm* nm, void* (*place)(void* cookie, std::size_t* length)) {
  nm->places.ask = place;
  nm->inlet->use_places(nm->places);
}

int origin(ulfm_nm* nm, std::uint32_t index, ulfm_nm_origin* out) {
  const OriginInfo info = nm->inlet->origin(index);
  if (!info.process) return report({Errc::not_found, "no such origin"});
  nm->origin_card = info.card;
  *out = {nm->origin_card.c_str(), info.hello.data(), info.hello.size()};
  return 0;
}

void set_cookie(ulfm_nm* nm, std::uint32_t index, void* cookie) { cookie_of(nm, index) = cookie; }

void drop_cookie(ulfm_nm* nm, const void* cookie) {
  std::replace(nm->cookies.begin(), nm->cookies.end(), const_cast<void*>(cookie), static_cast<void*>(nullptr));
}

}  // namespace ulfm::netmod
