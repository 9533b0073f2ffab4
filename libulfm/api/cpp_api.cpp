// The C++ interface: the C one with values, ownership and results.

#include <ulfm/ulfm.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "api/handles.hpp"
#include "base/virtual_time.hpp"
#include "base/wait.hpp"

namespace ulfm {
namespace {

// The last failure of the C interface as a value.
tl::unexpected<Error> failure(int code) { return fail(static_cast<Errc>(-code), ulfm_last_error()); }

Result<void> finish(int code) {
  if (code < 0) return failure(code);
  return {};
}

}  // namespace

Port& Port::operator=(Port&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Port::~Port() {
  if (handle_ != 0) ulfm_port_close(handle_);
}

std::uint16_t Port::number() const noexcept {
  const int n = ulfm_port_number(handle_);
  return n < 0 ? any_port : static_cast<std::uint16_t>(n);
}

Result<Outgoing> Port::compose(std::size_t bytes) {
  const OpenPort open = port_of(handle_);
  if (open.core == nullptr) return fail(stale_port());
  if (std::byte* buffer = open.core->try_compose(bytes)) return Outgoing(handle_, {buffer, bytes});
  auto span = open.core->compose(bytes);
  if (!span) return fail(std::move(span.error()));
  return Outgoing(handle_, *span);
}

Result<void> Port::post(Outgoing&& message, Address to) {
  if (message.port_ != handle_) return fail(Errc::invalid, "the message was composed in another port");
  const OpenPort open = port_of(handle_);
  if (open.core == nullptr) return fail(stale_port());
  if (open.core->try_post({to.process, to.port})) {
    message.port_ = 0;
    return {};
  }
  auto posted = open.core->post({to.process, to.port});
  if (posted) message.port_ = 0;  // otherwise the buffer is given back when `message` dies
  return posted;
}

Result<Outgoing> Port::copy_of(std::span<const std::byte> bytes, std::chrono::nanoseconds limit) {
  auto out = compose(bytes.size());
  if (!out && out.error().code == Errc::full) {
    // One buffer is enough, but all of them leave in order, so this waits for no more than it must.
    if (auto flushed = flush(limit); !flushed) return fail(flushed.error());
    out = compose(bytes.size());
  }
  if (out && !bytes.empty()) std::memcpy(out->bytes().data(), bytes.data(), bytes.size());
  return out;
}

Result<void> Port::send(std::span<const std::byte> bytes, Address to, std::chrono::nanoseconds limit) {
  auto out = copy_of(bytes, limit);
  return out ? post(std::move(*out), to) : fail(out.error());
}

Result<Group> Port::group(std::span<const Address> members) { return open_group(members, ulfm_group_open); }

Result<Group> Port::tree(std::span<const Address> members) { return open_group(members, ulfm_group_open_tree); }

Result<Group> Port::open_group(std::span<const Address> members,
                               int (*open)(ulfm_port, const ulfm_address*, int, ulfm_group*)) {
  ulfm_group group = 0;
  if (members.size() > std::numeric_limits<int>::max()) return fail(Errc::too_large, "a group of too many ports");
  if (const int rc = open(handle_, members.data(), static_cast<int>(members.size()), &group); rc < 0)
    return failure(rc);
  return Group(handle_, group);
}

Result<void> Port::post(Outgoing&& message, const Group& to) {
  if (message.port_ != handle_) return fail(Errc::invalid, "the message was composed in another port");
  if (to.port_ != handle_) return fail(Errc::invalid, "the group belongs to another port");
  const int rc = ulfm_post_group(handle_, to.handle_);
  if (rc < 0) return failure(rc);
  message.port_ = 0;
  return {};
}

Result<void> Port::send(std::span<const std::byte> bytes, const Group& to, std::chrono::nanoseconds limit) {
  auto out = copy_of(bytes, limit);
  return out ? post(std::move(*out), to) : fail(out.error());
}

Result<std::optional<Incoming>> Port::poll() {
  ulfm_message message;
  const int rc = ulfm_poll(handle_, &message);
  if (rc < 0) return failure(rc);
  if (rc == 0) return std::optional<Incoming>{};
  return std::optional<Incoming>(Incoming(handle_, message));
}

Result<Incoming> Port::wait(std::chrono::nanoseconds limit) {
  const TimedCall timed("Port::wait");
  OpenPort open = port_of(handle_);
  if (open.core == nullptr) return fail(stale_port());
  Arrival arrival;
  auto found = open.node->wait(std::span(&open.core, 1), limit, arrival);
  if (!found) return fail(std::move(found.error()));
  return Incoming(handle_, message_of(arrival));
}

Result<std::pair<std::size_t, Incoming>> Port::wait_any(std::span<Port* const> ports, std::chrono::nanoseconds limit) {
  std::array<ulfm_port, 64> handles{};
  if (ports.size() > handles.size()) return fail(Errc::invalid, "at most 64 ports can be waited for");
  for (std::size_t i = 0; i < ports.size(); ++i) handles[i] = ports[i]->handle_;
  ulfm_message message;
  int which = 0;
  const int rc = ulfm_wait_any(handles.data(), static_cast<int>(ports.size()), limit.count(), &which, &message);
  if (rc < 0) return failure(rc);
  const auto index = static_cast<std::size_t>(which);
  return std::pair<std::size_t, Incoming>(index, Incoming(ports[index]->handle_, message));
}

Result<void> Port::flush(std::chrono::nanoseconds limit) { return finish(ulfm_flush(handle_, limit.count())); }
Result<void> Port::close() { return finish(ulfm_port_close(std::exchange(handle_, 0))); }

Result<Job> Job::join() {
  ulfm_job job = 0;
  if (const int rc = ulfm_job_join(&job); rc < 0) return failure(rc);
  return Job(job);
}

Result<Job> Job::alone() {
  ulfm_job job = 0;
  if (const int rc = ulfm_job_alone(&job); rc < 0) return failure(rc);
  return Job(job);
}

Job& Job::operator=(Job&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Job::~Job() {
  if (handle_ != 0) ulfm_job_leave(handle_);
}

int Job::rank() const noexcept { return ulfm_job_rank(handle_); }
int Job::size() const noexcept { return ulfm_job_size(handle_); }
Result<void> Job::barrier() { return finish(ulfm_job_barrier(handle_)); }

std::string Job::transport() const {
  const char* name = ulfm_job_transport(handle_);
  return name != nullptr ? name : "";
}

Result<void> Job::put(const std::string& key, const std::string& value) {
  return finish(ulfm_job_put(handle_, key.c_str(), value.c_str()));
}

Result<std::string> Job::get(const std::string& key) {
  std::array<char, 4096> value;
  if (const int rc = ulfm_job_get(handle_, key.c_str(), value.data(), value.size()); rc < 0) return failure(rc);
  return std::string(value.data());
}

std::string Job::card() const {
  std::array<char, 256> card;
  return ulfm_job_card(handle_, card.data(), card.size()) == 0 ? card.data() : "";
}

Result<Port> Job::open_port(const PortOptions& options) {
  const ulfm_port_options o{options.number, options.slot_bytes, options.depth};
  ulfm_port port = 0;
  if (const int rc = ulfm_port_open(handle_, &o, &port); rc < 0) return failure(rc);
  return Port(port);
}

Result<Address> Job::address(int rank, std::uint16_t port) {
  Address address;
  if (const int rc = ulfm_job_address(handle_, rank, port, &address); rc < 0) return failure(rc);
  return address;
}

Result<Address> Job::address_of_card(const std::string& card, std::uint16_t port) {
  Address address;
  if (const int rc = ulfm_job_address_of_card(handle_, card.c_str(), port, &address); rc < 0) return failure(rc);
  return address;
}

}  // namespace ulfm
