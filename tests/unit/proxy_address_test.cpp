// Where processes of other hosts find their job's arena, as text in the environment.
#include <catch2/catch.hpp>
#include <string>

#include "transport/proxy/address.hpp"
#include "transport/proxy/wire.hpp"

using namespace ulfm;
using namespace ulfm::proxy;

TEST_CASE("the address of a door is read as it was written", "[proxy]") {
  const DoorAddress address{0x0123456789abcdef, 8704, {0, 3, 3, 65535}, "ofi:AbCd-_09"};
  const auto read = decode(encode(address));
  REQUIRE(read);
  CHECK(read->host == address.host);
  CHECK(read->frame == address.frame);
  CHECK(read->nodes == address.nodes);
  CHECK(read->card == address.card);
}

TEST_CASE("what is no address of a door is refused with a sentence", "[proxy]") {
  const std::string good = encode({7, 8704, {0, 1}, "ofi:x"});
  REQUIRE(decode(good));
  for (const std::string& bad :
       {std::string(), std::string("|||"), std::string("7|0|0|ofi:x"), std::string("7|8704||ofi:x"),
        std::string("7|8704|0,|ofi:x"), std::string("7|8704|0,x|ofi:x"), std::string("07|8704|0|ofi:x"),
        std::string("7|8704|-1|ofi:x"), std::string("7|99999999999|0|ofi:x"), "x" + good}) {
    const auto read = decode(bad);
    INFO(bad);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == Errc::protocol);
    CHECK(read.error().what.find("ulfmrun sets it") != std::string::npos);
  }
}

TEST_CASE("a body that is too short is not read", "[proxy]") {
  const ProxyDestination to{7, 5};
  Bytes bytes;
  append(bytes, bytes_of(to));
  append(bytes, bytes_of(std::string_view("card")));
  std::span<const std::byte> rest = bytes;
  ProxyDestination found{};
  std::string card;
  REQUIRE(take(rest, found));
  CHECK(found.card == 5);
  CHECK_FALSE(take(rest, found.card, card));
  CHECK(take(rest, 4, card));
  CHECK(card == "card");
  CHECK_FALSE(take(rest, found));
}
