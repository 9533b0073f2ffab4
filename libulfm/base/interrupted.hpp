// The thread that arrivals interrupt, in place of ending a watch.
#pragma once

#include <sys/types.h>

namespace ulfm {

/// Whom the doorbells of this process have signalled by those who ring, once after each Doorbell::watch(): a thread of
/// this process, or 0 for nobody. The signal is SIGURG, which does no harm to a process that does not handle it.
void set_interrupted_thread(pid_t thread) noexcept;

}  // namespace ulfm
