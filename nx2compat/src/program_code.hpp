// Where the program may be interrupted: in its own code and in that of libraries that call us, unless one of the
// libraries that do not has called back; and in a function of the C library that only waits, called by the program.
// Any other library may hold a lock, or keep a list half changed, between two instructions.
#pragma once

#include <sys/types.h>

namespace nx2::program_code {

/// What a signal handler does when the program has come back; in that handler.
using OnReturn = void (*)();

/// Notes the code of the program and of the libraries that are loaded now. `on_return` is called on the calling
/// thread.
void find(OnReturn on_return) noexcept;

/// In a signal handler, with its ucontext_t.
bool may_interrupt(const void* context) noexcept;
/// In a function that waits and returns to `caller`, __builtin_return_address(0).
bool may_interrupt_caller(const void* caller) noexcept;

/// In a signal handler that found the program in a library: `on_return` is called once it is back, by taking its code
/// the right to be executed until then. Nothing happens when the program has handlers of its own that this would
/// disturb, or when the kernel refuses; then it is a matter of trying again.
void watch_return(const void* context) noexcept;
/// The program is back: its code may be executed. Cheap when nothing was taken away.
void returned() noexcept;

/// Gives the signal back that watch_return() uses.
void release() noexcept;

}  // namespace nx2::program_code
