#include "transport/hosts/attempts.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

namespace ulfm::hosts {
namespace {

using std::chrono::milliseconds;

// All addresses are being tried after a second at the latest. A host that has never been reached and has not answered
// by then, and some time for lost packets, is given up. A process may answer late because its core is busy: when its
// host answers, it has GIVE_UP.
constexpr milliseconds kAllTriedAfter{1000}, kNextAfter{250};
constexpr milliseconds kConnectFor{4500};
// A kernel repeats what asks for a connection after 1, 3 and 7 s. It is asked anew before that, so that a cable that is
// joined again is noticed.
constexpr milliseconds kAgainAfter{20}, kLostAgainAfter{250}, kSilentAgainAfter{2000};

const char* remedy_for(const std::string& failure) {
  if (failure.find("no answer") != failure.npos) return "a firewall? open ULFM_PORTS there, or name ULFM_INTERFACE";
  if (failure.find("the process does not") != failure.npos) return "is it stopped? a longer ULFM_GIVE_UP waits for it";
  if (failure.starts_with("Too many open files")) return "here: raise the limit of open files (ulimit -n)";
  if (failure.find("refused") != failure.npos) return "it has ended, or another host has this address";
  if (failure.find("nreachable") != failure.npos)
    return "no route: name an interface both hosts have by ULFM_INTERFACE";
  return "name the interface to use by ULFM_INTERFACE";
}

}  // namespace

void Try::fail_by(int error, std::string reason) {
  nobody_there = error == ECONNREFUSED;
  host_silent = error == EHOSTUNREACH || error == EHOSTDOWN;
  if (error == 0 || error == ECONNRESET || error == ECONNABORTED || error == EPIPE)
    return fail_for_now(std::move(reason));
  fail(std::move(reason));
  if (host_silent) again_at = Clock::now() + kLostAgainAfter;
}

void Try::fail_for_now(std::string reason) {
  fail(std::move(reason));
  again_at = Clock::now() + kAgainAfter;
}

Attempts::Attempts(std::vector<Candidate> candidates, milliseconds give_up, bool was_reached)
    : candidates_(std::move(candidates)),
      give_up_(give_up),
      answer_within_(was_reached ? std::max(give_up, kConnectFor) : kConnectFor),
      next_after_(std::min<Clock::duration>(kNextAfter, kAllTriedAfter / std::max<std::size_t>(1, candidates_.size()))),
      begun_(Clock::now()),
      next_at_(begun_),
      until_(begun_ + answer_within_) {}

bool Attempts::is_to_be_tried_again(const Try& one, Clock::time_point now) const {
  if (one.state == Try::State::failed) return one.again_at && now >= *one.again_at;
  return one.state == Try::State::connecting && now >= one.begun + kSilentAgainAfter && !one.is_host_answering();
}

std::optional<std::size_t> Attempts::due(Clock::time_point now) const {
  const auto again =
      std::find_if(tries_.begin(), tries_.end(), [&](const auto& t) { return is_to_be_tried_again(*t, now); });
  if (again != tries_.end()) return static_cast<std::size_t>(again - tries_.begin());
  const bool failed = !tries_.empty() && tries_.back()->state == Try::State::failed;
  if (tries_.size() < candidates_.size() && (failed || now >= next_at_)) return tries_.size();
  return std::nullopt;
}

std::shared_ptr<Try> Attempts::add(std::size_t which, std::shared_ptr<Try> one, Clock::time_point now) {
  one->why = candidates_[which].why;
  one->begun = now;
  next_at_ = now + next_after_;
  if (which < tries_.size()) return std::exchange(tries_[which], std::move(one));
  tries_.push_back(std::move(one));
  return nullptr;
}

std::shared_ptr<Try> Attempts::winner() const {
  for (const auto& one : tries_)
    if (one->state == Try::State::up) return one;
  return nullptr;
}

Refusal Attempts::refusal() const {
  for (const auto& one : tries_)
    if (one->refusal != Refusal::none) return one->refusal;
  return Refusal::none;
}

bool Attempts::over(Clock::time_point now) {
  if (winner() || refusal() != Refusal::none || all_failed()) return true;
  if (now < until_ || tries_.empty()) return false;
  const auto latest = begun_ + give_up_;
  if (until_ >= latest || !is_any_host_answering()) return true;
  until_ = latest;
  return false;
}

bool Attempts::is_any_host_answering() const {
  return std::any_of(tries_.begin(), tries_.end(),
                     [](const auto& t) { return t->state == Try::State::connecting && t->is_host_answering(); });
}

// At an address that is the other host's only: there nothing listens at the port of the process.
bool Attempts::has_refused() const {
  for (std::size_t i = 0; i < tries_.size(); ++i)
    if (tries_[i]->nobody_there && !candidates_[i].is_ours) return true;
  return false;
}

bool Attempts::is_nobody_there() const {
  return has_refused() && std::all_of(tries_.begin(), tries_.end(), [](const auto& t) { return t->nobody_there; });
}

// Once the host has refused at one of its addresses, it is not silent at another.
bool Attempts::all_failed() const {
  if (tries_.size() < candidates_.size()) return false;
  return std::all_of(tries_.begin(), tries_.end(), [refused = has_refused()](const auto& t) {
    return t->state == Try::State::failed && (!t->again_at || (t->host_silent && refused));
  });
}

std::string Attempts::table(std::uint16_t tcp_port) const {
  std::string text;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& to = candidates_[i];
    const bool tried = i < tries_.size();
    const std::string result =
        !tried                                   ? "not tried"
        : tries_[i]->state == Try::State::failed ? tries_[i]->failure
        : tries_[i]->is_host_answering()
            ? "the host answers, and the process does not"
            : fmt::format("no answer in {} s", static_cast<double>(answer_within_.count()) / 1000);
    const std::string hint = to.ip.is_loopback() && to.is_ours ? "loopback: ULFM_INTERFACE has to name a network"
                             : to.is_ours                      ? "a bridge or tunnel that both hosts have"
                             : tried                           ? remedy_for(result)
                                                               : "";
    text += fmt::format("\n  {:<21}  {}: {}{}", SocketAddress(to.ip, tcp_port).text(), to.why, result,
                        hint.empty() ? "" : fmt::format(" ({})", hint));
  }
  return text;
}

Error Attempts::error(const std::string& process, std::uint16_t port, std::uint16_t tcp_port) const {
  switch (refusal()) {
    case Refusal::no_such_port: return {Errc::not_found, fmt::format("port {} of {} is not open", port, process)};
    case Refusal::other_version: return {Errc::unavailable, fmt::format("{} runs another version of ULFM", process)};
    case Refusal::no_room:
      return {
          Errc::full,
          fmt::format(
              "{} has no room for another connection; raise ULFM_PEERS or its limit of open files (ulimit -n) there",
              process)};
    default: break;
  }
  return {is_nobody_there() ? Errc::peer_failed : Errc::unavailable,
          fmt::format(
              "{} cannot be reached. Tried:{}\n  (own addresses and links: ip addr; what this job uses: ulfm-ofi(7))",
              process, table(tcp_port))};
}

}  // namespace ulfm::hosts
