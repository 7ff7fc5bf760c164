// Plots as plain SVG, for pages and for docs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::pages {

struct Point {
  double x = 0;
  double y = 0;
  std::string hint;  // under the mouse
};
struct Series {
  std::string name;
  std::string_view colour;
  std::vector<Point> points;
  bool line = false;  // else dots
};
struct Axis {
  std::string title;
  bool logarithmic = false;
  double begin = 0, end = 1;
};
struct Plot {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  std::vector<Point> marks;  // vertical lines at x, with the hint as their name
};
std::string to_svg(const Plot& plot);

struct Bar {
  std::string name;
  double value = 0;
};
// Horizontal bars, in the order given, from `base` on: those below it in another colour.
std::string bars_to_svg(const std::string& title, const std::vector<Bar>& bars, double base);

inline constexpr std::string_view kBlue = "#3b7dbd", kOrange = "#e8913a", kRed = "#d64545", kGrey = "#999999", kPurple = "#8d5fc0",
                                  kPaleBlue = "#bcd6ee", kPaleOrange = "#f7d8b5", kPaleGrey = "#e2e2e2", kPalePurple = "#dccdf0",
                                  kPaleGreen = "#cfe8cf", kPaleRed = "#f3c6c6", kPaleYellow = "#f6ebbd";

}  // namespace sluice::pages
