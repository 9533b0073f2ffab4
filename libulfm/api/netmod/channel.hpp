// MPI's side of a process: one port whose frames go straight to MPICH's packet handlers. netmod.cpp is the table that
// MPICH calls (<ulfm/netmod.h>); what its entries do is here, a file per concept: channel.cpp (connections, sending and
// receiving), one_copy.cpp (long messages), groups.cpp (one message to many), waits.cpp (a turn of a wait), stalls.cpp
// (waits that do not end), collectives.cpp.
//
// One thread at a time: MPICH's own lock.
#pragma once

#include <ulfm/netmod.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/netmod/two_ways.hpp"
#include "api/netmod/window_ways.hpp"
#include "base/virtual_time.hpp"
#include "base/wait.hpp"
#include "coll/collective.hpp"
#include "job/card_board.hpp"
#include "job/peer_memory.hpp"
#include "process/process.hpp"

struct ulfm_nm_vc {
  std::unique_ptr<ulfm::Outlet> outlet;
  ulfm_nm* owner;
  bool cut_off = false;  ///< seen and said
  // Long messages: see one_copy.cpp.
  bool no_copies = false;  ///< the kernel has refused
  std::optional<ulfm::PeerMemory> memory{};
};

struct ulfm_nm_group {
  /// As many as a frame has room for beside data.
  struct Part {
    std::unique_ptr<ulfm::Multicast> multicast;
    std::size_t first, size;
  };
  ulfm_nm* owner;
  std::vector<ulfm_nm_vc*> members;  ///< nullptr: disconnected since
  std::vector<Part> parts;
  std::vector<std::uint32_t> who;
};

struct ulfm_coll {
  std::unique_ptr<ulfm::coll::Collective> collective;
  ulfm_nm* owner;
};

/// Asks MPICH where data belong.
struct ulfm_nm_places final : ulfm::PlaceFinder {
  explicit ulfm_nm_places(const ulfm_nm& owner) : nm(owner) {}
  std::span<std::byte> place_for(std::uint32_t origin) override;
  const ulfm_nm& nm;
  void* (*ask)(void* cookie, std::size_t* length) = nullptr;
};

struct ulfm_nm {
  ulfm_nm(std::unique_ptr<ulfm::Process> p, std::unique_ptr<ulfm::Inlet> i)
      : process(std::move(p)),
        inlet(std::move(i)),
        own_core(process->wait_policy().has_own_core()),
        one_copy(process->config().number("ONE_COPY")),
        waiter(process->wait_policy()),
        stall(process->new_stall_watch()) {}

  std::unique_ptr<ulfm::Process> process;
  ulfm::PortCounters counters;  // before the inlet, whose last frames count too
  ulfm_nm_places places{*this};
  std::unique_ptr<ulfm::Inlet> inlet;

  // Waits.
  bool has_core_to_itself() const noexcept { return own_core && !ulfm::core_is_shared(); }
  bool own_core;                 // there is one for each process of the host
  int cores_of_host = 0;         // whoever may use them; known where collectives go by segments
  bool always_segments = false;  // the same
  std::int64_t one_copy;         // the setting, of off|auto|on
  ulfm::Waiter waiter;
  std::uint32_t idle_turns = 0;      // since something came or went
  std::uint32_t tests_in_a_row = 0;  // in virtual time: with nothing between
  std::uint64_t tested_at = 0;       // and when the last one was
  std::uint32_t looks_at_once = 1;   // in virtual time with threads, see idle_threaded()
  ulfm_nm_vc* full = nullptr;        // the connection that was the last to have no room
  std::chrono::steady_clock::time_point looked{};
  std::chrono::steady_clock::time_point idle_since{};
  int idle_how = 0;
  bool sends_waiting = false;
  ulfm::StallWatch stall;
  void (*describe)(ulfm_nm_waits*) = nullptr;

  ulfm::netmod::TwoWays long_ways;       // which is faster for long messages
  ulfm::netmod::WindowWays window_ways;  // and for one-sided transfers

  // Peers.
  std::int64_t dead = -1;
  bool lost_way = false;  // a process that lives could not be connected to
  bool card_published = false;
  std::string job;                         // this process's own
  std::unique_ptr<ulfm::CardBoard> cards;  // of its processes on this host, where that is quicker than the launcher
  std::string name;                        // the card without its key
  std::string origin_card;
  std::vector<void*> cookies;
  std::vector<ulfm_nm_vc*> vcs;
  bool keeps_ended = false;                          // see ending()
  std::vector<std::unique_ptr<ulfm::Outlet>> ended;  // of connections that are no more

  ulfm::Frame spent;  // MPICH has released it; the inlet gets its room back at the next look
  bool has_spent = false;

  std::vector<ulfm_nm_group*> groups;
  int segments = 0;              // of communicators, open
  std::vector<ulfm_coll*> busy;  // those with nonblocking calls under way
  bool has_advanced = false;     // since they were last asked for what has finished, and found that something has
};

namespace ulfm::netmod {

/// The number of the port that MPI has in each process.
inline constexpr std::uint16_t kMpiPort = 1;

/// Something came or went, so the next wait is another one. Without this a process that only sends would climb the
/// ladder of its waits once and sleep in every wait after that.
inline void begin_waits_anew(ulfm_nm& nm) {
  if (nm.idle_turns == 0) return;
  nm.idle_turns = 0;
  nm.idle_since = {};
  nm.waiter.reset();
}

// The entries of the table, by its names (<ulfm/netmod.h>).
int nodes(int size, int* node_of);
int open(const char* job_id, int rank, int size, int local_processes, ulfm_nm** out);
void ending(ulfm_nm* nm);
void leave(ulfm_nm* nm);
void close(ulfm_nm* nm);
const char* card(ulfm_nm* nm);
int card_of(ulfm_nm* nm, const char* job_id, int rank, char* card, std::size_t size);
std::size_t eager_limit(ulfm_nm* nm, const ulfm_nm_vc* to);
int connect(ulfm_nm* nm, const char* card, const void* hello, std::size_t length, ulfm_nm_vc** out);
int disconnect(ulfm_nm* nm, ulfm_nm_vc* vc, int force);
int listening(ulfm_nm_vc* vc);
int shares_memory(ulfm_nm_vc* vc);
std::ptrdiff_t begin(ulfm_nm_vc* vc, const void* header, std::size_t header_length, const iovec* pieces, int n);
int send_whole(ulfm_nm_vc* vc, const void* header, std::size_t header_length, const void* data, std::size_t length);
std::ptrdiff_t more(ulfm_nm_vc* vc, const iovec* pieces, int n);
std::ptrdiff_t begin_packed(ulfm_nm_vc* vc, const void* header, std::size_t header_length, ulfm_nm_pack pack,
                            void* message, std::size_t length);
std::ptrdiff_t more_packed(ulfm_nm_vc* vc, ulfm_nm_pack pack, void* message, std::size_t length);
int long_begins(ulfm_nm_vc* vc, std::size_t bytes);
void long_ends(ulfm_nm_vc* vc, std::size_t bytes, int once);
int copies_once(ulfm_nm_vc* vc);
int copy_pays(ulfm_nm_vc* vc, const void* here, std::size_t bytes);
int copy(ulfm_nm_vc* vc, int write, void* here, std::uint64_t there, std::size_t bytes);
void count_copy(ulfm_nm_vc* vc, std::size_t bytes);
int next(ulfm_nm* nm, ulfm_nm_frame* out);
int timed(ulfm_nm* nm);
int next_awaited(ulfm_nm* nm, ulfm_nm_frame* out);
int next_at_hand(ulfm_nm* nm, ulfm_nm_frame* out);
int next_soon(ulfm_nm* nm, ulfm_nm_frame* out);
void release(ulfm_nm* nm, const ulfm_nm_frame* frame);
void use_places(ulfm_nm* nm, void* (*place)(void* cookie, std::size_t* length));
int origin(ulfm_nm* nm, std::uint32_t index, ulfm_nm_origin* out);
void set_cookie(ulfm_nm* nm, std::uint32_t index, void* cookie);
void drop_cookie(ulfm_nm* nm, const void* cookie);
int idle(ulfm_nm* nm, int how, int sends_waiting);
std::size_t group_limit(ulfm_nm* nm, int members, std::size_t header_length);
int group_pays(ulfm_nm* nm, int kind, int ranks, int nodes, std::size_t bytes);
ulfm_nm_group* group_open(ulfm_nm* nm, ulfm_nm_vc* const* vcs, int count, std::size_t header_length);
void group_close(ulfm_nm_group* group);
int group_send(ulfm_nm_group* group, const void* header, std::size_t header_length, const void* data,
               std::size_t length, int goes_on, char* marks);
int coll_after(ulfm_nm* nm, int fault_tolerant);
int coll_without(ulfm_nm* nm, int kind, std::size_t bytes, int size, std::size_t* ahead);
int coll_open(ulfm_nm* nm, char* ticket, int rank, int size, int threaded, int (*progress)(void*), void* arg,
              ulfm_coll** out);
void coll_close(ulfm_coll* coll);
int coll_way(ulfm_coll* coll, int kind, std::size_t bytes);
int coll_run(ulfm_coll* coll, const ulfm_coll_call* call);
int coll_missing(ulfm_coll* coll);
int coll_near_open(ulfm_coll* coll, const int* from, int n_from, const int* to, int n_to);
int coll_near_begin(ulfm_coll* coll, char** blocks, std::size_t* room);
void coll_near_post(ulfm_coll* coll, std::size_t step);
int coll_near_take(ulfm_coll* coll, int index, int from, const char** block);
void coll_near_end(ulfm_coll* coll);
int coll_fits(ulfm_coll* coll, int kind, std::size_t bytes);
std::size_t coll_block(ulfm_coll* coll, int kind);
int coll_keep(ulfm_coll* coll, const ulfm_coll_call* call);
int coll_start(ulfm_coll* coll, const ulfm_coll_call* call, void* cookie);
void* coll_finished(ulfm_nm* nm, int* why);
int coll_begun(ulfm_coll* coll, int* missing);
void coll_count(ulfm_nm* nm, int kind, int way);
void on_stall(ulfm_nm* nm, void (*describe)(ulfm_nm_waits*));

/// Goes on with nonblocking collectives. True when one has finished.
bool advance_calls(ulfm_nm& nm);
/// Sleeps until one may have finished, or a frame has come.
void sleep_for_calls(ulfm_nm& nm, std::chrono::nanoseconds limit);
/// A look at the stalls of this wait, now and then.
void report_stalls(ulfm_nm& nm, std::chrono::steady_clock::time_point now);
/// Process::wait_timed() of this wait.
bool wait_timed(ulfm_nm& nm, VirtualTime& time, std::uint64_t until, VirtualTime::Patience patience);

}  // namespace ulfm::netmod
