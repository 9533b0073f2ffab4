#include "job/launcher.hpp"

#include <sys/socket.h>

#include <charconv>
#include <cstdlib>
#include <fstream>

#include <fmt/core.h>

#include "job/liveness.hpp"

namespace ulfm {
namespace {

// The process that made the connection to the launcher; 0 when there is none of that kind.
pid_t pid_behind_pmi() {
  const char* fd = std::getenv("PMI_FD");
  if (fd == nullptr || *fd == '\0') return 0;
  ucred peer{};
  socklen_t length = sizeof peer;
  const int rc = getsockopt(std::atoi(fd), SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return rc == 0 ? peer.pid : 0;
}

struct Facts {
  std::string name;
  pid_t parent = 0;
};

Facts facts_of(pid_t pid) {
  Facts facts;
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  for (std::string key; in >> key;) {
    if (key == "Name:") in >> facts.name;
    if (key == "PPid:") {
      in >> facts.parent;
      break;
    }
    std::string rest;
    std::getline(in, rest);
  }
  return facts;
}

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "";
}

Launcher process(pid_t pid) {
  const std::uint64_t started = start_time(pid);
  return {fmt::format("process.{}.{}", pid, started), pid, started};
}

}  // namespace

Result<Launcher> launcher_of_this_process() {
  const pid_t behind = pid_behind_pmi();
  const Facts facts = behind > 0 ? facts_of(behind) : Facts{};
  // Hydra has a proxy for each group of processes that it starts, so mpiexec, above them, stands for the job.
  if (facts.name == "hydra_pmi_proxy") return process(facts.parent > 1 ? facts.parent : behind);
  const std::string step = text_of("SLURM_STEP_ID");
  if (!step.empty()) return Launcher{fmt::format("slurm.{}.{}", text_of("SLURM_JOB_ID"), step)};
  if (const std::string space = text_of("PMIX_NAMESPACE"); !space.empty())
    return Launcher{fmt::format("pmix.{}", space)};
  if (behind > 0) return process(behind);
  if (const std::string place = text_of("PMI_PORT"); !place.empty()) return Launcher{fmt::format("port.{}", place)};
  return fail(Errc::unavailable, "no launcher has started this process");
}

int number_from_launcher(const char* variable) {
  const std::string text = text_of(variable);
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string started_in_vain() {
  if (std::getenv("PMI_FD") != nullptr || std::getenv("PMI_PORT") != nullptr) return {};
  const auto sentence = [](int processes, const char* launcher, const char* remedy) {
    return fmt::format(
        "{} has started {} processes, and each is a job of its own, because this MPI does not hear from "
        "it how they find each other: start them with {}",
        launcher, processes, remedy);
  };
  const auto all_if_first = [](const char* size, const char* rank) {
    return text_of(rank) == "0" ? number_from_launcher(size) : 0;
  };
  if (const int all = all_if_first("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"); all > 1)
    return sentence(all, "the mpirun of Open MPI", "ulfmrun, or with mpirun ulfm_pmi PROGRAM");
  // A batch script and what salloc starts have no SLURM_STEP_NUM_TASKS
  if (const int all = all_if_first("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"); all > 1)
    return sentence(all, "srun",
                    text_of("PMIX_RANK").empty() ? "srun --mpi=pmi2, or with ulfmrun"
                                                 : "srun --mpi=pmix ulfm_pmi, or with srun --mpi=pmi2");
  return {};
}

}  // namespace ulfm
