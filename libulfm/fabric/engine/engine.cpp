#include "fabric/engine/engine.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "fabric/engine/discovery.hpp"

namespace ulfm::fabric {
namespace {

Result<void> check_alone(const FabricArena& arena) {
  if (arena.sizes().timed == 0) return {};
  const std::string trouble = progress_thread_trouble();
  return trouble.empty() ? Result<void>{} : fail(Errc::invalid, trouble);
}

}  // namespace

FabricEngine::FabricEngine(FabricArena arena, std::unique_ptr<Model> model)
    : arena_(std::move(arena)),
      model_(std::move(model)),
      wait_(WaitPolicy::for_processes(static_cast<int>(arena_.sizes().processes))),
      own_core_(wait_.has_own_core()),
      process_(arena_.header().engine_pid.load(std::memory_order_relaxed) != 0),
      pace_(model_->pace()),
      multicast_(model_->multicast()),
      back_pressure_(arena_.sizes().unread != 0 ? model_->back_pressure() : nullptr),
      pools_(model_->pools()),
      recovery_(model_->recovery()) {}

Result<std::unique_ptr<FabricEngine>> FabricEngine::over(Result<FabricArena> arena) {
  if (!arena) return fail(arena.error());
  auto kind = arena->kind();
  if (!kind) return fail(std::move(kind.error()));
  auto model = (*kind)->attach(arena->model(), arena->sizes().model_bytes);
  if (!model) return fail(model.error());
  return std::unique_ptr<FabricEngine>(new FabricEngine(std::move(*arena), std::move(*model)));
}

Result<std::unique_ptr<FabricEngine>> FabricEngine::join_as(Result<FabricArena> arena, std::uint32_t process) {
  auto engine = over(std::move(arena));
  if (!engine) return engine;
  FabricEngine& e = **engine;
  if (auto ok = check_alone(e.arena_); !ok) return fail(ok.error());
  if (auto ok = e.claim_endpoint(process); !ok) return fail(ok.error());
  if (e.arena_.sizes().timed == 0) return engine;
  if (e.model_->cycles() == nullptr)
    return fail(Errc::protocol,
                fmt::format("{}: the arena is of a job in virtual time, and its model cannot be", e.arena_.title()));
  e.clock_ = std::make_unique<VirtualClock>(e, e.arena_, *e.model_, e.self_);
  return engine;
}

Result<std::unique_ptr<FabricEngine>> FabricEngine::join() {
  auto arena = arena_of_this_job();
  if (!arena) wait_to_complain();
  const char* rank = std::getenv("PMI_RANK");
  if (rank == nullptr) rank = std::getenv("ULFM_FABRIC_RANK");  // of a pair that no launcher started
  return join_as(std::move(arena), rank != nullptr ? static_cast<std::uint32_t>(std::strtoul(rank, nullptr, 10)) : 0);
}

FabricEngine::~FabricEngine() {
  retire();
  clock_.reset();
  const std::string late = self_ == 0 ? how_late() : "";
  if (!late.empty()) std::fprintf(stderr, "ulfm: the %s %s\n", arena_.title().c_str(), late.c_str());
  if (self_ != kEngineProcess)
    arena_.endpoint(self_).state.store(EndpointState::left, std::memory_order_release);  // pairs with may_reuse()
}

void FabricEngine::submit(std::uint32_t slot) {
  slots_.queue(slot);
  if (clock_ == nullptr) return notify();
  arena_.header().pending[self_ / 64].fetch_or(std::uint64_t{1} << self_ % 64,
                                               std::memory_order_seq_cst);  // see take_in()
}

std::string FabricEngine::statistics() {
  if (!acquire()) return "";
  const ArenaHeader& h = arena_.header();
  std::string text =
      fmt::format("ulfm: stats {}: frames refused {} lost {}{}{}{}\n{}", arena_.title(), h.refused.load(),
                  h.lost.load(), model_->check_units() != 0 ? fmt::format(" damaged {}", h.damaged.load()) : "",
                  back_pressure_ != nullptr ? fmt::format(" held {}", h.stalls.load()) : "",
                  recovery_ != nullptr ? fmt::format(" recoveries {}", h.recoveries.load()) : "", model_->statistics());
  release();
  return text;
}

}  // namespace ulfm::fabric
