#include "transport/registry.hpp"

#include <set>

#include "fabric/engine/host.hpp"
#include "fabric/models.hpp"
#include "property.hpp"
#include "transport/direct/layout.hpp"
#include "transport/emulated/card.hpp"
#include "transport/hosts/card.hpp"

using namespace ulfm;

TEST_CASE("every transport is described", "[registry]") {
  std::set<std::string> names;
  for (const TransportDescriptor* t : transports()) {
    INFO(t->name);
    CHECK(names.insert(t->name).second);
    CHECK(std::string(t->name) != "auto");
    CHECK_FALSE(std::string(t->summary).empty());
    CHECK(t->max_frame > 0);
    CHECK(t->make != nullptr);
    REQUIRE(t->unavailable != nullptr);
  }
  CHECK(names.count("direct") == 1);
}

TEST_CASE("auto and no name take the cheapest that can be used, and no emulation", "[registry]") {
  const auto cheapest = select_transport("auto");
  REQUIRE(cheapest);
  CHECK_FALSE((*cheapest)->links);
  for (const TransportDescriptor* t : transports()) {
    INFO(t->name);
    CHECK((t->links || !t->unavailable().empty() || t->latency_us >= (*cheapest)->latency_us));
  }
  CHECK(select_transport("").value() == *cheapest);
  CHECK(select_transport("auto,frame=256").error().what.find("takes no options") != std::string::npos);
  CHECK(std::string(select_transport("direct").value()->name) == "direct");
}

TEST_CASE("an unknown transport is an error that names the nearest and all", "[registry]") {
  const auto found = select_transport("driect");
  REQUIRE_FALSE(found);
  CHECK(found.error().code == Errc::not_found);
  CHECK(found.error().what.find("did you mean direct?") != std::string::npos);
  CHECK(found.error().what.find("auto, direct") != std::string::npos);
  const auto far = select_transport("something else");
  REQUIRE_FALSE(far);
  CHECK(far.error().what.find("did you mean") == std::string::npos);
  CHECK(select_transport(std::string(100000, 'x')).error().what.size() < 400);
}

TEST_CASE("options for a transport that has none are refused", "[registry]") {
  const auto found = select_transport("direct,frame=256");
  REQUIRE_FALSE(found);
  CHECK(found.error().code == Errc::invalid);
  CHECK(found.error().what.find("takes no options") != std::string::npos);
}

TEST_CASE("a transport says whether its links, switches and nodes can fail", "[registry]") {
  for (const fabric::ModelKind* kind : fabric::kModels) {
    INFO(kind->name);
    const bool can = fabric::FabricHost::create({kind->name, "", 2, "node 0 dead at 9s"}).has_value();
    CHECK(can == select_transport(kind->name).value()->link_faults);
  }
  for (const TransportDescriptor* t : transports()) CHECK((t->links || !t->link_faults));
}

TEST_CASE("a card of another transport is refused with the one that both sides need", "[registry]") {
  const auto says = [](const auto& result, const char* what) {
    return !result && result.error().what.find(what) != std::string::npos;
  };
  CHECK(says(hosts::decode("ofi", "tcp:XOVQTz"), "one of tcp; both sides need the same transport"));
  CHECK(says(hosts::decode("tcp", "mux:direct:1&tcp:2"), "ULFM_TRANSPORT=mux"));
  CHECK(says(direct::decode("mux:direct:1"), "ULFM_TRANSPORT=mux"));
  CHECK(says(direct::decode("fabric:12.1"), "an emulated interconnect"));
  CHECK(says(emulated::decode("direct:1"), "ULFM_TRANSPORT=direct"));
  CHECK_FALSE(says(direct::decode("direct:1"), "both sides"));
  CHECK_FALSE(says(direct::decode("tcpx"), "both sides"));
}
