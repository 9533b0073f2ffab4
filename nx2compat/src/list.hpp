// A list whose links lie in its elements: adding and removing costs no memory, and an element can be on the
// stack.
#pragma once

namespace nx2 {

struct Link {
  Link* before = nullptr;
  Link* after = nullptr;
  bool linked() const noexcept { return before != nullptr; }
  void unlink() noexcept {
    if (!linked()) return;
    before->after = after;
    after->before = before;
    before = after = nullptr;
  }
};

/// T derives from Link.
template <typename T>
class List {
 public:
  List() noexcept { ends_.before = ends_.after = &ends_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  bool empty() const noexcept { return ends_.after == &ends_; }
  T* first() noexcept { return at(ends_.after); }
  T* next(T& element) noexcept { return at(element.after); }
  void push_back(T& element) noexcept { insert(element, ends_); }
  /// In front of `later`; at the end when that is nullptr.
  void push_before(T& element, T* later) noexcept { insert(element, later != nullptr ? *later : ends_); }

 private:
  T* at(Link* link) noexcept { return link == &ends_ ? nullptr : static_cast<T*>(link); }
  static void insert(Link& element, Link& later) noexcept {
    element.before = later.before;
    element.after = &later;
    later.before->after = &element;
    later.before = &element;
  }
  Link ends_;
};

}  // namespace nx2
