// ulfm_topo: what a topology of switches looks like, which ways lead through it, and which ranks are where.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "../common/command_line.hpp"
#include "../common/output.hpp"
#include "base/standard_streams.hpp"
#include "convert.hpp"
#include "options.hpp"
#include "print.hpp"

namespace {

int complain(const std::string& text) {
  std::fprintf(stderr, "ulfm_topo: %s\n", text.c_str());
  return tools::kUsage;
}

/// Pixels and PDF in a terminal would only confuse it.
ulfm::Result<std::string> converted(const topo::View& view, const topo::Options& options) {
  if (options.output.empty() && isatty(STDOUT_FILENO) == 1)
    return ulfm::fail(ulfm::Errc::invalid,
                      fmt::format("{}: standard output is a terminal; add -o FILE", options.command));
  return topo::convert_picture(topo::svg_of(view), options.command);
}

int run(const topo::View& view, const topo::Options& options) {
  if (!options.output.empty() && std::freopen(options.output.c_str(), "w", stdout) == nullptr)
    return complain(fmt::format("-o {}: {}", options.output, std::strerror(errno)));
  if (options.command == "routes") return tools::written("ulfm_topo", topo::print_routes(view, options) ? 0 : 1);
  std::string text;
  if (options.command == "png" || options.command == "pdf") {
    auto picture = converted(view, options);
    if (!picture) {
      if (!options.output.empty()) std::remove(options.output.c_str());
      return complain(picture.error().what);
    }
    text = std::move(*picture);
  } else {
    text = options.command == "dot"   ? topo::dot_of(view)
           : options.command == "svg" ? topo::svg_of(view)
           : options.json             ? topo::json_of(view)
                                      : topo::text_of(view);
  }
  return tools::print("ulfm_topo", text);
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  topo::Options options;
  if (const auto code = topo::read_command_line(argc, argv, options)) return *code;
  const auto view = topo::make_view(options);
  if (!view) return complain(view.error().what);
  for (const auto& node : {options.from, options.to})
    if (node && *node >= view->topology.nodes())
      return complain(
          fmt::format("there is no node n{}; the topology has n0 to n{}", *node, view->topology.nodes() - 1));
  return run(*view, options);
}
