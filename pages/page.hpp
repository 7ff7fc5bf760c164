// An HTML page that is one file: no network, no library.
#pragma once

#include <string>
#include <string_view>

namespace sluice::pages {

extern const char* const kStyle;
extern const char* const kTraceScript;

std::string escape(std::string_view text);

struct Page {
  std::string title;
  std::string body;         // HTML
  std::string data;         // JSON that the script reads from the element #data; may be empty
  std::string_view script;  // may be empty
  bool wide = false;        // as wide as the window
};
std::string to_html(const Page& page);

// A cell of a table: a number with a bar behind it, as long as its share of the largest.
std::string bar_cell(double value, double largest, std::string_view text, std::string_view colour);

}  // namespace sluice::pages
