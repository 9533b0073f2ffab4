// Lines from the launcher.
#include "fuzz.hpp"
#include "job/pmi.hpp"

std::vector<std::string> fuzz_seeds() {
  return {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
          "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024", "cmd=get_result rc=0 msg=success value=a b c",
          "cmd=get_result rc=-1 msg=key_not_found value=unknown", "msg= value="};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto pairs = ulfm::parse_pmi_line({reinterpret_cast<const char*>(bytes), size});
  if (!pairs) must(pairs.error().what.size() < 300, "an error has a short text");
  else must(pairs->count("cmd") == 1 && pairs->count("") == 0, "a line has cmd and no empty keys");
  return 0;
}
