// Durations of the models: each kind's own presets, and the options that change them.
#include "fabric/durations.hpp"

#include <catch2/catch.hpp>

#include "fabric/models.hpp"

using namespace ulfm::fabric;

namespace {

Durations of(const char* model, const char* options = "") {
  return durations_of(*find_model(model).value(), options).value();
}

std::string refused(const char* model, const char* options) {
  const auto found = durations_of(*find_model(model).value(), options);
  REQUIRE_FALSE(found);
  return found.error().what;
}

}  // namespace

TEST_CASE("durations: the first preset of a model holds without one, and the others by their names", "[time]") {
  CHECK(of("xswitch").cycle == 8000);
  CHECK(of("xswitch").card_byte == 7040);
  CHECK(of("xswitch", "preset=thnpc2").cycle == 6928);
  CHECK(of("dcm").system_send == 70'000'000);
  CHECK(of("dcm").forward == 0);
  CHECK(of("dcm", "preset=ipsc1").forward == 860'000'000);
  CHECK(of("pcie").cycle == 2000);
  CHECK(of("pcie", "preset=gen1").cycle == 4000);
  CHECK(of("pcie", "preset=gen3").cycle == 1016);
  CHECK(of("pointdesign").system_receive == of("pointdesign").receive);
  for (const ModelKind* kind : kModels) CHECK(durations_of(*kind, "")->cycle != 0);
}

TEST_CASE("durations: a model's own options count, and those that every model has come last", "[time]") {
  CHECK(of("pointdesign", "cycle=25").cycle == 25'000);
  CHECK(of("pointdesign", "cycle=25,cycle_ps=1234").cycle == 1234);
  CHECK(of("ideal").send == 4'000);
  CHECK(of("ideal", "overhead=7,cycle_ps=2000").send == 14'000);
  CHECK(of("ideal", "overhead=7,send_ns=9").send == 9'000);
  CHECK(of("dcm", "send_ns=10").system_send == 10'000);
  CHECK(of("dcm", "forward_ns=3").forward == 3'000);
}

TEST_CASE("durations: what does not go with a model is refused", "[time]") {
  CHECK(refused("xswitch", "preset=gen2").find("preset=thgbnet|thnpc2") != std::string::npos);
  CHECK(refused("pcie", "forward_ns=3").find("store and forward") != std::string::npos);
  CHECK(refused("ideal", "preset=3").find("preset=loggp") != std::string::npos);
}
