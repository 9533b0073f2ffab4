#include "job/control/wire.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace ulfm::control {
namespace {

constexpr std::uint32_t kMagic = 0x6c746375;  // "uctl"
constexpr std::size_t kIdentityFixed = 26, kAbortFixed = 6;

struct Row {
  const char* name;
  std::size_t least, most;  // bytes of the body
};
constexpr std::array<Row, 10> kRows{{
    {"", 1, 0},
    {"greeting", 24, 24},
    {"challenge", 48, 48},
    {"proof", 32, 32},
    {"identity", kIdentityFixed + 1, kIdentityFixed + kMostCard},
    {"set-up", 4, 4},
    {"descriptor request", 8, 8},
    {"descriptor", 8, 8},
    {"abort", kAbortFixed, kAbortFixed + kMostSentence},
    {"goodbye", 0, 0},
}};

const Row& row(Type type) noexcept {
  const auto i = static_cast<std::size_t>(type);
  return kRows[i < kRows.size() ? i : 0];
}

class Writer {
 public:
  explicit Writer(Type type) : bytes_{static_cast<std::byte>(type), {}, {}, {}} {}
  template <typename Number>
  Writer& number(Number value) {
    for (std::size_t i = 0; i < sizeof value; ++i) bytes_.push_back(static_cast<std::byte>(value >> 8 * i & 255));
    return *this;
  }
  template <std::size_t n>
  Writer& array(const std::array<std::uint8_t, n>& a) {
    for (const std::uint8_t byte : a) bytes_.push_back(static_cast<std::byte>(byte));
    return *this;
  }
  Writer& text(std::string_view t) {
    for (const char c : t) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  Bytes done() {
    const std::size_t body = bytes_.size() - kHead;
    bytes_[2] = static_cast<std::byte>(body & 255);
    bytes_[3] = static_cast<std::byte>(body >> 8);
    return std::move(bytes_);
  }

 private:
  Bytes bytes_;
};

/// Reads fields one after the other; what is not there reads as zero and good() says so.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> body) : body_(body) {}
  template <typename Number>
  Number number() {
    std::uint64_t value = 0;
    const auto bytes = take(sizeof(Number));
    for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    return static_cast<Number>(value);
  }
  template <std::size_t n>
  std::array<std::uint8_t, n> array() {
    std::array<std::uint8_t, n> a{};
    const auto bytes = take(n);
    if (!bytes.empty()) std::memcpy(a.data(), bytes.data(), bytes.size());
    return a;
  }
  std::string text(std::size_t n) {
    const auto bytes = take(n);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool at_end() const { return good_ && body_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t n) {
    if (n > body_.size()) {
      good_ = false;
      return {};
    }
    const auto bytes = body_.first(n);
    body_ = body_.subspan(n);
    return bytes;
  }
  std::span<const std::byte> body_;
  bool good_ = true;
};

tl::unexpected<Error> no_such(Type type) {
  return fail(Errc::protocol, fmt::format("the bytes are no {} of a control connection", row(type).name));
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

const char* name(Type type) noexcept { return row(type).name; }

Bytes greeting(const Nonce& nonce) {
  return Writer(Type::greeting).number(kMagic).number(kVersion).number(std::uint16_t{0}).array(nonce).done();
}
Bytes challenge(const Nonce& nonce, const Proof& proof) {
  return Writer(Type::challenge).array(nonce).array(proof).done();
}
Bytes proof_packet(const Proof& proof) { return Writer(Type::proof).array(proof).done(); }

Bytes packet(const Identity& who) {
  const std::string_view card = std::string_view(who.card).substr(0, kMostCard);
  return Writer(Type::identity)
      .number(who.pid)
      .number(who.rank)
      .number(who.started)
      .number(who.host)
      .number(static_cast<std::uint16_t>(card.size()))
      .text(card)
      .done();
}
Bytes packet(const SetUp& s) { return Writer(Type::set_up).number(s.from_port).number(s.to_port).done(); }
Bytes packet(const DescriptorRequest& r) {
  return Writer(Type::descriptor_request).number(r.number).number(r.what).done();
}
Bytes packet(const DescriptorAnswer& a) {
  return Writer(Type::descriptor).number(a.number).number(static_cast<std::uint32_t>(a.passing)).done();
}
Bytes packet(const Abort& a) {
  std::string sentence = a.sentence.substr(0, kMostSentence);
  std::replace_if(
      sentence.begin(), sentence.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return Writer(Type::abort)
      .number(static_cast<std::uint32_t>(a.code))
      .number(static_cast<std::uint16_t>(sentence.size()))
      .text(sentence)
      .done();
}
Bytes goodbye() { return Writer(Type::goodbye).done(); }

Result<Nonce> read_greeting(std::span<const std::byte> body) {
  Fields in(body);
  const bool ours = in.number<std::uint32_t>() == kMagic;
  const auto version = in.number<std::uint16_t>();
  const bool zero = in.number<std::uint16_t>() == 0;
  const Nonce nonce = in.array<16>();
  if (!ours || !zero || !in.at_end()) return no_such(Type::greeting);
  if (version != kVersion)
    return fail(
        Errc::protocol,
        fmt::format("the other side speaks version {} of the control channel; this is version {}", version, kVersion));
  return nonce;
}

Result<std::pair<Nonce, Proof>> read_challenge(std::span<const std::byte> body) {
  Fields in(body);
  const Nonce nonce = in.array<16>();
  const Proof proof = in.array<32>();
  if (!in.at_end()) return no_such(Type::challenge);
  return std::pair{nonce, proof};
}

Result<Proof> read_proof(std::span<const std::byte> body) {
  Fields in(body);
  const Proof proof = in.array<32>();
  if (!in.at_end()) return no_such(Type::proof);
  return proof;
}

Result<Identity> read_identity(std::span<const std::byte> body) {
  Fields in(body);
  Identity who;
  who.pid = in.number<std::uint32_t>();
  who.rank = in.number<std::uint32_t>();
  who.started = in.number<std::uint64_t>();
  who.host = in.number<std::uint64_t>();
  who.card = in.text(in.number<std::uint16_t>());
  if (!in.at_end() || who.card.empty() || who.card.size() > kMostCard || who.pid == 0 || who.pid > 0x7fffffff ||
      !is_printable(who.card) || who.card.find_first_of(" +") != who.card.npos)
    return no_such(Type::identity);
  return who;
}

Result<SetUp> read_set_up(std::span<const std::byte> body) {
  Fields in(body);
  SetUp s{};
  s.from_port = in.number<std::uint16_t>();
  s.to_port = in.number<std::uint16_t>();
  if (!in.at_end()) return no_such(Type::set_up);
  return s;
}

Result<DescriptorRequest> read_descriptor_request(std::span<const std::byte> body) {
  Fields in(body);
  DescriptorRequest r{};
  r.number = in.number<std::uint32_t>();
  r.what = in.number<std::uint32_t>();
  if (!in.at_end()) return no_such(Type::descriptor_request);
  return r;
}

Result<DescriptorAnswer> read_descriptor_answer(std::span<const std::byte> body) {
  Fields in(body);
  const auto number = in.number<std::uint32_t>(), passing = in.number<std::uint32_t>();
  if (!in.at_end() || passing > static_cast<std::uint32_t>(Passing::not_this_way)) return no_such(Type::descriptor);
  return DescriptorAnswer{number, static_cast<Passing>(passing)};
}

Result<Abort> read_abort(std::span<const std::byte> body) {
  Fields in(body);
  Abort a{};
  a.code = static_cast<std::int32_t>(in.number<std::uint32_t>());
  a.sentence = in.text(in.number<std::uint16_t>());
  if (!in.at_end() || a.sentence.size() > kMostSentence || !is_printable(a.sentence)) return no_such(Type::abort);
  return a;
}

std::span<std::byte> PacketReader::room() noexcept { return std::span(bytes_).subspan(have_, need_ - have_); }

bool PacketReader::head_is_good() noexcept {
  const auto type = static_cast<Type>(bytes_[0]);
  const std::size_t length = std::to_integer<std::size_t>(bytes_[2]) | std::to_integer<std::size_t>(bytes_[3]) << 8;
  if (type < first_ || type > last_ || bytes_[1] != std::byte{0}) return false;
  if (length < row(type).least || length > row(type).most) return false;
  need_ = kHead + length;
  return true;
}

PacketReader::Step PacketReader::took(std::size_t n) noexcept {
  const bool was_in_head = have_ < kHead;
  have_ += n;
  if (was_in_head && have_ == kHead && !head_is_good()) return Step::broken;
  return have_ < kHead || have_ < need_ ? Step::more : Step::whole;
}

}  // namespace ulfm::control
