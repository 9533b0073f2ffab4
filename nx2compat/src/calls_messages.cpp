#include <optional>
#include <vector>

#include "calls.hpp"
#include "checks.hpp"

namespace nx2::calls {
namespace {

std::size_t size_of(Number count) noexcept { return static_cast<std::size_t>(count); }

void set_receive(Request& request, const Selector& selector, void* buf, Number count, InfoArray info = {}) {
  request.selector = selector;
  request.buffer = static_cast<std::byte*>(buf);
  request.capacity = size_of(count);
  request.info = info;
}

// Where the program looks: in its own array, or by info...().
void put_info(const InfoArray& info, const MessageInfo& of) noexcept {
  if (info.place == nullptr) set_info(of);
  else write_info(info, of);
}

// The receive of a blocking call: if it has to be posted, it lives on the stack.
Outcome receive(Call& call, const Selector& selector, void* buf, Number count, InfoArray info) {
  NxEngine& engine = call.engine();
  MessageInfo result;
  std::optional<Request> request;
  const auto make = [&]() -> Request& {
    set_receive(request.emplace(), selector, buf, count, info);
    return *request;
  };
  if (engine.receive_next(selector, static_cast<std::byte*>(buf), size_of(count), result, make)) {
    put_info(info, result);
    return {result.count, 0};
  }
  engine.wait(*request);
  if (request->error != 0) return error_of(request->error);
  if (info.place == nullptr) set_info(request->result);
  return {request->result.count, 0};
}

// A receive under a message id.
Outcome start_receive(Call& call, const Selector& selector, void* buf, Number count, InfoArray info) {
  Request* request = call.node().ids.take();
  if (request == nullptr) return failed(EQNOMID);
  set_receive(*request, selector, buf, count, info);
  call.engine().post_receive(*request);
  return {request->id, 0};
}

Outcome start_send(Call& call, const NxEngine::Envelope& to, const void* buf, Number count) {
  Request* request = call.node().ids.take();
  if (request == nullptr) return failed(EQNOMID);
  call.engine().start_send(*request, to, buf, size_of(count));
  return {request->id, 0};
}

// A request that ends with a call of the program's procedure; nullptr when the thread that it needs cannot be started.
Request* with_handler(Call& call, const Handler& handler) {
  Node& node = call.node();
  const bool started = node.interrupt.start(node.channel().port(), [&node](bool everywhere) {
    node.engine()->progress();
    bool ran = node.engine()->run_handlers();
    if (everywhere) {  // what lies in an unlikely place comes behind the answer to the usual one
      node.engine()->look_everywhere();
      ran = node.engine()->run_handlers() || ran;
    }
    node.interrupt.want(node.engine()->handlers_pending() != 0);
    return ran;
  });
  if (!started) return nullptr;
  Request& request = node.engine()->pooled_request();
  request.handler = handler;
  node.engine()->count_handler();
  node.interrupt.want(true);
  return &request;
}

Outcome probe(Call& call, const Selector& selector, InfoArray info, bool wait) {
  if (const int error = check_process(call.node())) return error_of(error);
  NxEngine& engine = call.engine();
  MessageInfo found;
  engine.progress();
  bool there = engine.find(selector, found);
  if (!there && !wait) {
    engine.idle_test();
    there = engine.find(selector, found);
  }
  while (!there && wait) {
    engine.step(-1);
    engine.run_handlers();
    there = engine.find(selector, found);
  }
  if (!there) return {0, 0};
  put_info(info, found);
  return {1, 0};
}

template <typename Element>
Outcome send_to_list(Number type, const void* buf, Number count, const Element* nodes, Number nodecount) {
  Call call;
  if (nodecount < 0 || (nodes == nullptr && nodecount != 0)) return failed(EQPARAM);
  std::vector<std::int32_t> list;
  for (Number i = 0; i < nodecount; ++i) {
    list.push_back(static_cast<std::int32_t>(nodes[i]));
    if (const int error = check_place(call.node(), list.back())) return error_of(error);
  }
  const Number ptype = call.engine().ptype;
  if (const int error = check_send(call.node(), type, buf, count, 0, ptype)) return error_of(error);
  return call.engine().send_list({type, 0, ptype}, list, buf, size_of(count));
}

Handler with_parameter(Handler handler, long hparam) noexcept {
  handler.extended = true;
  handler.hparam = hparam;
  return handler;
}

}  // namespace

// ---- blocking
// -------------------------------------------------------------------------------------------------------

Outcome csend(Number type, const void* buf, Number count, Number node, Number ptype) {
  Call call;
  if (const int error = check_send(call.node(), type, buf, count, node, ptype)) return error_of(error);
  if (__builtin_expect(call.engine().send_at_once({type, node, ptype}, buf, size_of(count)), 1)) return {};
  return call.engine().send({type, node, ptype}, buf, size_of(count));
}

Outcome crecv(Number typesel, void* buf, Number count) {
  Call call;
  if (const int error = check_receive(call.node(), buf, count)) return error_of(error);
  return receive(call, {typesel, kAny, kAny}, buf, count, {});
}

Outcome csendrecv(Number type, const void* sbuf, Number scount, Number node, Number ptype, Number typesel, void* rbuf,
                  Number rcount) {
  Call call;
  if (const int error = check_send(call.node(), type, sbuf, scount, node, ptype)) return error_of(error);
  if (const int error = check_receive(call.node(), rbuf, rcount)) return error_of(error);
  if (const Outcome sent = call.engine().send({type, node, ptype}, sbuf, size_of(scount)); sent.error != 0) return sent;
  return receive(call, {typesel, kAny, kAny}, rbuf, rcount, {});
}

Outcome cprobe(Number typesel) {
  Call call;
  return probe(call, {typesel, kAny, kAny}, {}, true);
}

Outcome iprobe(Number typesel) {
  Call call;
  return probe(call, {typesel, kAny, kAny}, {}, false);
}

Outcome crecvx(Number typesel, void* buf, Number count, Number nodesel, Number ptypesel, InfoArray info) {
  Call call;
  if (const int error = check_receive(call.node(), buf, count)) return error_of(error);
  return receive(call, {typesel, nodesel, ptypesel}, buf, count, info);
}

Outcome cprobex(Number typesel, Number nodesel, Number ptypesel, InfoArray info) {
  Call call;
  return probe(call, {typesel, nodesel, ptypesel}, info, true);
}

Outcome iprobex(Number typesel, Number nodesel, Number ptypesel, InfoArray info) {
  Call call;
  return probe(call, {typesel, nodesel, ptypesel}, info, false);
}

// ---- with message ids
// -----------------------------------------------------------------------------------------------

Outcome isend(Number type, const void* buf, Number count, Number node, Number ptype) {
  Call call;
  if (const int error = check_send(call.node(), type, buf, count, node, ptype)) return error_of(error);
  return start_send(call, {type, node, ptype}, buf, count);
}

Outcome irecv(Number typesel, void* buf, Number count) {
  Call call;
  if (const int error = check_receive(call.node(), buf, count)) return error_of(error);
  return start_receive(call, {typesel, kAny, kAny}, buf, count, {});
}

Outcome irecvx(Number typesel, void* buf, Number count, Number nodesel, Number ptypesel, InfoArray info) {
  Call call;
  if (const int error = check_receive(call.node(), buf, count)) return error_of(error);
  return start_receive(call, {typesel, nodesel, ptypesel}, buf, count, info);
}

// One id for both. The receive is posted first, so that a reply finds its buffer.
Outcome isendrecv(Number type, const void* sbuf, Number scount, Number node, Number ptype, Number typesel, void* rbuf,
                  Number rcount) {
  Call call;
  if (const int error = check_send(call.node(), type, sbuf, scount, node, ptype)) return error_of(error);
  if (const int error = check_receive(call.node(), rbuf, rcount)) return error_of(error);
  MessageIds& ids = call.node().ids;
  Request* both = ids.take();
  Request* send = both != nullptr ? ids.take() : nullptr;
  if (send == nullptr) {
    if (both != nullptr) ids.release(*both);
    return failed(EQNOMID);
  }
  set_receive(*both, {typesel, kAny, kAny}, rbuf, rcount);
  both->merged = send;
  ids.take_name(*send);
  call.engine().post_receive(*both);
  call.engine().start_send(*send, {type, node, ptype}, sbuf, size_of(scount));
  return {both->id, 0};
}

// ---- with handlers
// --------------------------------------------------------------------------------------------------

Outcome hsend(Number type, const void* buf, Number count, Number node, Number ptype, Handler handler) {
  Call call;
  if (const int error = check_send(call.node(), type, buf, count, node, ptype)) return error_of(error);
  if (handler.entry == nullptr) return failed(EQHND);
  Request* request = with_handler(call, handler);
  if (request == nullptr) return failed(EQMEM);
  call.engine().start_send(*request, {type, node, ptype}, buf, size_of(count));
  return {};
}

Outcome hrecv(Number typesel, void* buf, Number count, Handler handler) {
  return hrecvx(typesel, buf, count, kAny, kAny, handler, 0);
}

Outcome hrecvx(Number typesel, void* buf, Number count, Number nodesel, Number ptypesel, Handler handler, long hparam) {
  Call call;
  if (const int error = check_receive(call.node(), buf, count)) return error_of(error);
  if (handler.entry == nullptr) return failed(EQHND);
  Request* request = with_handler(call, with_parameter(handler, hparam));
  if (request == nullptr) return failed(EQMEM);
  set_receive(*request, {typesel, nodesel, ptypesel}, buf, count);
  call.engine().post_receive(*request);
  return {};
}

Outcome hsendx(Number type, const void* buf, Number count, Number node, Number ptype, Handler handler, long hparam) {
  return hsend(type, buf, count, node, ptype, with_parameter(handler, hparam));
}

Outcome hsendrecv(Number type, const void* sbuf, Number scount, Number node, Number ptype, Number typesel, void* rbuf,
                  Number rcount, Handler handler) {
  Call call;
  if (const int error = check_send(call.node(), type, sbuf, scount, node, ptype)) return error_of(error);
  if (const Outcome posted = hrecv(typesel, rbuf, rcount, handler); posted.error != 0) return posted;
  return call.engine().send({type, node, ptype}, sbuf, size_of(scount));
}

// ---- others
// ---------------------------------------------------------------------------------------------------------

Outcome gsendx(Number type, const void* buf, Number count, const long* nodes, Number nodecount) {
  return send_to_list(type, buf, count, nodes, nodecount);
}

Outcome gsendx(Number type, const void* buf, Number count, const std::int32_t* nodes, Number nodecount) {
  return send_to_list(type, buf, count, nodes, nodecount);
}

Outcome flushmsg(Number typesel, Number nodesel, Number ptypesel) {
  Call call;
  call.engine().progress();
  call.engine().flush({typesel, nodesel, ptypesel});
  return {};
}

}  // namespace nx2::calls
