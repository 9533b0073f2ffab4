// The C interface over nodes and ports.

#include <ulfm/interrupt.h>
#include <ulfm/pieces.h>
#include <ulfm/places.h>
#include <ulfm/ulfm.h>

#include <array>
#include <cstdio>
#include <vector>

#include <fmt/core.h>

#include "api/handles.hpp"
#include "api/last_error.hpp"
#include "base/counted.hpp"
#include "base/give_way.hpp"
#include "base/interrupted.hpp"
#include "base/virtual_time.hpp"
#include "transport/registry.hpp"

using namespace ulfm;

namespace {

int copy_text(const std::string& text, char* to, std::size_t size) {
  if (text.size() + 1 > size)
    return report({Errc::too_large, fmt::format("the buffer of {} is too small: {} are needed", counted(size, "byte"),
                                                text.size() + 1)});
  std::memcpy(to, text.c_str(), text.size() + 1);
  return ULFM_OK;
}

template <typename T>
int finish(const Result<T>& result) {
  return result ? ULFM_OK : report(result.error());
}

int adopt(Result<std::unique_ptr<Node>> node, ulfm_job* job) {
  if (!node) return report(node.error());
  auto handle = adopt_node(std::move(*node));
  if (!handle) return report(handle.error());
  *job = *handle;
  return ULFM_OK;
}

int give_address(Result<std::uint32_t> process, std::uint16_t port, ulfm_address* address) {
  if (!process) return report(process.error());
  if (port >= kPortsPerProcess) return report({Errc::invalid, fmt::format("port {}: there are ports 0 to 63", port)});
  *address = {*process, port, 0};
  return ULFM_OK;
}

thread_local std::string g_text;

// What the usual message does not need, apart from what it does, so that the compiler keeps that short.
[[gnu::noinline]] int compose_or_report(PortCore& port, std::size_t size, void** buffer) {
  auto span = port.compose(size);
  if (!span) return report(span.error());
  *buffer = span->data();
  return ULFM_OK;
}

[[gnu::noinline]] int post_or_say(PortCore& port, ulfm_address to) { return finish(port.post({to.process, to.port})); }

[[gnu::noinline]] int release_or_say(PortCore& port, std::uint64_t handle) { return finish(port.release(handle)); }

[[gnu::noinline]] int say_stale() { return report(stale_port()); }

}  // namespace

extern "C" {

int ulfm_transport_count(void) { return static_cast<int>(transports().size()); }

const char* ulfm_transport_name(int i) {
  return i >= 0 && i < ulfm_transport_count() ? transports()[static_cast<std::size_t>(i)]->name : nullptr;
}

const char* ulfm_transport_unavailable(int i) {
  if (i < 0 || i >= ulfm_transport_count()) return "there is no such transport";
  g_text = transports()[static_cast<std::size_t>(i)]->unavailable();
  return g_text.c_str();
}

int ulfm_job_join(ulfm_job* job) { return adopt(Node::create(false), job); }
int ulfm_job_alone(ulfm_job* job) { return adopt(Node::create(true), job); }

int ulfm_job_leave(ulfm_job job) {
  auto node = disown_node(job);
  return finish(node);  // the node goes with `node`
}

int ulfm_job_rank(ulfm_job job) {
  auto node = node_of(job);
  return node ? (*node)->rank() : report(node.error());
}

int ulfm_job_size(ulfm_job job) {
  auto node = node_of(job);
  return node ? (*node)->size() : report(node.error());
}

int ulfm_job_barrier(ulfm_job job) {
  const TimedCall timed("ulfm_job_barrier");
  auto node = node_of(job);
  return node ? finish((*node)->barrier()) : report(node.error());
}

const char* ulfm_job_transport(ulfm_job job) {
  auto node = node_of(job);
  if (node) return (*node)->process().descriptor().name;
  report(node.error());
  return nullptr;
}

size_t ulfm_job_suits(ulfm_job job, int what) {
  auto node = node_of(job);
  if (!node) return report(node.error()), 0;
  const TransportDescriptor& transport = (*node)->process().descriptor();
  return what == ULFM_SUITS_PIECE ? transport.piece : what == ULFM_SUITS_COPIES ? transport.copies : 0;
}

int ulfm_job_put(ulfm_job job, const char* key, const char* value) {
  auto node = node_of(job);
  return node ? finish((*node)->put(key, value)) : report(node.error());
}

int ulfm_job_get(ulfm_job job, const char* key, char* value, size_t size) {
  auto node = node_of(job);
  if (!node) return report(node.error());
  auto got = (*node)->get(key);
  return got ? copy_text(*got, value, size) : report(got.error());
}

int ulfm_job_card(ulfm_job job, char* card, size_t size) {
  auto node = node_of(job);
  return node ? copy_text((*node)->card(), card, size) : report(node.error());
}

int ulfm_job_address(ulfm_job job, int rank, uint16_t port, ulfm_address* address) {
  auto node = node_of(job);
  return node ? give_address((*node)->process_of_rank(rank), port, address) : report(node.error());
}

int ulfm_job_address_of_card(ulfm_job job, const char* card, uint16_t port, ulfm_address* address) {
  auto node = node_of(job);
  return node ? give_address((*node)->process_of_card(card), port, address) : report(node.error());
}

int ulfm_port_open(ulfm_job job, const ulfm_port_options* options, ulfm_port* port) {
  const ulfm_port_options defaults{ULFM_ANY_PORT, 0, 0};
  const ulfm_port_options& o = options != nullptr ? *options : defaults;
  auto handle = open_port(job, o.number, o.slot_bytes, o.depth);
  if (!handle) return report(handle.error());
  *port = *handle;
  return ULFM_OK;
}

int ulfm_port_close(ulfm_port port) { return finish(close_port(port)); }

int ulfm_port_number(ulfm_port port) {
  const OpenPort open = port_of(port);
  return open.core != nullptr ? open.core->number() : say_stale();
}

int ulfm_compose(ulfm_port port, size_t size, void** buffer) {
  const TimedCall timed("ulfm_compose");
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  *buffer = open.core->try_compose(size);
  return *buffer != nullptr ? ULFM_OK : compose_or_report(*open.core, size, buffer);
}

int ulfm_post(ulfm_port port, ulfm_address to) {
  const TimedCall timed("ulfm_post");
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  return open.core->try_post({to.process, to.port}) ? ULFM_OK : post_or_say(*open.core, to);
}

int ulfm_send_pieces(ulfm_port port, ulfm_address to, const struct iovec* pieces, int count) {
  const TimedCall timed("ulfm_send_pieces");
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += pieces[i].iov_len;
  if (count < 1) return 0;  // a message of no bytes has one piece of none
  return open.core->send_pieces({to.process, to.port}, {pieces, static_cast<std::size_t>(count)}, size) ? 1 : 0;
}

int ulfm_discard(ulfm_port port) {
  const OpenPort open = port_of(port);
  return open.core != nullptr ? finish(open.core->discard()) : say_stale();
}

namespace {
int open_group(ulfm_port port, const ulfm_address* members, int count, bool as_tree, ulfm_group* group) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  if (count < 1 || members == nullptr)
    return report({Errc::invalid, fmt::format("a group of {} ports: 1 or more are needed", count)});
  std::vector<PortAddress> all;
  all.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) all.push_back({members[i].process, members[i].port});
  auto made = open.core->open_group(all, as_tree);
  if (!made) return report(made.error());
  *group = *made;
  return ULFM_OK;
}
}  // namespace

int ulfm_group_open(ulfm_port port, const ulfm_address* members, int count, ulfm_group* group) {
  const TimedCall timed("ulfm_group_open");
  return open_group(port, members, count, false, group);
}

int ulfm_group_open_tree(ulfm_port port, const ulfm_address* members, int count, ulfm_group* group) {
  const TimedCall timed("ulfm_group_open_tree");
  return open_group(port, members, count, true, group);
}

int ulfm_group_close(ulfm_port port, ulfm_group group) {
  const OpenPort open = port_of(port);
  return open.core != nullptr ? finish(open.core->close_group(group)) : say_stale();
}

int ulfm_post_group(ulfm_port port, ulfm_group group) {
  const TimedCall timed("ulfm_post_group");
  const OpenPort open = port_of(port);
  return open.core != nullptr ? finish(open.core->post_group(group)) : say_stale();
}

int ulfm_poll(ulfm_port port, ulfm_message* message) {
  const TimedCall timed("ulfm_poll");
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  Arrival arrival;
  if (!open.core->poll(arrival)) {
    if (open.node->sends_pending()) open.node->drive();
    if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
      time->spend_look();
    return 0;
  }
  *message = message_of(arrival);
  return 1;
}

int ulfm_wait(ulfm_port port, int64_t timeout_ns, ulfm_message* message) {
  const TimedCall timed("ulfm_wait");
  OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  Arrival arrival;
  auto found = open.node->wait(std::span(&open.core, 1), std::chrono::nanoseconds(timeout_ns), arrival);
  if (!found) return report(found.error());
  *message = message_of(arrival);
  return 1;
}

int ulfm_wait_any(const ulfm_port* ports, int count, int64_t timeout_ns, int* which, ulfm_message* message) {
  const TimedCall timed("ulfm_wait_any");
  if (count < 1 || count > kPortsPerProcess)
    return report({Errc::invalid, fmt::format("waiting for {} ports: 1 to 64 can be waited for", count)});
  std::array<PortCore*, kPortsPerProcess> cores;
  Node* node = nullptr;
  for (int i = 0; i < count; ++i) {
    const OpenPort open = port_of(ports[i]);
    if (open.core == nullptr) return say_stale();
    if (node != nullptr && open.node != node)
      return report({Errc::invalid, "the ports waited for belong to different jobs"});
    node = open.node;
    cores[static_cast<std::size_t>(i)] = open.core;
  }
  Arrival arrival;
  auto found = node->wait(std::span(cores.data(), static_cast<std::size_t>(count)),
                          std::chrono::nanoseconds(timeout_ns), arrival);
  if (!found) return report(found.error());
  *which = static_cast<int>(*found);
  *message = message_of(arrival);
  return 1;
}

int ulfm_release(ulfm_port port, const ulfm_message* message) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  return open.core->try_release(message->handle) ? ULFM_OK : release_or_say(*open.core, message->handle);
}

int ulfm_flush(ulfm_port port, int64_t timeout_ns) {
  const TimedCall timed("ulfm_flush");
  const OpenPort open = port_of(port);
  return open.core != nullptr ? finish(open.node->flush(*open.core, std::chrono::nanoseconds(timeout_ns)))
                              : say_stale();
}

int ulfm_watch_begin(ulfm_port port) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  open.core->inlet().wake_source().watch();
  return ULFM_OK;
}

int ulfm_watch_wait(ulfm_port port, int64_t timeout_ns) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  if (timeout_ns < 0) return report({Errc::invalid, fmt::format("a watch of {} ns: 0 or more are needed", timeout_ns)});
  // Not report(): a watch that ends without an arrival is nothing to make a sentence of.
  return open.core->inlet().wake_source().watch_sleep(std::chrono::nanoseconds(timeout_ns)) ? 1 : ULFM_ERR_TIMED_OUT;
}

int ulfm_watch_end(ulfm_port port) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  open.core->inlet().wake_source().end_watch();
  return ULFM_OK;
}

int ulfm_watch_interrupts(ulfm_port port, int thread) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  if (thread < 0) return report({Errc::invalid, fmt::format("thread {}: 0 or a number of gettid()", thread)});
  // A watch begins with each call of the library then, and a barrier with each would interrupt every core.
  if (thread != 0) open.core->inlet().wake_source().expect_many_sleeps();
  set_interrupted_thread(thread);
  return ULFM_OK;
}

int ulfm_give_way(ulfm_port port) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return say_stale();
  if (VirtualTime::of_process() == nullptr) give_way(open.node->wait_policy());
  return ULFM_OK;
}

int ulfm_time_is_virtual(void) { return VirtualTime::of_process() != nullptr ? 1 : 0; }

int64_t ulfm_time_now(void) {
  VirtualTime* time = VirtualTime::of_process();
  if (time == nullptr) return static_cast<std::int64_t>(Clock::steady().now().count());
  const TimedCall timed("ulfm_time_now");
  time->spend_look();
  return static_cast<std::int64_t>(time->now() / 1000);
}

void ulfm_time_enter(const char* call) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) time->enter(call);
}

void ulfm_time_leave(void) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) time->leave();
}

void ulfm_time_hold(int begin) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) time->expect_processes(begin != 0);
}

int ulfm_time_outside(void) {
  const VirtualTime* time = VirtualTime::of_process();
  return time != nullptr && time->outside() ? 1 : 0;
}

void ulfm_time_sleep(int64_t nanoseconds) {
  VirtualTime* time = VirtualTime::of_process();
  if (time == nullptr || nanoseconds <= 0) return;
  const TimedCall timed("a sleep");
  const auto long_ = static_cast<std::uint64_t>(nanoseconds);
  time->spend(long_ < kNoMoment / 1000 ? long_ * 1000 : kNoMoment, VirtualTime::Spent::waiting);
}

void ulfm_time_charge(int what) {
  VirtualTime::set_charge(what == ULFM_TIME_SYSTEM    ? VirtualTime::Charge::system
                          : what == ULFM_TIME_GOES_ON ? VirtualTime::Charge::none
                                                      : VirtualTime::Charge::message);
}

void ulfm_place_begin(int place, int64_t pid) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr)
    time->begin_place(static_cast<std::uint32_t>(place), static_cast<std::int32_t>(pid));
}

int ulfm_place_has_ended(int place) {
  VirtualTime* time = VirtualTime::of_process();
  return time != nullptr && time->place_has_ended(static_cast<std::uint32_t>(place)) ? 1 : 0;
}

void ulfm_place_end(int place) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr)
    time->end_place(static_cast<std::uint32_t>(place));
}

int64_t ulfm_place_now(void) {
  const VirtualTime* time = VirtualTime::of_process();
  return time != nullptr ? static_cast<std::int64_t>(time->now() / 1000) : 0;
}

int64_t ulfm_place_settle(void) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) time->look();
  return ulfm_place_now();
}

void ulfm_time_look(void) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) time->spend_look();
}

}  // extern "C"
