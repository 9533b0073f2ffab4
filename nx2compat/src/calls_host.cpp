#include <algorithm>
#include <cctype>
#include <sstream>

#include "calls.hpp"
#include "checks.hpp"

namespace nx2::calls {
namespace {

/// Nodes that a cube type asks for: "d3" is a cube of dimension 3, "8", "8m4" and "8rx" are 8 nodes (memory
/// and processors were of the machine); "" leaves it to nxhost. -1: neither.
int nodes_of_type(Text type) {
  if (type.empty()) return 0;
  const bool dimension = type.front() == 'd' || type.front() == 'D';
  const std::size_t begin = dimension ? 1 : 0;
  std::size_t end = begin;
  while (end < type.size() && std::isdigit(static_cast<unsigned char>(type[end])) != 0) ++end;
  if (end == begin || end - begin > 4) return -1;
  const int number = std::stoi(type.substr(begin, end - begin));
  if (!dimension) return number >= 1 ? number : -1;
  return number <= 12 ? 1 << number : -1;
}

std::vector<std::string> words_of(Text command) {
  std::vector<std::string> words;
  std::istringstream in(command);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string base_name(Text path) { return path.substr(std::min(path.rfind('/') + 1, path.size())); }

int check_host(const Node& node) noexcept { return node.is_host() ? 0 : EQPRIV; }

/// Which processes a call names: node and pid, -1 for any.
bool names(Number node, Number pid, const Cube::Ended& process) noexcept {
  return (node < 0 || node == process.node) && (pid < 0 || pid == process.ptype);
}

template <typename Element>
Outcome wait_for_one(Number node, Number pid, Element* cnode, Element* cpid, Element* ccode) {
  Node::host();
  Call call;
  if (const int error = check_host(call.node())) return error_of(error);
  Cube& cube = call.node().cube();
  const auto find = [&] {
    return std::find_if(cube.ended.begin(), cube.ended.end(), [&](const auto& e) { return names(node, pid, e); });
  };
  const auto has_ended = [&] {
    call.node().look_after_nodes();
    return find() != cube.ended.end();
  };
  // Its status is the host's affair: a node that fails does not end the job meanwhile.
  cube.host_asks = true;
  call.engine().wait_for([&] { return has_ended() || !cube.running(node); }, -1);
  const auto found = find();
  cube.host_asks = false;
  if (found == cube.ended.end()) return failed(EQNOPROC);
  if (cnode != nullptr) *cnode = found->node;
  if (cpid != nullptr) *cpid = found->ptype;
  if (ccode != nullptr) *ccode = found->status;
  cube.ended.erase(found);
  return {};
}

}  // namespace

// For the cube that the host has from its beginning the number that nxhost was given comes first: the same program then
// runs on as many nodes as are wanted. Under another name it is a further cube.
Outcome getcube(Text cubename, Text cubetype, Text, Number) {
  Node& node = Node::host();
  if (const int error = check_host(node)) return error_of(error);
  const int asked = nodes_of_type(cubetype);
  if (asked < 0) return failed(EQPARAM);
  Call call;
  if (!node.name_first_cube(cubename) && !node.attach_cube(cubename))
    return error_of(node.add_cube(cubename, asked)).error != 0 ? failed(EQPARAM) : Outcome{};
  if (asked == 0 || node.cubes() > 1 || std::getenv("NX2_NODES") != nullptr) return {};
  return error_of(node.make_cube(asked)).error != 0 ? failed(EQPARAM) : Outcome{};
}

// With a single cube any name means that.
Outcome attachcube(Text cubename) {
  Call call;
  Node& node = Node::host();
  if (const int error = check_host(node)) return error_of(error);
  return node.attach_cube(std::string(cubename)) || node.cubes() == 1 ? Outcome{} : failed(EQPARAM);
}

Outcome relcube(Text cubename) {
  Node& node = Node::host();
  if (const int error = check_host(node)) return error_of(error);
  Call call;
  node.release_cube(std::string(cubename));
  return {};
}

Outcome load(Text filename, Number node, Number pid) {
  Node& host = Node::host();
  Call call;
  if (const int error = check_host(host)) return error_of(error);
  const std::vector<std::string> command = words_of(filename);
  if (command.empty()) return failed(EQPARAM);
  if (node >= host.nodes() || node < -1) return failed(EQNODE);
  if (pid < 0) return failed(EQPID);
  Cube& cube = host.cube();
  std::vector<int> nodes;
  for (int i = node < 0 ? 0 : node; i < (node < 0 ? host.nodes() : node + 1); ++i) {
    if (!cube.running(i)) {
      nodes.push_back(i);
    } else if (host.loaded_by_name == base_name(command.front())) {
      cube.entry(i).ptype = pid;  // nxhost has loaded it already, under the name it was given there
    } else {
      return failed(EQUSEPID);
    }
  }
  const int error = cube.load_all(command, nodes, pid);
  if (error == 0) host.await_coming(nodes);
  return error != 0 ? error_of(error) : Outcome{};
}

Outcome waitall(Number node, Number pid) {
  Node::host();
  Call call;
  if (const int error = check_host(call.node())) return error_of(error);
  Cube& cube = call.node().cube();
  call.engine().wait_for(
      [&] {
        call.node().look_after_nodes();
        return !cube.running(node);
      },
      -1);
  cube.ended.erase(
      std::remove_if(cube.ended.begin(), cube.ended.end(), [&](const auto& e) { return names(node, pid, e); }),
      cube.ended.end());
  return {};
}

Outcome waitone(Number node, Number pid, long* cnode, long* cpid, long* ccode) {
  return wait_for_one(node, pid, cnode, cpid, ccode);
}
Outcome waitone(Number node, Number pid, std::int32_t* cnode, std::int32_t* cpid, std::int32_t* ccode) {
  return wait_for_one(node, pid, cnode, cpid, ccode);
}

// Standard input and output are shared by all processes; there is no server to start for them.
Outcome newserver(Text) { return {}; }

/// Number of cubes that this host holds; what a record about a cube looked like is not known, so none is
/// written.
Outcome cubeinfo(void*, Number, Number) {
  return {Node::host().is_host() ? static_cast<long>(Node::host().cubes()) : 0, 0};
}

}  // namespace nx2::calls
