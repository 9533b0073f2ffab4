// What a process asks of the launcher that started it, whichever protocol that speaks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace pmi {

class Launcher {
 public:
  virtual ~Launcher() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_size() const = 0;
  /// Which of the programs of its command line this is, from 0.
  virtual int program_number() const = 0;
  virtual std::string job_name() const = 0;
  /// Which ranks are on which host, as MPICH reads it: "(vector,(0,2,4))". Empty when the launcher does not say.
  virtual std::string mapping() const = 0;

  /// Known to the others after the next fence.
  virtual ulfm::Result<void> put(const std::string& key, const std::string& value) = 0;
  virtual std::optional<std::string> get(const std::string& key) = 0;
  /// Calls `done` when all processes of the job have come, perhaps in another thread. False when that cannot be.
  virtual void fence(std::function<void(bool)> done) = 0;
  /// Ends all processes of the job.
  virtual void abort(int code, const std::string& why) = 0;
  virtual void leave() = 0;
};

/// Errc::unavailable, with a sentence, where no PMIx server started this process or there is no libpmix.
ulfm::Result<std::unique_ptr<Launcher>> join_pmix();

/// "(vector,(0,1,2),(1,1,3))" for the number of ranks on each node in turn, when ranks go up from node to node; for
/// `node_of`, the node of each rank. Blocks as in the mapping that MPICH's process managers write.
std::string mapping_text(const std::vector<int>& node_of);

}  // namespace pmi
