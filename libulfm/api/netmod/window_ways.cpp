#include "api/netmod/window_ways.hpp"

#include <algorithm>

namespace ulfm::netmod {
namespace {

double per_byte(WindowWays::Nanoseconds time, std::size_t bytes) {
  return static_cast<double>(time.count()) / static_cast<double>(std::max<std::size_t>(bytes, 1));
}

}  // namespace

bool WindowWays::wants_reading(std::size_t bytes) const noexcept {
  const Class& c = classes_[size_class(bytes)];
  return c.copies > 0 ? c.read == 0 : c.left == 0;
}

void WindowWays::reading_took(std::size_t bytes, Nanoseconds time) noexcept {
  Class& c = classes_[size_class(bytes)];
  c.copies = kCopies;
  c.copy = 0;
  c.read = per_byte(time, bytes);
}

WindowWays::Way WindowWays::next(std::size_t bytes) noexcept {
  Class& c = classes_[size_class(bytes)];
  if (c.copies > 0) return kernel;
  --c.left;
  return c.way;
}

void WindowWays::copy_took(std::size_t bytes, Nanoseconds time) noexcept {
  Class& c = classes_[size_class(bytes)];
  if (c.copies == 0 || c.read == 0) return;
  const double cost = per_byte(time, bytes);
  c.copy = c.copy == 0 ? cost : std::min(c.copy, cost);
  if (--c.copies == 0) decide(c, bytes);
}

void WindowWays::decide(Class& c, std::size_t bytes) noexcept {
  const double messages_cost = c.read * kBehind + per_byte(kTrip, bytes);
  c.way = messages_cost < c.copy ? messages : kernel;
  c.read = 0;
  c.left = c.rest;
  c.rest = std::min(2 * c.rest, kMostRest);
}

}  // namespace ulfm::netmod
