// The control channels of this process, for what happens to all of them at once: fork(), and an end without close().
#pragma once

#include <cstdint>

namespace ulfm::control {

struct Server;

/// From now on that server is notified of forks, and its peers of an end without close().
void enter(Server& server);
void leave(Server& server);

}  // namespace ulfm::control
