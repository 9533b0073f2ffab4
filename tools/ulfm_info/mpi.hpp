// The MPI library of the installation this program belongs to.
#pragma once

#include <string>

namespace info {

struct MpiLibrary {
  std::string path;
  std::string version;   ///< what MPI_Get_library_version says
  bool is_ulfm = false;  ///< it was built with our netmod
  std::string problem;   ///< why the above is empty
};

/// Looks for ../lib/libmpi.so.12 from where this program stands, loads it and asks it. MPI is not initialised.
MpiLibrary find_mpi();

}  // namespace info
