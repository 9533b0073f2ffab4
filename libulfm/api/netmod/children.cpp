#include "api/netmod/children.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include <fmt/core.h>

#include "base/last_words.hpp"

namespace ulfm::netmod {
namespace {

ulfm_nm_api* table_of_ranks = nullptr;
std::string rank_name;
std::atomic<int> ranks{0};

template <class Result, class... Arguments>
Result refused(Arguments...) {
  say_before_the_end(fmt::format(
      "{}: MPI was called in process {}, a child that the rank has forked. It would take what is the rank's: "
      "let the child call exec or _exit, or no MPI; the child ends",
      rank_name, getpid()));
  _exit(1);
}

template <class Result, class... Arguments>
void refuse(Result (*&function)(Arguments...)) {
  function = refused<Result, Arguments...>;
}

void in_child() noexcept {
  if (ranks.load(std::memory_order_relaxed) == 0) return;
  ulfm_nm_api& table = *table_of_ranks;
  refuse(table.ending);
  refuse(table.connect);
  refuse(table.begin);
  refuse(table.send_whole);
  refuse(table.more);
  refuse(table.begin_packed);
  refuse(table.more_packed);
  refuse(table.next);
  refuse(table.next_awaited);
  refuse(table.next_at_hand);
  refuse(table.next_soon);
  refuse(table.idle);
  refuse(table.group_send);
  refuse(table.coll_open);
  refuse(table.coll_run);
  refuse(table.coll_start);
  refuse(table.coll_finished);
  refuse(table.coll_near_begin);
}

}  // namespace

void begin_rank(ulfm_nm_api& table, const std::string& name) {
  table_of_ranks = &table;
  rank_name = name;
  ranks.fetch_add(1, std::memory_order_relaxed);
  static const int hooked = pthread_atfork(nullptr, nullptr, in_child);
  (void)hooked;  // without memory for the hook a child is what it was before: trouble for the rank
}

void end_rank() noexcept { ranks.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace ulfm::netmod
