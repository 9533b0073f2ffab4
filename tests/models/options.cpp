// A model with an option that every model has by itself: it must be refused.
#include <ulfm/model.hpp>

namespace {
const ulfm::model::Option kOptions[] = {{"frame", 1, 2, 1}};
}

ULFM_MODEL({.name = "framed",
            .summary = "for tests",
            .topology = "single:4",
            .cycle_ns = 10,
            .options = kOptions,
            .option_count = 1,
            .bytes = [](const ulfm::model::Plan&) -> std::size_t { return 0; },
            .create = [](void*, const ulfm::model::Plan&) {},
            .attach = [](void*) -> ulfm::model::Interconnect* { return nullptr; }})
