// The curves as a picture.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report.hpp"

namespace sim {
namespace {

constexpr double kWidth = 760, kHeight = 480, kLeft = 76, kRight = 24, kTop = 56, kBottom = 62;
constexpr const char* kColours[] = {"#27496d", "#cf3f36", "#4f8a3c", "#8d5fb0",
                                    "#c98a1b", "#2a9aa0", "#7a4b3a", "#5b6b7c"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

/// A round number of about that size, for the lines of a scale.
double round_step(double size) {
  const double power = std::pow(10, std::floor(std::log10(size))), digits = size / power;
  return power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
}

class Chart {
 public:
  explicit Chart(const Curves& curves) : curves_(curves) {
    double lowest = 1e300;
    for (const auto& curve : curves)
      for (const Row& row : curve->rows) {
        most_x_ = std::max(most_x_, row.offered);
        if (row.messages > 0) lowest = std::min(lowest, row.latency.mean);
        if (row.settled) most_y_ = std::max(most_y_, row.latency.mean);
      }
    // What has not settled rises without bound: it leaves the picture at the top.
    most_y_ = std::max(most_y_ * 1.15, lowest < 1e300 ? lowest * 6 : 10);
  }

  std::string text() {
    text_ = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
        "height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n<style>text {{ font-family: \"Inter\", \"Helvetica Neue\", \"DejaVu "
        "Sans\", sans-serif; font-size: 12px; fill: #3a4a5a }} .grid {{ stroke: #e2e7ec }} .axis {{ stroke: #8296ab; "
        "fill: none }} .curve {{ fill: none; stroke-width: 2.2 }} .title {{ font-size: 16px; font-weight: 600 "
        "}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fbfcfd\"/>\n",
        kWidth, kHeight);
    const Setting& s = curves_.front()->setting;
    text_ += fmt::format("<text class=\"title\" x=\"{}\" y=\"30\">{}</text>\n", kLeft,
                         escaped(curves_.size() > 1 ? "Latency and offered load"
                                                    : fmt::format("{}, {}, {}", s.transport, s.topology, s.pattern)));
    scales();
    for (std::size_t i = 0; i < curves_.size(); ++i) curve(i);
    return fmt::format("{}</svg>\n", text_);
  }

 private:
  double x(double value) const { return kLeft + value / most_x_ * (kWidth - kLeft - kRight); }
  double y(double value) const { return kHeight - kBottom - value / most_y_ * (kHeight - kTop - kBottom); }

  void scales() {
    const double step_x = round_step(most_x_ / 8), step_y = round_step(most_y_ / 6);
    for (double value = 0; value <= most_x_ * 1.0001; value += step_x)
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1} V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4:.4g}</text>\n",
          x(value), kTop, kHeight - kBottom, kHeight - kBottom + 18, value);
    for (double value = 0; value <= most_y_; value += step_y)
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0} {1:.1f} H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5:.4g}</text>\n",
          kLeft, y(value), kWidth - kRight, kLeft - 8, y(value) + 4, value);
    text_ += fmt::format("<path class=\"axis\" d=\"M{0} {1} V{2} H{3}\"/>\n", kLeft, kTop, kHeight - kBottom,
                         kWidth - kRight);
    text_ +=
        fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">offered load, {}s a node and cycle</text>\n",
                    (kLeft + kWidth - kRight) / 2, kHeight - 18, curves_.front()->subject->unit());
    text_ += fmt::format(
        "<text transform=\"translate(20 {:.0f}) rotate(-90)\" text-anchor=\"middle\">mean latency, cycles</text>\n",
        (kTop + kHeight - kBottom) / 2);
  }

  void curve(std::size_t i) {
    const Curve& c = *curves_[i];
    const char* const colour = kColours[i % std::size(kColours)];
    std::string path, dots;
    for (const Row& row : c.rows) {
      if (row.messages == 0) continue;
      const bool inside = row.latency.mean <= most_y_;
      const double at_y = y(std::min(row.latency.mean, most_y_));
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x(row.offered), at_y);
      if (inside)
        dots += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.2\" fill=\"{}\" stroke=\"{}\"><title>{:.4f}: "
            "{:.1f} cycles{}</title></circle>",
            x(row.offered), at_y, row.settled ? colour : "#fbfcfd", colour, row.offered, row.latency.mean,
            row.settled ? "" : ", not settled");
      else break;
    }
    text_ += fmt::format("<path class=\"curve\" stroke=\"{}\" d=\"{}\"/>{}\n", colour, path, dots);
    if (c.bound.rate > 0 && c.bound.rate <= most_x_ && curves_.size() == 1)
      text_ += fmt::format(
          "<path d=\"M{0:.1f} {1} V{2}\" stroke=\"{3}\" stroke-dasharray=\"5 4\"/><text x=\"{4:.1f}\" y=\"{5}\" "
          "text-anchor=\"end\">bound {6:.3f}</text>\n",
          x(c.bound.rate), kTop, kHeight - kBottom, colour, x(c.bound.rate) - 5, kTop + 12, c.bound.rate);
    if (c.label.empty()) return;
    const double line = kTop + 14 + 18 * static_cast<double>(i);
    text_ += fmt::format(
        "<path d=\"M{0} {1:.1f} h22\" stroke=\"{2}\" stroke-width=\"2.6\"/><text x=\"{3}\" y=\"{4:.1f}\">{5}</text>\n",
        kLeft + 12, line - 4, colour, kLeft + 40, line, escaped(c.label));
  }

  const Curves& curves_;
  double most_x_ = 1e-9, most_y_ = 0;
  std::string text_;
};

}  // namespace

std::string svg_of(const Curves& curves) { return Chart(curves).text(); }

}  // namespace sim
