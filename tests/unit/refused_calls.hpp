// System calls that fail as they do on a machine that has run out of something.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace test {

/// From now on `call` (SYS_...) fails with `error` in every thread of this process, which has to be a child: there is
/// no way back. With `third`, only calls whose third argument is that. False where the kernel does not allow it.
inline bool refuse_call(long call, int error, long third = -1) {
  constexpr unsigned kThird = offsetof(seccomp_data, args[2]);  // its low half: both architectures are little-endian
  const unsigned past_third = third < 0 ? 2 : 0;
  const sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4),
      BPF_JUMP(BPF_JMP | BPF_JA, past_third, 0, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kThird),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(third), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof steps / sizeof *steps, const_cast<sock_filter*>(steps)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

}  // namespace test
