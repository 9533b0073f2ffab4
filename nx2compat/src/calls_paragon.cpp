#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "calls.hpp"
#include "checks.hpp"

namespace nx2::calls {
namespace {

/// -sz N from the command line, which is taken out of it, as nx_initve did; 0 without.
int take_size_option(int& argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "-sz") != 0) continue;
    const int size = std::atoi(argv[i + 1]);
    std::memmove(argv + i, argv + i + 2, static_cast<std::size_t>(argc - i - 1) * sizeof *argv);
    argc -= 2;
    return size;
  }
  return 0;
}

/// Calls `start(node)` for each node of a list, for every node when the count is -1; value: how many were
/// started.
template <typename Element, typename Start>
Outcome start_on(const Element* nodes, Number count, Number ptype, Element* pids, Start start) {
  Node& host = Node::host();
  if (!host.is_host()) return failed(EQPRIV);
  if (ptype < 0) return failed(EQPID);
  if (count < -1 || (count > 0 && nodes == nullptr)) return failed(EQPARAM);
  std::vector<int> all;
  for (Number i = 0; i < (count < 0 ? host.nodes() : count); ++i) {
    const Number node = count < 0 ? i : static_cast<Number>(nodes[i]);
    if (node < 0 || node >= host.nodes()) return failed(EQNODE);
    if (host.cube().running(node) || std::find(all.begin(), all.end(), node) != all.end()) return failed(EQUSEPID);
    all.push_back(node);
  }
  for (const int node : all) host.cube().expect(node, ptype);
  for (const int node : all) {
    const Outcome started = start(node);
    if (started.error == 0 && started.value == 0) return started;  // this is the new process
    if (started.error != 0) {
      for (const int other : all) host.cube().give_up(other);
      return started;
    }
    if (pids != nullptr) *pids++ = static_cast<Element>(host.cube().entry(node).pid);
  }
  host.cube().await_opening(all);
  host.await_coming(all);
  return {static_cast<long>(all.size()), 0};
}

// 0 in the new processes.
template <typename Element>
Outcome fork_on(const Element* nodes, Number count, Number ptype, Element* pids) {
  return start_on(nodes, count, ptype, pids, [&](Number node) -> Outcome {
    if (Node::instance().cube().is_far(node)) {
      std::fprintf(stderr,
                   "nx: nx_nfork copies this process, on its own host only; use nx_load, or leave out -hosts\n");
      return failed(EQPARAM);
    }
    const pid_t pid = Node::instance().cube().fork_node(node);
    if (pid < 0) return failed(EQMEM);
    if (pid == 0) Node::instance().become_node(ptype);
    return {pid, 0};
  });
}

template <typename Element>
Outcome load_on(const Element* nodes, Number count, Number ptype, Element* pids, Text path, char** argv, char** envp) {
  std::vector<std::string> command{path};
  for (char** word = argv; word != nullptr && *word != nullptr; ++word)
    if (word != argv) command.emplace_back(*word);
  return start_on(nodes, count, ptype, pids, [&](Number node) -> Outcome {
    const int error = Node::instance().cube().load(command, node, envp);
    if (error != 0) return {-1, error};
    return {1, 0};
  });
}

// One row: the nodes have no places of their own.
template <typename Element>
Outcome as_rectangle(Element* rows, Element* columns) {
  if (rows != nullptr) *rows = 1;
  if (columns != nullptr) *columns = static_cast<Element>(Node::instance().nodes());
  return {0, 0};
}

template <typename Element>
Outcome list_nodes(void* nodes, Element* count) {
  const int size = Node::instance().nodes();
  if (nodes == nullptr || count == nullptr) return failed(EQPBUF);
  auto* list = static_cast<Element*>(std::malloc(static_cast<std::size_t>(size) * sizeof(Element)));
  if (list == nullptr) return failed(EQMEM);
  for (int i = 0; i < size; ++i) list[i] = static_cast<Element>(i);
  *static_cast<Element**>(nodes) = list;
  *count = static_cast<Element>(size);
  return {};
}

}  // namespace

/// This process controls an application of that many nodes; it is to start them with nx_nfork or nx_load.
Outcome nx_initve(Text, Number size, Text, void* argc, void* argv) {
  Node& host = Node::host();
  if (!host.is_host()) return failed(EQPRIV);
  int nodes = size;
  if (argc != nullptr && argv != nullptr)
    if (const int named = take_size_option(*static_cast<int*>(argc), static_cast<char**>(argv)); named > 0)
      nodes = named;
  if (std::getenv("NX2_NODES") != nullptr || nodes <= 0) nodes = host.nodes();
  if (nodes > 4096 || host.make_cube(nodes) != 0) return failed(EQPARAM);
  return {nodes, 0};
}

Outcome nx_nfork(const long* nodes, Number count, Number ptype, long* pids) {
  return fork_on(nodes, count, ptype, pids);
}
Outcome nx_nfork(const std::int32_t* nodes, Number count, Number ptype, std::int32_t* pids) {
  return fork_on(nodes, count, ptype, pids);
}

Outcome nx_load(const long* nodes, Number count, Number ptype, long* pids, Text path) {
  return load_on(nodes, count, ptype, pids, path, nullptr, nullptr);
}
Outcome nx_load(const std::int32_t* nodes, Number count, Number ptype, std::int32_t* pids, Text path) {
  return load_on(nodes, count, ptype, pids, path, nullptr, nullptr);
}

Outcome nx_loadve(const long* nodes, Number count, Number ptype, long* pids, Text path, void* argv, void* envp) {
  return load_on(nodes, count, ptype, pids, path, static_cast<char**>(argv), static_cast<char**>(envp));
}
Outcome nx_loadve(const std::int32_t* nodes, Number count, Number ptype, std::int32_t* pids, Text path, void* argv,
                  void* envp) {
  return load_on(nodes, count, ptype, pids, path, static_cast<char**>(argv), static_cast<char**>(envp));
}

Outcome nx_waitall() { return waitall(-1, -1); }

/// All processes are the operating system's to schedule.
Outcome nx_pri(Number, Number) { return {}; }

/// There is one partition, which has whatever nodes a program asks for.
Outcome nx_mkpart(Text, Number size, Number) { return size < 1 ? failed(EQPARAM) : Outcome{size, 0}; }
Outcome nx_mkpart_rect(Text, Number rows, Number columns, Number) {
  return rows < 1 || columns < 1 ? failed(EQPARAM) : Outcome{long{rows} * columns, 0};
}
Outcome nx_mkpart_map(Text, Number count, const long*, Number) {
  return count < 1 ? failed(EQPARAM) : Outcome{count, 0};
}
Outcome nx_mkpart_map(Text, Number count, const std::int32_t*, Number) {
  return count < 1 ? failed(EQPARAM) : Outcome{count, 0};
}
Outcome nx_rmpart(Text, Number, Number) { return {}; }

Outcome nx_perror(Text text) {
  const int error = errno;
  const char* words = phrase(error);
  std::fprintf(stderr, "(node %d, ptype %d) %s: %s\n", Node::instance().self(), Node::instance().engine()->ptype,
               text.c_str(), words != nullptr ? words : std::strerror(error));
  return {};
}

Outcome nx_app_nodes(void* nodes, long* count) { return list_nodes(nodes, count); }
Outcome nx_app_nodes(void* nodes, std::int32_t* count) { return list_nodes(nodes, count); }
Outcome nx_app_rect(long* rows, long* columns) { return as_rectangle(rows, columns); }
Outcome nx_app_rect(std::int32_t* rows, std::int32_t* columns) { return as_rectangle(rows, columns); }
Outcome mypart(long* rows, long* columns) { return as_rectangle(rows, columns); }
Outcome mypart(std::int32_t* rows, std::int32_t* columns) { return as_rectangle(rows, columns); }

}  // namespace nx2::calls
