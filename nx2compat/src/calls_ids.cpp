#include "calls.hpp"
#include "checks.hpp"

namespace nx2::calls {
namespace {

bool all_done(const Request& request) noexcept {
  for (const Request* part = &request; part != nullptr; part = part->merged)
    if (!part->done()) return false;
  return true;
}

// The id and all that was merged into it are the program's no more; info tells of its last receive.
Outcome release(Node& node, Request& request) {
  int error = 0;
  for (Request* part = &request; part != nullptr;) {
    Request* next = part->merged;
    if (part->is_receive && part->error == 0 && part->info.place == nullptr) set_info(part->result);
    if (part->error != 0) error = part->error;
    node.ids.release(*part);
    part = next;
  }
  return {error != 0 ? -1 : 1, error};
}

}  // namespace

Outcome msgwait(Number mid) {
  Call call;
  Request* request = call.node().ids.find(mid);
  if (request == nullptr) return failed(EQMID);
  for (Request* part = request; part != nullptr; part = part->merged) {
    // A send ends whether or not its receiver asks for the message soon.
    if (!part->done() && !part->is_receive) call.engine().settle_send(*part);
    call.engine().wait(*part);
  }
  const Outcome done = release(call.node(), *request);
  return {0, done.error};
}

Outcome msgdone(Number mid) {
  Call call;
  Request* request = call.node().ids.find(mid);
  if (request == nullptr) return failed(EQMID);
  if (!all_done(*request)) {
    call.engine().idle_test();
    call.engine().run_handlers();
    // A handler may have been the one to release it.
    if (call.node().ids.find(mid) != request) return failed(EQMID);
  }
  if (!all_done(*request)) return {0, 0};
  return release(call.node(), *request);
}

Outcome msgcancel(Number mid) {
  Call call;
  Node& node = call.node();
  Request* request = node.ids.find(mid);
  if (request == nullptr) return failed(EQMID);
  for (Request* part = request; part != nullptr;) {
    Request* next = part->merged;
    if (part->is_receive) {
      node.engine()->cancel_receive(*part);
    } else if (!part->done() && !node.engine()->detach_send(*part)) {
      node.engine()->wait(*part);
    }
    node.ids.release(*part);
    part = next;
  }
  return {};
}

Outcome msgignore(Number mid) {
  Call call;
  Node& node = call.node();
  Request* request = node.ids.find(mid);
  if (request == nullptr) return failed(EQMID);
  for (Request* part = request; part != nullptr;) {
    Request* next = part->merged;
    node.ids.take_name(*part);
    if (part->done()) node.ids.release(*part);
    else part->ignored = true;
    part = next;
  }
  return {};
}

Outcome msgmerge(Number mid1, Number mid2) {
  Call call;
  if (mid1 == -1) return {mid2, 0};
  if (mid2 == -1) return {mid1, 0};
  MessageIds& ids = call.node().ids;
  Request* first = ids.find(mid1);
  Request* second = ids.find(mid2);
  if (first == nullptr || second == nullptr || first == second) return failed(EQMID);
  Request* last = first;
  while (last->merged != nullptr) last = last->merged;
  last->merged = second;
  ids.take_name(*second);
  return {mid1, 0};
}

}  // namespace nx2::calls
