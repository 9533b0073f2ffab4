// Arguments of calls, and the error number each gets when it cannot be.
#pragma once

#include "node.hpp"

namespace nx2 {

/// 0 or an NX error number.
inline int check_process(const Node& node) noexcept { return node.engine()->ptype == kNoPtype ? EQNOSET : 0; }

inline int check_buffer(const void* buffer, std::int32_t count) noexcept {
  if (count < 0) return EQLEN;
  return buffer == nullptr && count != 0 ? EQPBUF : 0;
}

inline int check_place(const Node& node, std::int32_t place) noexcept {
  return place >= 0 && place < node.channel().places() ? 0 : EQNODE;
}

inline int check_send(const Node& node, std::int32_t type, const void* buffer, std::int32_t count, std::int32_t to,
                      std::int32_t ptype) noexcept {
  if (!is_user_type(type)) return EQTYPE;
  if (const int error = check_buffer(buffer, count)) return error;
  if (to != kAny)
    if (const int error = check_place(node, to)) return error;
  return ptype < kAny ? EQPID : check_process(node);
}

inline int check_receive(const Node& node, const void* buffer, std::int32_t count) noexcept {
  if (const int error = check_buffer(buffer, count)) return error;
  return check_process(node);
}

inline Outcome error_of(int error) noexcept { return {-1, error}; }

}  // namespace nx2
