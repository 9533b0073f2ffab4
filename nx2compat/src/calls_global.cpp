#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "calls.hpp"
#include "checks.hpp"
#include "global.hpp"
#include "reduce/kernels.h"

namespace nx2 {

void Group::send(int node, const void* data, std::size_t bytes) {
  (void)engine_.send({type_, node, kAny}, data, bytes);
}

void Group::receive(int node, void* data, std::size_t bytes) {
  Request request;
  request.selector = {type_, node, kAny};
  request.buffer = static_cast<std::byte*>(data);
  request.capacity = bytes;
  engine_.post_receive(request);
  engine_.wait(request);
  if (request.error != 0) end_of_job("global operation", request.error);
}

void Group::exchange(int to, const void* out, std::size_t out_bytes, int from, void* in, std::size_t in_bytes) {
  Request request;
  request.selector = {type_, from, kAny};
  request.buffer = static_cast<std::byte*>(in);
  request.capacity = in_bytes;
  engine_.post_receive(request);
  send(to, out, out_bytes);
  engine_.wait(request);
  if (request.error != 0) end_of_job("global operation", request.error);
}

std::vector<std::byte> Group::receive_any(int node) {
  const Selector selector{type_, node, kAny};
  MessageInfo info;
  while (!engine_.find(selector, info)) {
    engine_.step(-1);
    engine_.run_handlers();
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.count));
  receive(node, bytes.data(), bytes.size());
  return bytes;
}

void Group::send_to_all(const void* data, std::size_t bytes) {
  const std::size_t piece = engine_.tuning().to_all;
  const auto* from = static_cast<const std::byte*>(data);
  do {
    const std::size_t n = std::min(piece, bytes);
    (void)engine_.send({type_, -1, kAny}, from, n);
    from += n, bytes -= n;
  } while (bytes != 0);
}

void Group::receive_long(int node, void* data, std::size_t bytes) {
  const std::size_t piece = engine_.tuning().to_all;
  auto* to = static_cast<std::byte*>(data);
  do {
    const std::size_t n = std::min(piece, bytes);
    receive(node, to, n);
    to += n, bytes -= n;
  } while (bytes != 0);
}

namespace calls {
namespace {

/// Numbers of the operations, for the types of their messages.
enum Operation { kReduce, kCollect, kBarrier };

int check_operation(const Node& node) noexcept { return node.is_host() ? EQNODE : check_process(node); }

/// Combines `x` of all nodes where the network copies: up a binomial tree to node 0, in the order of the nodes, and
/// from there to all at once.
template <typename Combine>
void combine_at_root(Group& group, void* x, void* work, std::size_t bytes, Combine combine) {
  const int self = group.self();
  for (int bit = 1; bit < group.size(); bit *= 2) {
    if ((self & bit) != 0) {
      group.send(self - bit, x, bytes);
      return group.receive_long(0, x, bytes);
    }
    if (self + bit >= group.size()) continue;
    group.receive(self + bit, work, bytes);
    combine(x, work);
  }
  group.send_to_all(x, bytes);
}

/// Combines `x` of all nodes, on every node, in log2(nodes) exchanges (recursive doubling). `combine(into,
/// from)`.
///
/// Nodes beyond the largest power of two give their part to a node below it first and get the result from it
/// at last. The part of the lower nodes always comes first, so that all nodes compute the very same.
template <typename Combine>
void combine_all(Group& group, void* x, void* work, std::size_t bytes, Combine combine) {
  if (group.has_multicast()) return combine_at_root(group, x, work, bytes, combine);
  const int self = group.self(), size = group.size();
  const int cube = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  if (self >= cube) {
    group.send(self - cube, x, bytes);
    return group.receive(self - cube, x, bytes);
  }
  if (self + cube < size) {
    group.receive(self + cube, work, bytes);
    combine(x, work);
  }
  for (int bit = 1; bit < cube; bit *= 2) {
    const int other = self ^ bit;
    group.exchange(other, x, bytes, other, work, bytes);
    if (self < other) {
      combine(x, work);
    } else {
      combine(work, x);
      std::memcpy(x, work, bytes);
    }
  }
  if (self + cube < size) group.send(self + cube, x, bytes);
}

/// The kernels' name for a type of the calls.
template <typename T>
constexpr int type_of() {
  if constexpr (std::is_same_v<T, float>) return ULFM_TYPE_F32;
  if constexpr (std::is_same_v<T, double>) return ULFM_TYPE_F64;
  return sizeof(T) == 4 ? ULFM_TYPE_I32 : ULFM_TYPE_I64;
}

// Integers wrap around, as they did.
template <typename T>
Outcome reduce(T* x, Number n, T* work, int operation) {
  Call call;
  if (const int error = check_operation(call.node())) return error_of(error);
  if (n < 0) return failed(EQLEN);
  if (n != 0 && (x == nullptr || work == nullptr)) return failed(EQPBUF);
  Group group(call, kReduce);
  const auto count = static_cast<std::size_t>(n);
  const bool is_of_truth = operation == ULFM_OP_LAND || operation == ULFM_OP_LOR || operation == ULFM_OP_LXOR;
  if (group.size() == 1 && is_of_truth && n != 0) {  // with itself a value is 0 or 1, too
    std::memcpy(work, x, count * sizeof(T));
    ulfm_reduce_kernel(ULFM_OP_LOR, type_of<T>())(x, work, count);
    return {};
  }
  const ulfm_kernel kernel = ulfm_reduce_kernel(operation, type_of<T>());
  if (Team* team = Team::of(call.node(), group); team != nullptr && team->reduce(x, count, sizeof(T), kernel))
    return {};
  combine_all(group, x, work, count * sizeof(T), [&](void* into, const void* from) { kernel(into, from, count); });
  return {};
}

// ---- collecting
// -----------------------------------------------------------------------------------------------------

/// What a node has of the others: its own part, that of the next node, and so on round, as (length, bytes)
/// pairs.
struct Parts {
  std::vector<std::byte> packed;
  std::vector<std::size_t> starts;  ///< where each begins

  void add(const void* data, std::uint64_t size) {
    starts.push_back(packed.size());
    const auto* length = reinterpret_cast<const std::byte*>(&size);
    packed.insert(packed.end(), length, length + sizeof size);
    packed.insert(packed.end(), static_cast<const std::byte*>(data), static_cast<const std::byte*>(data) + size);
  }
  std::size_t end_of(std::size_t count) const { return count < starts.size() ? starts[count] : packed.size(); }
  std::uint64_t length(std::size_t i) const {
    std::uint64_t size;
    std::memcpy(&size, packed.data() + starts[i], sizeof size);
    return size;
  }
  const std::byte* bytes(std::size_t i) const { return packed.data() + starts[i] + sizeof(std::uint64_t); }
  void append(const std::vector<std::byte>& more) {
    for (std::size_t at = 0; at < more.size();) {
      std::uint64_t size;
      std::memcpy(&size, more.data() + at, sizeof size);
      add(more.data() + at + sizeof size, size);
      at += sizeof size + size;
    }
  }
};

/// Everything to everybody where the network copies: each node sends its own to all, first the length with as much as
/// goes along, then the rest.
Parts collect_by_multicast(Group& group, const void* x, std::size_t size) {
  const int self = group.self(), nodes = group.size();
  Parts parts;
  parts.add(x, size);
  group.send_to_all(parts.packed.data(), parts.packed.size());
  for (int i = 1; i < nodes; ++i) {
    const int node = (self + i) % nodes;
    std::vector<std::byte> part = group.receive_any(node);
    std::uint64_t length = 0;
    std::memcpy(&length, part.data(), sizeof length);
    const std::size_t first = part.size();
    part.resize(sizeof length + length);
    if (first < part.size()) group.receive_long(node, part.data() + first, part.size() - first);
    parts.append(part);
  }
  return parts;
}

/// Everything to everybody in log2(nodes) steps (Bruck et al., Efficient algorithms for all-to-all
/// communications in multiport message-passing systems, 1997): in each step a node hands on all that it has,
/// or as much as is missing.
Parts collect(Group& group, const void* x, std::size_t size) {
  if (group.has_multicast()) return collect_by_multicast(group, x, size);
  const int self = group.self(), nodes = group.size();
  Parts parts;
  parts.packed.reserve((size + sizeof(std::uint64_t)) * static_cast<std::size_t>(nodes));
  parts.add(x, size);
  for (int distance = 1; distance < nodes; distance *= 2) {
    const auto count = static_cast<std::size_t>(std::min(distance, nodes - distance));
    group.send((self - distance + nodes) % nodes, parts.packed.data(), parts.end_of(count));
    parts.append(group.receive_any((self + distance) % nodes));
  }
  return parts;
}

// The part of node `node` in what node `self` has.
std::size_t index_of(const Group& group, int node) {
  return static_cast<std::size_t>((node - group.self() + group.size()) % group.size());
}

/// What each node has, in the order of the nodes.
struct Collected {
  std::vector<std::size_t> lengths;
  std::vector<std::byte> bytes;
};

Collected collect_in_order(Call& call, Group& group, const void* x, std::size_t size) {
  Collected all;
  all.lengths.resize(static_cast<std::size_t>(group.size()));
  if (Team* team = Team::of(call.node(), group); team != nullptr && team->gather(x, size, all.lengths, all.bytes))
    return all;
  const Parts parts = collect(group, x, size);
  for (int node = 0; node < group.size(); ++node) {
    const std::size_t i = index_of(group, node);
    all.lengths[static_cast<std::size_t>(node)] = parts.length(i);
    all.bytes.insert(all.bytes.end(), parts.bytes(i), parts.bytes(i) + parts.length(i));
  }
  return all;
}

template <typename Element>
Outcome collect_into(const void* x, Number xlen, void* y, Number ylen, Element* ncnt) {
  Call call;
  if (const int error = check_operation(call.node())) return error_of(error);
  if (const int error = check_buffer(x, xlen)) return error_of(error);
  if (const int error = check_buffer(y, ylen)) return error_of(error);
  Group group(call, kCollect);
  const Collected all = collect_in_order(call, group, x, static_cast<std::size_t>(xlen));
  if (ncnt != nullptr) *ncnt = static_cast<Element>(all.bytes.size());
  if (all.bytes.size() > static_cast<std::size_t>(ylen)) return failed(EQMSGLONG);
  std::copy(all.bytes.begin(), all.bytes.end(), static_cast<std::byte*>(y));
  return {};
}

template <typename Element>
Outcome collect_known(const void* x, const Element* xlens, void* y) {
  Call call;
  if (const int error = check_operation(call.node())) return error_of(error);
  if (xlens == nullptr) return failed(EQPBUF);
  Group group(call, kCollect);
  const auto own = static_cast<Number>(xlens[group.self()]);
  if (const int error = check_buffer(x, own)) return error_of(error);
  const Collected all = collect_in_order(call, group, x, static_cast<std::size_t>(own));
  for (int node = 0; node < group.size(); ++node)
    if (all.lengths[static_cast<std::size_t>(node)] != static_cast<std::size_t>(xlens[node])) return failed(EQLEN);
  if (y == nullptr && !all.bytes.empty()) return failed(EQPBUF);
  std::copy(all.bytes.begin(), all.bytes.end(), static_cast<std::byte*>(y));
  return {};
}

}  // namespace

// ---- the calls
// ------------------------------------------------------------------------------------------------------

#define NX2_REAL_OPERATIONS(letter, T)                                                          \
  Outcome g##letter##sum(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_SUM); }   \
  Outcome g##letter##prod(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_PROD); } \
  Outcome g##letter##high(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_MAX); }  \
  Outcome g##letter##low(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_MIN); }
NX2_REAL_OPERATIONS(d, double)
NX2_REAL_OPERATIONS(s, float)

#define NX2_INTEGER_OPERATIONS(T)                                                      \
  Outcome gisum(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_SUM); }   \
  Outcome giprod(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_PROD); } \
  Outcome gihigh(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_MAX); }  \
  Outcome gilow(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_MIN); }   \
  Outcome giand(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_BAND); }  \
  Outcome gior(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_BOR); }    \
  Outcome gixor(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_BXOR); }  \
  Outcome gland(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_LAND); }  \
  Outcome glor(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_LOR); }    \
  Outcome glxor(T* x, Number n, T* work) { return reduce(x, n, work, ULFM_OP_LXOR); }
NX2_INTEGER_OPERATIONS(long)
NX2_INTEGER_OPERATIONS(std::int32_t)

Outcome gopf(void* x, Number xlen, void* work, Combiner function) {
  Call call;
  if (const int error = check_operation(call.node())) return error_of(error);
  if (function == nullptr) return failed(EQPARAM);
  if (const int error = check_buffer(x, xlen)) return error_of(error);
  if (const int error = check_buffer(work, xlen)) return error_of(error);
  Group group(call, kReduce);
  combine_all(group, x, work, static_cast<std::size_t>(xlen), [&](void* into, void* from) { function(into, from); });
  return {};
}

Outcome gcol(const void* x, Number xlen, void* y, Number ylen, long* ncnt) {
  return collect_into(x, xlen, y, ylen, ncnt);
}
Outcome gcol(const void* x, Number xlen, void* y, Number ylen, std::int32_t* ncnt) {
  return collect_into(x, xlen, y, ylen, ncnt);
}
Outcome gcolx(const void* x, const long* xlens, void* y) { return collect_known(x, xlens, y); }
Outcome gcolx(const void* x, const std::int32_t* xlens, void* y) { return collect_known(x, xlens, y); }

// Dissemination: after step k a node has heard of 2^k others, in log2(nodes) steps for any number of nodes.
Outcome gsync() {
  Call call;
  if (const int error = check_operation(call.node())) return error_of(error);
  Group group(call, kBarrier);
  if (Team* team = Team::of(call.node(), group); team != nullptr) {
    team->barrier();
    return {};
  }
  const int nodes = group.size();
  if (group.has_multicast()) {
    combine_at_root(group, nullptr, nullptr, 0, [](void*, const void*) {});
    return {};
  }
  for (int distance = 1; distance < nodes; distance *= 2)
    group.exchange((group.self() + distance) % nodes, nullptr, 0, (group.self() - distance + nodes) % nodes, nullptr,
                   0);
  return {};
}

// All nodes open the file, each with a file pointer of its own (M_UNIX; M_ASYNC differs from it in speed
// only).
Outcome gopen(Text path, Number flags, Number iomode, Number mode) {
  constexpr Number kUnix = 0, kAsync = 5;
  if (iomode != kUnix && iomode != kAsync) return failed(EQPARAM);
  if (const Outcome together = gsync(); together.error != 0) return together;
  const int fd = open(path.c_str(), flags, static_cast<mode_t>(mode));
  if (fd < 0) return {-1, errno};
  return {fd, 0};
}

}  // namespace calls
}  // namespace nx2
