// What a host with boards does, one by one; most scenarios run on both models.
#include "pcie_pair.hpp"

using namespace test;
using namespace test::pcie;

namespace {

Parameters plain(bool cut_through = false) {
  Parameters p;
  p.boards = 4;
  p.processes = 8;
  p.frames = 256;
  p.message = 4096;
  p.fragment = 512;
  p.pool = 16384;
  p.memory = 16384;
  p.cut_through = cut_through;
  return p;
}

/// The turn in which a message ended; 0: it has not.
std::uint64_t ended(const Pair& pair, FrameId frame) {
  for (const Ending& ending : pair.endings())
    if (ending.frame == frame && ending.delivered) return ending.cycle;
  return 0;
}

}  // namespace

TEST_CASE("a message is stored whole before it goes on, or cut through", "[pcie]") {
  const bool cut_through = GENERATE(false, true);
  Pair pair(plain(cut_through));
  pair.post(0, 1, 0, 4096);
  pair.drain();
  // Control packet, eight data packets; then eight to the board, the first in the turn in which the last came.
  CHECK(ended(pair, 0) == (cut_through ? 1 + 8 : 1 + 8 + 7));
  CHECK(pair.relay.host().most_stored == (cut_through ? 512 : 4096));
  CHECK(pair.relay.board(0).control_packets == 1);
  CHECK(pair.relay.board(0).data_packets == 8);
  CHECK(pair.relay.board(1).packets_down == 8);
  CHECK(pair.relay.steps() == 1);  // alone, it takes one step
}

TEST_CASE("messages of several processes of a board share its link, packet by packet", "[pcie]") {
  Pair pair(plain());
  pair.post(0, 1, 0, 4096);  // processes 0 and 4 are on board 0
  pair.post(4, 2, 0, 512);
  pair.drain();
  CHECK(ended(pair, 1) < ended(pair, 0));
}

TEST_CASE("a pool that nobody reads holds up only who sends to it", "[pcie]") {
  Pair pair(plain());
  for (FrameId f = 0; f < 20; ++f) pair.post(0, 1, 0, 4096);
  const FrameId last = pair.last;
  pair.drain();
  CHECK(pair.endings().size() == 4);  // what the pool has room for
  CHECK(pair.relay.pool(1, 0).full == 1);
  CHECK(pair.relay.host().reserved == 0);  // nothing of the others is in the host
  pair.post(0, 1, 1, 4096);                // another port of the same process
  pair.post(0, 5, 0, 4096);                // another process of the same board
  pair.post(0, 2, 0, 4096);
  pair.drain();
  CHECK(pair.endings().size() == 4 + 3);
  CHECK(pair.in_flight() == 16);
  while (pair.unread() != 0) pair.read(), pair.drain();
  CHECK(ended(pair, last) != 0);
  CHECK(pair.in_flight() == 0);
}

TEST_CASE("many senders to one stay within the host's memory, and nothing is dropped", "[pcie]") {
  Parameters p = plain(GENERATE(false, true));
  p.boards = 16, p.processes = 128, p.memory = 3 * p.message;
  Pair pair(p);
  for (std::uint32_t from = 1; from < p.processes; ++from) pair.post(from, 0, 0, p.message);
  while (pair.in_flight() != 0) pair.drain(), pair.read_all();
  const HostCounters host = pair.relay.host();
  CHECK(host.most_reserved == p.memory);
  CHECK(host.left == pair.endings().size());
  CHECK(host.left == 127 - 7);  // 7 of them are on board 0 themselves: their messages do not come this way
}

TEST_CASE("a board that dies takes with it what is on its way to it", "[pcie]") {
  Pair pair(plain());
  pair.post(0, 1, 0, 4096);
  pair.post(2, 3, 0, 4096);
  pair.run(1);
  pair.set_board(1, false);
  CHECK_FALSE(pair.post(0, 1, 0, 1));
  CHECK_FALSE(pair.relay.reaches(0, 1));
  CHECK(pair.relay.reaches(0, 3));
  pair.drain();
  CHECK(ended(pair, 0) == 0);
  CHECK(ended(pair, 1) != 0);
  CHECK(pair.relay.board(0).lost_messages == 1);
  pair.set_board(1, true);
  CHECK(pair.post(0, 1, 0, 1));
  pair.drain();
  CHECK(pair.endings().back().frame == pair.last);
  CHECK(pair.endings().back().delivered);
}

TEST_CASE("what is not sound is not taken", "[pcie]") {
  Pair pair(plain());
  CHECK(pair.refuses(256, 0, 1, 0, 1));   // no such number
  CHECK(pair.refuses(0, 0, 4, 0, 1));     // the same board
  CHECK(pair.refuses(0, 0, 1, 64, 1));    // no such port
  CHECK(pair.refuses(0, 0, 1, 0, 4097));  // too long
  CHECK(pair.post(0, 1, 0, 0));
  CHECK(pair.refuses(pair.last, 0, 1, 0, 0));  // on its way already
}

TEST_CASE("sizes that let no message through are refused", "[pcie]") {
  Parameters p = plain();
  CHECK(check(p));
  p.pool = 4095;
  CHECK_FALSE(check(p));
  p = plain(), p.memory = 4095;
  CHECK_FALSE(check(p));
  p = plain(), p.fragment = 3;
  CHECK_FALSE(check(p));
  p = plain(), p.boards = 27;
  CHECK_FALSE(check(p));
}
