// The key that processes show each other before they talk between hosts.
#pragma once

#include <string>

namespace ulfmrun {

/// The user's key, from ${XDG_CACHE_HOME:-~/.cache}/ulfm/job-key, which is made when it is not there and which nobody
/// else can read: so jobs of one user may connect to each other (MPI_Comm_connect), and nobody else to them. A fresh
/// one where there is no such folder, or where others could have written the file.
std::string key_of_user();

}  // namespace ulfmrun
