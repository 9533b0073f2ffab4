// Cards of the direct transport: text from the launcher or from another process.
#include "fuzz.hpp"
#include "transport/direct/layout.hpp"

using namespace ulfm::direct;

std::vector<std::string> fuzz_seeds() {
  return {encode(DirectCard{1, 2, 3, 4, 5}), encode(DirectCard{~0ull, ~0ull, ~0ull, 0x7fffffff, 0x7fffffff}),
          "direct:", "direct:-1-1-1.-1.-1"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto card = decode({reinterpret_cast<const char*>(bytes), size});
  if (!card) {
    must(!card.error().what.empty() && card.error().what.size() < 300, "an error has a short text");
    return 0;
  }
  must(card->pid > 0 && card->fd >= 0, "pid and descriptor are possible");
  const auto again = decode(encode(*card));
  must(again.has_value() && encode(*again) == encode(*card), "a card survives its text");
  return 0;
}
