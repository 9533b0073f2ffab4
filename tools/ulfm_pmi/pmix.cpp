// PMIx, of Slurm (srun --mpi=pmix) and PRRTE (prterun). libpmix is opened when it is needed, so that the tool runs
// where there is none.
#include <cstring>
#include <map>

#include "launcher.hpp"

#ifdef ULFM_HAVE_PMIX
#include <dlfcn.h>
#include <pmix.h>

#include <fmt/core.h>

namespace pmi {
namespace {

using ulfm::Errc;
using ulfm::fail;

struct Library {
  decltype(&::PMIx_Init) init;
  decltype(&::PMIx_Finalize) finalize;
  decltype(&::PMIx_Abort) abort;
  decltype(&::PMIx_Put) put;
  decltype(&::PMIx_Get) get;
  decltype(&::PMIx_Commit) commit;
  decltype(&::PMIx_Fence_nb) fence_nb;
  decltype(&::PMIx_Resolve_nodes) resolve_nodes;
  decltype(&::PMIx_Resolve_peers) resolve_peers;
  decltype(&::PMIx_Error_string) error_string;
};

ulfm::Result<Library> open_library() {
  void* handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(Errc::unavailable,
                fmt::format("libpmix is not installed ({}); on Debian: apt install libpmix2", dlerror()));
  Library l{};
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  if (find(l.init, "PMIx_Init") && find(l.finalize, "PMIx_Finalize") && find(l.abort, "PMIx_Abort") &&
      find(l.put, "PMIx_Put") && find(l.get, "PMIx_Get") && find(l.commit, "PMIx_Commit") &&
      find(l.fence_nb, "PMIx_Fence_nb") && find(l.resolve_nodes, "PMIx_Resolve_nodes") &&
      find(l.resolve_peers, "PMIx_Resolve_peers") && find(l.error_string, "PMIx_Error_string"))
    return l;
  return fail(Errc::unavailable, "libpmix.so.2 has not the functions of PMIx 4");
}

pmix_info_t flag(const char* key) {
  pmix_info_t info{};
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = true;
  return info;
}

class Pmix final : public Launcher {
 public:
  explicit Pmix(const Library& library) : library_(library) {}

  ulfm::Result<void> join() {
    if (const pmix_status_t rc = library_.init(&self_, nullptr, 0); rc != PMIX_SUCCESS)
      return error("joining the job", rc);
    const auto size = number(PMIX_JOB_SIZE);
    if (size <= 0) return fail(Errc::protocol, "the launcher does not say how many processes the job has");
    size_ = size;
    local_size_ = number(PMIX_LOCAL_SIZE);
    program_number_ = number(PMIX_APPNUM, self_.rank, true);
    find_nodes();
    return {};
  }

  int rank() const override { return static_cast<int>(self_.rank); }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }
  int program_number() const override { return program_number_; }
  std::string job_name() const override { return self_.nspace; }
  std::string mapping() const override { return mapping_; }

  ulfm::Result<void> put(const std::string& key, const std::string& value) override {
    pmix_value_t text{};
    text.type = PMIX_STRING;
    text.data.string = const_cast<char*>(value.c_str());
    const pmix_status_t rc = library_.put(PMIX_GLOBAL, key.c_str(), &text);
    return rc == PMIX_SUCCESS ? ulfm::Result<void>{} : error("putting a value", rc);
  }

  // PMI-1 does not say who has put a key. Its number, if there is one, is a rank most of the time.
  std::optional<std::string> get(const std::string& key) override {
    const std::size_t digit = key.find_first_of("0123456789");
    const int likely = digit == key.npos ? -1 : std::atoi(key.c_str() + digit);
    if (likely >= 0 && likely < size_)
      if (auto value = get_of(static_cast<pmix_rank_t>(likely), key)) return value;
    for (int i = 0; i < size_; ++i)
      if (i != likely)
        if (auto value = get_of(static_cast<pmix_rank_t>(i), key)) return value;
    return std::nullopt;
  }

  void fence(std::function<void(bool)> done) override {
    static const pmix_info_t collect = flag(PMIX_COLLECT_DATA);
    auto* waiting = new std::function<void(bool)>(std::move(done));
    const auto called = [](pmix_status_t status, void* context) {
      std::unique_ptr<std::function<void(bool)>> function(static_cast<std::function<void(bool)>*>(context));
      (*function)(status == PMIX_SUCCESS);
    };
    pmix_status_t rc = library_.commit();
    if (rc == PMIX_SUCCESS) rc = library_.fence_nb(nullptr, 0, &collect, 1, called, waiting);
    if (rc != PMIX_SUCCESS) called(rc, waiting);
  }

  void abort(int code, const std::string& why) override { (void)library_.abort(code, why.c_str(), nullptr, 0); }
  void leave() override { (void)library_.finalize(nullptr, 0); }

 private:
  tl::unexpected<ulfm::Error> error(const char* what, pmix_status_t rc) const {
    return fail(Errc::system, fmt::format("PMIx: {}: {}", what, library_.error_string(rc)));
  }

  pmix_proc_t process(pmix_rank_t rank) const {
    pmix_proc_t other = self_;
    other.rank = rank;
    return other;
  }

  // Only what a fence has brought here: asking for a key that nobody puts would wait for it.
  std::optional<std::string> get_of(pmix_rank_t rank, const std::string& key) {
    static const pmix_info_t here = flag(PMIX_OPTIONAL);
    const pmix_proc_t of = process(rank);
    pmix_value_t* value = nullptr;
    if (library_.get(&of, key.c_str(), &here, 1, &value) != PMIX_SUCCESS || value == nullptr) return std::nullopt;
    std::optional<std::string> text;
    if (value->type == PMIX_STRING && value->data.string != nullptr) {
      text = value->data.string;
      std::free(value->data.string);
    }
    std::free(value);
    return text;
  }

  // 0 when the launcher does not say; `at_hand`: it is not waited for.
  int number(const char* key, pmix_rank_t rank = PMIX_RANK_WILDCARD, bool at_hand = false) const {
    static const pmix_info_t here = flag(PMIX_OPTIONAL);
    const pmix_proc_t of = process(rank);
    pmix_value_t* value = nullptr;
    const std::size_t conditions = at_hand ? 1 : 0;
    if (library_.get(&of, key, at_hand ? &here : nullptr, conditions, &value) != PMIX_SUCCESS || value == nullptr)
      return 0;
    const int found = value->type == PMIX_UINT32 ? static_cast<int>(value->data.uint32) : 0;
    std::free(value);
    return found;
  }

  void find_nodes() {
    char* list = nullptr;
    if (library_.resolve_nodes(self_.nspace, &list) != PMIX_SUCCESS || list == nullptr) return;
    std::vector<int> node_of(static_cast<std::size_t>(size_), -1);
    int node = 0;
    for (char* name = strtok(list, ","); name != nullptr; name = strtok(nullptr, ","), ++node) {
      pmix_proc_t* peers = nullptr;
      std::size_t count = 0;
      if (library_.resolve_peers(name, self_.nspace, &peers, &count) != PMIX_SUCCESS) continue;
      for (std::size_t i = 0; i < count; ++i)
        if (peers[i].rank < node_of.size()) node_of[peers[i].rank] = node;
      std::free(peers);
    }
    std::free(list);
    for (const int one : node_of)
      if (one < 0) return;
    mapping_ = mapping_text(node_of);
  }

  Library library_;
  pmix_proc_t self_{};
  int size_ = 0, local_size_ = 0, program_number_ = 0;
  std::string mapping_;
};

}  // namespace

ulfm::Result<std::unique_ptr<Launcher>> join_pmix() {
  auto library = open_library();
  if (!library) return fail(library.error());
  auto pmix = std::make_unique<Pmix>(*library);
  if (auto ok = pmix->join(); !ok) return fail(ok.error());
  return pmix;
}

}  // namespace pmi

#else

namespace pmi {

ulfm::Result<std::unique_ptr<Launcher>> join_pmix() {
  return ulfm::fail(ulfm::Errc::unavailable,
                    "this ULFM was built without PMIx; on Debian: apt install libpmix-dev, then ./dev setup");
}

}  // namespace pmi

#endif
