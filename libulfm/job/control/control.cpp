#include "job/control/control.hpp"

#include "job/control/server.hpp"

namespace ulfm::control {

Control::Control(std::unique_ptr<Server> server)
    : server_(std::move(server)), card_(join_card(server_->self.card, server_->key)) {}

Result<std::unique_ptr<Control>> Control::start(const ControlSettings& settings, std::string identity, Source source) {
  auto server = std::make_unique<Server>(settings, std::move(source));
  if (auto ok = server->begin(std::move(identity)); !ok) return fail(ok.error());
  return std::unique_ptr<Control>(new Control(std::move(server)));
}

Control::~Control() { close(); }

Result<void> Control::set_up(std::string_view card, std::uint16_t to, std::uint16_t from) {
  return server_->set_up(card, to, from);
}

Result<void> Control::await(std::string_view identity) { return server_->await(identity); }
Result<Fd> Control::fetch(std::string_view identity, std::uint32_t what) { return server_->fetch(identity, what); }
void Control::abort(std::int32_t code, std::string_view sentence) { server_->abort(code, sentence); }
void Control::close() { server_->close(); }
std::string Control::statistics(const std::string& who) const { return server_->statistics(who); }

UnauthenticatedCounts Control::unauthenticated() const {
  std::lock_guard lock(server_->mutex);
  return server_->counts;
}

std::size_t Control::connections() const {
  std::lock_guard lock(server_->mutex);
  return server_->connections.size();
}

}  // namespace ulfm::control
