// Runs a fuzz target without a fuzzer: its own seeds, the files named on the command line, and N
// deterministic mutations of all of them. A crash is the finding; --last FILE keeps the input that was under
// way.
//
//   fuzz_NAME [--runs N] [--seed N] [--last FILE] [FILE...]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint64_t g_state = 1;
std::uint32_t random_number() {
  g_state ^= g_state << 13, g_state ^= g_state >> 7, g_state ^= g_state << 17;
  return static_cast<std::uint32_t>(g_state >> 16);
}
std::size_t below(std::size_t n) { return n == 0 ? 0 : random_number() % n; }

/// Numbers that readers get wrong.
void plant_number(Bytes& bytes) {
  static constexpr std::uint64_t kNumbers[] = {0,
                                               1,
                                               47,
                                               48,
                                               49,
                                               63,
                                               64,
                                               255,
                                               256,
                                               4095,
                                               4096,
                                               0x7fffffff,
                                               0x80000000,
                                               0xffffffff,
                                               0x7fffffffffffffff,
                                               0x8000000000000000,
                                               0xffffffffffffffff};
  const std::uint64_t number = kNumbers[below(std::size(kNumbers))] + (random_number() % 8 == 0 ? below(9) - 4 : 0);
  const std::size_t width = std::size_t{1} << below(4);
  if (bytes.size() >= width) std::memcpy(bytes.data() + below(bytes.size() - width + 1), &number, width);
}

void mutate(Bytes& bytes, const std::vector<Bytes>& corpus) {
  for (std::size_t n = 1 + below(6); n > 0; --n) {
    const std::size_t at = below(bytes.size());
    switch (below(8)) {
      case 0:
        if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<std::uint8_t>(random_number());
        break;
      case 2:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), 1 + below(16),
                     static_cast<std::uint8_t>(random_number()));
        break;
      case 3:
        if (!bytes.empty())
          bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                      bytes.begin() +
                          static_cast<std::ptrdiff_t>(at + 1 + below(std::min<std::size_t>(bytes.size() - at, 32))));
        break;
      case 4: bytes.resize(at); break;
      case 5: {  // a piece of another input
        const Bytes& other = corpus[below(corpus.size())];
        if (other.empty()) break;
        const std::size_t from = below(other.size());
        const Bytes piece(other.begin() + static_cast<std::ptrdiff_t>(from),
                          other.begin() + static_cast<std::ptrdiff_t>(
                                              from + 1 + below(std::min<std::size_t>(other.size() - from, 64))));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
        break;
      }
      default: plant_number(bytes);
    }
    if (bytes.size() > 1 << 16) bytes.resize(1 << 16);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 20000;
  std::string last;
  std::vector<Bytes> corpus{{}};
  for (const std::string& seed : fuzz_seeds()) corpus.emplace_back(seed.begin(), seed.end());
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--runs" && i + 1 < argc) runs = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--seed" && i + 1 < argc) g_state = std::strtoull(argv[++i], nullptr, 10) * 2 + 1;
    else if (argument == "--last" && i + 1 < argc) last = argv[++i];
    else {
      std::ifstream in(argument, std::ios::binary);
      if (!in) {
        std::fprintf(stderr, "%s: cannot be read\n", argument.c_str());
        return 2;
      }
      corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  for (std::uint64_t run = 0; run < runs; ++run) {
    Bytes bytes = corpus[below(corpus.size())];
    mutate(bytes, corpus);
    if (!last.empty())
      std::ofstream(last, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu seeds and %llu mutations: no finding\n", corpus.size(), static_cast<unsigned long long>(runs));
  return 0;
}
