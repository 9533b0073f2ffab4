#include "fabric/pointdesign/arena.hpp"

#include "fabric/kit/shelf.hpp"

namespace ulfm::fabric::pointdesign {

PointArena::PointArena(std::byte* base, const Parameters& p) : base_(base) {
  const CardGeometry g = p.geometry();
  cards_ = g.cards, nodes_ = g.nodes(), ports_ = nodes_ * g.ports(), lines_ = g.lines();
  minis_ = lines_ * (p.processors + 1), frames_ = p.frames, copies_ = p.copies;
  Shelf shelf;
  shelf.put<PointHeader>(1);
  cards_at_ = shelf.put<PointCard>(cards_);
  processors_at_ = shelf.put<Processor>(nodes_);
  ports_at_ = shelf.put<PointPort>(ports_);
  lines_at_ = shelf.put<Line>(lines_);
  minis_at_ = shelf.put<Mini>(minis_);
  messages_at_ = shelf.put<PointMessage>(frames_);
  copies_at_ = shelf.put<Copy>(copies_);
  heap_at_ = shelf.put<TimedCopy>(copies_);
  set_bytes_ = up_to_line(LineSet::bytes(lines_));
  sets_at_ = shelf.put_bytes(set_bytes_ * kSets);
  end_ = shelf.end();
}

}  // namespace ulfm::fabric::pointdesign
