#include "pages/page.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace sluice::pages {

std::string escape(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string to_html(const Page& page) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body{}>\n{}",
      escape(page.title), kStyle, page.wide ? " class=\"wide\"" : "", page.body);
  if (!page.data.empty()) {
    std::string data = page.data;  // what ends the element may not stand in it
    for (std::size_t at = data.find("</"); at != std::string::npos; at = data.find("</", at + 3)) data.replace(at, 2, "<\\/");
    html += "<script id=\"data\" type=\"application/json\">" + data + "</script>\n";
  }
  if (!page.script.empty()) html += "<script>\n" + std::string(page.script) + "</script>\n";
  return html + "</body>\n</html>\n";
}

std::string bar_cell(double value, double largest, std::string_view text, std::string_view colour) {
  const double percent = largest > 0 ? std::clamp(100 * value / largest, 0.0, 100.0) : 0;
  return fmt::format("<td class=\"bar\" style=\"background:linear-gradient(to right,{0} {1:.1f}%,transparent {1:.1f}%)\">{2}</td>", colour,
                     percent, escape(text));
}

}  // namespace sluice::pages
