// A cursor over the pieces of a message, copied out in order as space allows.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/copy.hpp"

namespace ulfm {

class Gather {
 public:
  /// Writes the next `n` bytes of a message to `to`.
  using Fill = void (*)(void* message, void* to, std::size_t n);

  Gather() = default;
  explicit Gather(std::span<const iovec> pieces) : pieces_(pieces) {}
  /// `length` bytes that do not lie anywhere yet. They are only copied, each once: neither skip() nor pieces().
  Gather(Fill fill, void* message, std::size_t length)
      : pieces_(&kNoPiece, 1), fill_(fill), message_(message), left_(length) {}

  /// Copies the next `n` bytes to `to`; the caller asks for no more than remain.
  void copy(std::byte* to, std::size_t n) noexcept {
    if (in_one_piece(n)) [[likely]]
      copy_piece(to, n);
    else copy_several(to, n);
  }

  /// The next `n` bytes lie in one piece, so that copy_piece() will do.
  bool in_one_piece(std::size_t n) const noexcept { return n == 0 || n <= pieces_.front().iov_len - at_; }
  void copy_piece(std::byte* to, std::size_t n) noexcept {
    if (n == 0) return;
    copy_bytes(to, static_cast<const std::byte*>(pieces_.front().iov_base) + at_, n);
    at_ += n;  // perhaps the piece's end, where the next copy finds it
  }

  /// Goes past the next `n` bytes.
  void skip(std::size_t n) noexcept {
    while (n > 0) {
      const std::size_t here = std::min(n, pieces_.front().iov_len - at_);
      n -= here;
      at_ += here;
      if (at_ != pieces_.front().iov_len) continue;
      pieces_ = pieces_.subspan(1);
      at_ = 0;
    }
  }

  /// Where the next `n` bytes lie, as pieces for sendmsg(2): how many; 0 when they are in more pieces than `to` has.
  std::size_t pieces(std::span<iovec> to, std::size_t n) const noexcept {
    std::size_t count = 0, at = at_;
    for (const iovec& piece : pieces_) {
      const std::size_t here = std::min(n, piece.iov_len - at);
      if (here != 0) {
        if (count == to.size()) return 0;
        to[count++] = {static_cast<std::byte*>(piece.iov_base) + at, here};
      }
      n -= here;
      at = 0;
      if (n == 0) break;
    }
    return count;
  }

  std::size_t remaining() const noexcept {
    std::size_t sum = left_;
    for (const iovec& piece : pieces_) sum += piece.iov_len;
    return sum - at_;
  }

 private:
  static constexpr iovec kNoPiece{nullptr, 0};

  [[gnu::noinline]] void copy_several(std::byte* to, std::size_t n) noexcept {
    if (fill_ != nullptr) {
      left_ -= n;
      fill_(message_, to, n);
      return;
    }
    while (n > 0) {
      const iovec& piece = pieces_.front();
      const std::size_t here = std::min(n, piece.iov_len - at_);
      if (here != 0) copy_bytes(to, static_cast<const std::byte*>(piece.iov_base) + at_, here);
      to += here;
      n -= here;
      at_ += here;
      if (at_ == piece.iov_len) {
        pieces_ = pieces_.subspan(1);
        at_ = 0;
      }
    }
  }

  std::span<const iovec> pieces_;
  std::size_t at_ = 0;
  Fill fill_ = nullptr;
  void* message_ = nullptr;
  std::size_t left_ = 0;  // of what is filled in
};

}  // namespace ulfm
