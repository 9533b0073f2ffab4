// The table that MPICH's netmod shim calls.
#include <ulfm/netmod.h>
#include <ulfm/ulfm.h>

#include "api/netmod/channel.hpp"
#include "api/netmod/children.hpp"
#include "reduce/kernels.h"

using namespace ulfm;

namespace {

static_assert(ULFM_NM_HELLO == kHelloLimit);

int open_rank(const char* job_id, int rank, int size, int local_processes, ulfm_nm** out);
void close_rank(ulfm_nm* nm);

// In a child that a rank forks it has other functions.
ulfm_nm_api table{ULFM_NM_ABI,
                  ULFM_VERSION_STRING,
                  ulfm_last_error,
                  netmod::nodes,
                  open_rank,
                  close_rank,
                  netmod::ending,
                  netmod::leave,
                  netmod::card,
                  netmod::card_of,
                  netmod::eager_limit,
                  netmod::connect,
                  netmod::disconnect,
                  netmod::listening,
                  netmod::shares_memory,
                  netmod::begin,
                  netmod::send_whole,
                  netmod::more,
                  netmod::begin_packed,
                  netmod::more_packed,
                  netmod::long_begins,
                  netmod::long_ends,
                  netmod::copies_once,
                  netmod::copy_pays,
                  netmod::copy,
                  netmod::count_copy,
                  netmod::next,
                  netmod::timed,
                  netmod::next_awaited,
                  netmod::next_at_hand,
                  netmod::next_soon,
                  netmod::release,
                  netmod::use_places,
                  netmod::origin,
                  netmod::set_cookie,
                  netmod::drop_cookie,
                  netmod::idle,
                  ulfm_reduce_kernel,
                  netmod::group_limit,
                  netmod::group_pays,
                  netmod::group_open,
                  netmod::group_close,
                  netmod::group_send,
                  netmod::coll_after,
                  netmod::coll_without,
                  netmod::coll_open,
                  netmod::coll_close,
                  netmod::coll_way,
                  netmod::coll_run,
                  netmod::coll_fits,
                  netmod::coll_block,
                  netmod::coll_keep,
                  netmod::coll_start,
                  netmod::coll_finished,
                  netmod::coll_begun,
                  netmod::coll_count,
                  netmod::coll_missing,
                  netmod::coll_near_open,
                  netmod::coll_near_begin,
                  netmod::coll_near_post,
                  netmod::coll_near_take,
                  netmod::coll_near_end,
                  netmod::on_stall};

int open_rank(const char* job_id, int rank, int size, int local_processes, ulfm_nm** out) {
  const int error = netmod::open(job_id, rank, size, local_processes, out);
  if (error == 0) netmod::begin_rank(table, (*out)->process->name());
  return error;
}

void close_rank(ulfm_nm* nm) {
  netmod::end_rank();
  netmod::close(nm);
}

}  // namespace

extern "C" ULFM_API const ulfm_nm_api* ulfm_nm_table(std::uint32_t abi) {
  return abi == ULFM_NM_ABI ? &table : nullptr;
}
