// The rules of routing, one source node at a time.
#pragma once

#include "fabric/topology/topology.hpp"

namespace ulfm::fabric {

/// Finds the ways from one node after another. A pure function of topology and dead links: start() forgets
/// what was before. One thread at a time.
///
/// *Mesh and torus* whose links between switches all work: dimension order, along the row first, so that no
/// dependency leads back from columns to rows (Dally and Seitz 1987). A ring of a torus would be a cycle in
/// itself; it is opened at one switch, which ways may begin or end at but not pass. Rings are opened at
/// different places, for the load.
///
/// *Grids* of other dimensions and *hyperX*: the same, see dimension_way(). *Fat trees*: up*/down* by their levels.
///
/// *Cube*: the e-cube algorithm, rising dimensions (Sullivan and Bashkow 1977; Nugent 1988).
///
/// *Generalized hypercube*: rising sections, and any shortest way round what is dead, as the point design has it.
///
/// *Everywhere else* up*/down* (Schroeder et al., Autonet, 1991): switches are ranked by a breadth-first
/// search from the one that is nearest to all others; a way goes up, towards lower ranks, for as long as it
/// likes, then only down. A cycle of channels would have a turn from down to up.
///
/// Why a torus is not left to up*/down*: ways are equally long on average, but all routes of 8x8 put 259 on
/// the busiest channel instead of 104. Without its closing links, as a mesh, ways are longer: 6.33 switches
/// instead of 5.57.
class Router {
 public:
  Router(const Topology& topology, const DeadPorts& dead);

  /// Takes that node as the source.
  void start(std::uint32_t node);
  /// Switches on the way to that node; 0: no way, or the source itself.
  std::uint32_t length(std::uint32_t to) const;
  /// The way to that node. Of equally short ones the next in turn: ask for nodes in rising order, each once.
  void way(std::uint32_t to, Route& out);

  /// Rank of each switch, lower is further up; empty where no way asks for it.
  const std::vector<std::uint32_t>& ranks() const { return rank_; }

  /// A link between switches is dead.
  bool detours() const { return detours_; }

 private:
  enum Phase : std::uint32_t { kRising, kFalling };  // may still go up; only down
  static constexpr std::uint32_t kFar = ~std::uint32_t{0};

  std::size_t channel(SwitchPort p) const { return std::size_t{p.at} * topology_.ports + p.port; }
  std::size_t state(std::uint32_t at, Phase phase) const { return std::size_t{at} * 2 + phase; }
  bool leads_on(SwitchPort p) const {
    return !dead_[channel(p)] && topology_.end(p).kind == LinkEnd::Kind::switch_port;
  }
  /// In a generalized hypercube every way does: its cards store what passes, and cannot deadlock.
  bool rises(std::uint32_t from, std::uint32_t to) const { return rank_.empty() || rank_[to] < rank_[from]; }
  bool attached(std::uint32_t node) const { return !dead_[channel(topology_.attachment[node])]; }
  void mark_dead(const DeadPorts& dead);
  void rank_switches();
  void rank_by_level();
  void search(std::uint32_t from);
  /// Part of a way along a row or a column.
  struct Leg {
    std::uint32_t links = 0;
    bool forward = false;  // east or south
  };
  Leg leg(std::uint32_t from, std::uint32_t to, std::uint32_t size, std::uint32_t ring, bool even) const;
  Leg along_row(std::uint32_t to) const;
  Leg along_column(std::uint32_t to) const;
  void in_dimension_order(std::uint32_t to, Route& out) const;
  std::uint32_t dimensions(std::uint32_t to) const;
  std::uint32_t sections(std::uint32_t to) const;
  void back_from(std::uint32_t to, Route& out);

  const Topology& topology_;
  std::vector<bool> dead_;  // by channel, both ends of a link
  bool detours_ = false;
  bool ordered_ = false;                 // dimension order
  std::vector<std::uint32_t> rank_;      // by switch; lower is further up
  std::uint32_t node_ = 0;               // the source
  std::uint32_t searched_from_ = kFar;   // the switch that distance_ is for
  std::vector<std::uint32_t> distance_;  // by state: links from the source
  std::vector<std::uint32_t> queue_;     // scratch of the search
  std::vector<std::uint32_t> used_;      // by channel: ways of this source so far
};

}  // namespace ulfm::fabric
