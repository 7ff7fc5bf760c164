#include "pages/svg.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pages/page.hpp"

namespace sluice::pages {
namespace {

// In pixels.
constexpr double kWidth = 900, kHeight = 420, kLeft = 66, kRight = 20, kTop = 44, kBottom = 64;

std::string text(double x, double y, const char* anchor, std::string_view colour, std::string_view content) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, colour,
                     escape(content));
}

std::string opening(double height, const std::string& title) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "fill=\"#ffffff\"/>\n",
             kWidth, height) +
         fmt::format("<text x=\"{}\" y=\"22\" font-size=\"14\" fill=\"#222222\">{}</text>\n", kLeft, escape(title));
}

// From a number to its place, and the numbers that are written beside an axis.
class Scale {
 public:
  Scale(const Axis& axis, double from_px, double to_px) : axis_(axis), from_px_(from_px), to_px_(to_px) {}
  double px(double value) const { return from_px_ + share(value) * (to_px_ - from_px_); }
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (axis_.logarithmic) {
      for (double power = std::pow(10, std::floor(std::log10(axis_.begin))); power <= axis_.end; power *= 10)
        for (const double factor : {1.0, 2.0, 5.0})
          if (power * factor >= axis_.begin && power * factor <= axis_.end) all.push_back(power * factor);
      return all;
    }
    const double span = axis_.end - axis_.begin, power = std::pow(10, std::floor(std::log10(span / 5)));
    double step = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
      if (span / (power * factor) > 8) step = power * factor * 2;
    for (double tick = std::ceil(axis_.begin / step - 1e-9) * step; tick <= axis_.end + step * 1e-9; tick += step)
      all.push_back(tick + 0.0);  // not -0
    return all;
  }

 private:
  double share(double value) const {
    if (axis_.logarithmic) return std::log(value / axis_.begin) / std::log(axis_.end / axis_.begin);
    return (value - axis_.begin) / (axis_.end - axis_.begin);
  }
  const Axis& axis_;
  double from_px_, to_px_;
};

std::string axes(const Plot& plot, const Scale& x, const Scale& y) {
  std::string svg;
  for (const double tick : y.ticks()) {
    svg += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#dddddd\"/>\n", kLeft, y.px(tick), kWidth - kRight);
    svg += text(kLeft - 8, y.px(tick) + 4, "end", "#222222", fmt::format("{:.6g}", tick));
  }
  for (const double tick : x.ticks()) svg += text(x.px(tick), kHeight - kBottom + 18, "middle", "#222222", fmt::format("{:.6g}", tick));
  svg += text((kLeft + kWidth - kRight) / 2, kHeight - kBottom + 38, "middle", "#666666", plot.x.title);
  svg += fmt::format(
      "<text x=\"16\" y=\"{0:.1f}\" font-size=\"12\" text-anchor=\"middle\" fill=\"#666666\" transform=\"rotate(-90 16 "
      "{0:.1f})\">{1}</text>\n",
      (kTop + kHeight - kBottom) / 2, escape(plot.y.title));
  return svg;
}

std::string draw(const Series& series, const Scale& x, const Scale& y) {
  std::string svg;
  if (series.line) {
    svg += "<path fill=\"none\" stroke-width=\"1.5\" stroke=\"" + std::string(series.colour) + "\" d=\"";
    for (std::size_t i = 0; i < series.points.size(); ++i)
      svg += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x.px(series.points[i].x), y.px(series.points[i].y));
    svg += "\"/>\n";
  }
  for (const Point& point : series.points)
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"0.75\"><title>{}</title></circle>\n",
                       x.px(point.x), y.px(point.y), series.line ? "2.5" : "3.5", series.colour, escape(point.hint));
  return svg;
}

}  // namespace

std::string to_svg(const Plot& plot) {
  const Scale x(plot.x, kLeft, kWidth - kRight), y(plot.y, kHeight - kBottom, kTop);
  std::string svg = opening(kHeight, plot.title) + axes(plot, x, y);
  for (const Point& mark : plot.marks) {
    svg +=
        fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#999999\" stroke-dasharray=\"4 3\"/>\n", x.px(mark.x), kTop, kHeight - kBottom);
    svg += text(x.px(mark.x) + 3, kTop + 10, "start", "#666666", mark.hint);
  }
  double legend = kLeft;
  for (const Series& series : plot.series) {
    svg += draw(series, x, y);
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", legend, kHeight - 18, series.colour);
    svg += text(legend + 15, kHeight - 9, "start", "#222222", series.name);
    legend += 32 + 7 * static_cast<double>(series.name.size());
  }
  return svg + "</svg>\n";
}

std::string bars_to_svg(const std::string& title, const std::vector<Bar>& bars, double base) {
  constexpr double kBarsLeft = 190, kPitch = 15;
  double least = base, most = base;
  for (const Bar& bar : bars) {
    least = std::min(least, bar.value);
    most = std::max(most, bar.value);
  }
  const double room = 0.06 * std::max(most - least, 1e-9);
  const Axis axis{.title = "", .begin = least - room, .end = most + room};
  const Scale x(axis, kBarsLeft, kWidth - kRight);
  const double height = kTop + kPitch * static_cast<double>(bars.size()) + 30;
  std::string svg = opening(height, title);
  double y = kTop;
  for (const Bar& bar : bars) {
    const double from = std::min(x.px(base), x.px(bar.value)), length = std::abs(x.px(bar.value) - x.px(base));
    svg += text(kBarsLeft - 8, y + 10, "end", "#222222", bar.name);
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}: {:.3f}</title></rect>\n",
                       from, y, std::max(length, 0.5), kPitch - 3, bar.value < base ? kOrange : kBlue, escape(bar.name), bar.value);
    y += kPitch;
  }
  for (const double tick : x.ticks()) {
    svg += fmt::format("<path d=\"M{:.1f} {}V{:.1f}\" stroke=\"{}\"/>\n", x.px(tick), kTop - 4, y,
                       std::abs(tick - base) < 1e-9 ? "#222222" : "#dddddd");
    svg += text(x.px(tick), y + 16, "middle", "#222222", fmt::format("{:.3g}", tick));
  }
  return svg + "</svg>\n";
}

}  // namespace sluice::pages
