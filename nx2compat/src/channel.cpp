#include "channel.hpp"

#include <ulfm/places.h>
#include <unistd.h>

#include <fmt/core.h>

#include "timed.hpp"

namespace nx2 {

std::string Channel::open_port() {
  const ulfm_port_options options{number_, 0, 0};
  if (ulfm_port_open(job_, &options, &port_) < 0) return ulfm_last_error();
  transport_ = ulfm_job_transport(job_);
  return "";
}

std::string Channel::open_in_job() {
  if (ulfm_job_join(&job_) < 0) return ulfm_last_error();
  self_ = ulfm_job_rank(job_);
  nodes_ = ulfm_job_size(job_);
  if (nodes_ > 0xffff) return fmt::format("a job of {} nodes: NX/2 has at most 65535", nodes_);
  if (std::string why = open_port(); !why.empty()) return why;
  peers_.resize(static_cast<std::size_t>(nodes_));
  if (ulfm_job_barrier(job_) < 0) return ulfm_last_error();  // now every node's port is open
  return "";
}

std::string Channel::open_in_cube() {
  job_ = lent_;
  if (lent_ == 0 && ulfm_job_alone(&job_) < 0) return ulfm_last_error();
  self_ = cube_->self();
  nodes_ = cube_->nodes();
  if (std::string why = open_port(); !why.empty()) return why;
  peers_.resize(static_cast<std::size_t>(nodes_) + 1);
  CubeEntry& own = cube_->entry(self_);
  if (ulfm_job_card(job_, own.card, sizeof own.card) < 0) return ulfm_last_error();
  own.pid = getpid();
  own.port = number_;
  own.opened_at = ulfm_place_now();
  own.presence.store(Presence::open, std::memory_order_release);
  return "";
}

std::string Channel::open(Cube& cube) {
  cube_ = &cube;
  return cube.exists() ? open_in_cube() : open_in_job();
}

void Channel::close() {
  if (job_ == 0) return;
  give_back();
  if (cube_->exists()) cube_->note_gone(self_);
  if (lent_ != 0) (void)ulfm_port_close(port_);
  else (void)ulfm_job_leave(job_);
  job_ = 0;
  port_ = 0;
}

Channel::Sent Channel::send_to_all(const Header& header, const void* data, std::size_t size) {
  if (group_ == 0) {
    std::vector<ulfm_address> others;
    for (int node = 0; node < nodes_; ++node)
      if (node != self_) others.push_back(address(node));
    if (ulfm_group_open(port_, others.data(), static_cast<int>(others.size()), &group_) < 0) return Sent::lost;
  }
  return send_by(header, data, size, [&] { return ulfm_post_group(port_, group_); });
}

// In virtual time: what it was at the time of the caller, whatever the host has done since.
Presence Channel::presence_of(CubeEntry& entry) {
  Presence found = entry.presence.load(std::memory_order_acquire);
  if (!is_timed()) return found;
  if (found == Presence::empty || found == Presence::loading) {
    (void)ulfm_place_settle();  // who opens it before that time has done so then
    found = entry.presence.load(std::memory_order_acquire);
  }
  if (found == Presence::empty || found == Presence::loading) return found;
  // A send to a node that has ended finds its port closed, at the time at which it ended.
  return entry.opened_at < ulfm_place_now() ? Presence::open : Presence::loading;
}

Channel::Reach Channel::reach(int node) {
  Peer& peer = peers_[static_cast<std::size_t>(node)];
  if (!cube_->exists()) {
    if (peer.known) return Reach::there;
    peer.known = ulfm_job_address(job_, node, kPort, &peer.address) == ULFM_OK;
    return peer.known ? Reach::there : Reach::absent;
  }
  CubeEntry& entry = cube_->entry(node);
  switch (presence_of(entry)) {
    case Presence::empty: return waits_for_new_ ? Reach::not_yet : Reach::absent;
    case Presence::loading: return Reach::not_yet;
    case Presence::open: break;
    case Presence::gone: return Reach::absent;
  }
  if (peer.known && peer.use == entry.use) return Reach::there;
  peer.known = ulfm_job_address_of_card(job_, entry.card, entry.port, &peer.address) == ULFM_OK;
  peer.use = entry.use;
  return peer.known ? Reach::there : Reach::absent;
}

}  // namespace nx2
