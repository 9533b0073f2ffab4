// The cards that the processes of a job on one host show each other.
#include "job/card_board.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <list>

#include "base/wait_word.hpp"
#include "child.hpp"

using namespace ulfm;

namespace {

std::string job(const char* what) { return std::string("kvs_") + std::to_string(getpid()) + "_" + what; }
std::string card(int rank) { return "direct:card of rank " + std::to_string(rank); }

// A process of the job: says whether it has joined, and then, asked for a rank, what that one's card is.
std::unique_ptr<test::Child> member(const std::string& job_id, int rank, int size) {
  return std::make_unique<test::Child>([=](test::Pipe& parent) {
    auto board = CardBoard::join(job_id, rank, size, card(rank));
    parent.send(board ? "joined" : board.error().what);
    for (std::string asked; !(asked = parent.receive()).empty();)
      parent.send("card:" + (*board)->card_of(std::stoi(asked)));
  });
}

std::string ask(test::Child& child, int rank) {
  child.pipe().send(std::to_string(rank));
  return child.pipe().receive();
}

}  // namespace

TEST_CASE("Each process of a job finds the cards of all that have joined", "[card_board]") {
  constexpr int kSize = 6;
  std::vector<std::unique_ptr<test::Child>> members;
  for (int rank = 0; rank < kSize - 1; ++rank) members.push_back(member(job("all"), rank, kSize));
  for (auto& one : members) REQUIRE(one->pipe().receive() == "joined");
  for (auto& one : members)
    for (int rank = 0; rank < kSize - 1; ++rank) CHECK(ask(*one, rank) == "card:" + card(rank));
  CHECK(ask(*members[2], kSize - 1) == "card:");  // on another host, or late
  CHECK(ask(*members[2], kSize) == "card:");
  CHECK(ask(*members[2], -1) == "card:");
  members.push_back(member(job("all"), kSize - 1, kSize));
  REQUIRE(members.back()->pipe().receive() == "joined");
  CHECK(ask(*members[0], kSize - 1) == "card:" + card(kSize - 1));
}

TEST_CASE("A board outlives who made it, and leaves nothing behind", "[card_board]") {
  auto first = member(job("left"), 0, 3);
  REQUIRE(first->pipe().receive() == "joined");
  auto second = member(job("left"), 1, 3);
  REQUIRE(second->pipe().receive() == "joined");
  first->kill();
  CHECK(ask(*second, 0) == "card:" + card(0));
  // A new one; who is in the old one is not seen, which is what the launcher is for.
  auto third = member(job("left"), 2, 3);
  REQUIRE(third->pipe().receive() == "joined");
  CHECK(ask(*third, 2) == "card:" + card(2));
  CHECK(ask(*third, 1) == "card:");
}

TEST_CASE("Jobs have boards of their own", "[card_board]") {
  auto one = member(job("one"), 0, 2), other = member(job("other"), 1, 2);
  REQUIRE(one->pipe().receive() == "joined");
  REQUIRE(other->pipe().receive() == "joined");
  CHECK(ask(*one, 1) == "card:");
  CHECK(ask(*other, 0) == "card:");
}

TEST_CASE("What cannot be a board's is an error", "[card_board]") {
  CHECK_FALSE(CardBoard::join(job("wrong"), 0, 1, std::string(CardBoard::kMostCard + 1, 'x')));
  CHECK_FALSE(CardBoard::join(job("wrong"), 0, 1, ""));
  CHECK_FALSE(CardBoard::join(job("wrong"), 2, 2, "card"));
  CHECK_FALSE(CardBoard::join(job("wrong"), -1, 2, "card"));
  auto board = CardBoard::join(job("size"), 0, 2, "card");
  REQUIRE(board);
  CHECK_FALSE(CardBoard::join(job("size"), 1, 3, "card"));  // of another size
}

TEST_CASE("The last of those whose cards are on a board wakes those that have left", "[card_board]") {
  auto one = CardBoard::join(job("leave"), 0, 3, card(0)), other = CardBoard::join(job("leave"), 1, 3, card(1));
  REQUIRE(one);
  REQUIRE(other);
  const WaitWord all = (*one)->await_all();
  CHECK_FALSE((*one)->leave());
  CHECK_FALSE((*one)->have_all_left());
  CHECK_FALSE(all.is_over());
  CHECK((*other)->leave());  // the third has no card here: it is on another host
  CHECK((*one)->have_all_left());
  CHECK(all.is_over());
}
