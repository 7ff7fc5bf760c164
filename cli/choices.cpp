#include "choices.hpp"

namespace sluice::cli {
namespace {

std::optional<Layout> layout_of(char letter) {
  if (letter == 'r') return Layout::row_major;
  if (letter == 'c') return Layout::column_major;
  return std::nullopt;
}

char letter_of(Layout layout) { return layout == Layout::row_major ? 'r' : 'c'; }

}  // namespace

std::optional<LayoutPair> parse_layout_pair(std::string_view text) {
  if (text.size() != 2) return std::nullopt;
  const std::optional<Layout> a = layout_of(text[0]), b = layout_of(text[1]);
  if (!a || !b) return std::nullopt;
  return LayoutPair{*a, *b};
}

std::optional<DataType> parse_input_type(std::string_view text) {
  const std::optional<DataType> type = parse_data_type(text);
  return type == DataType::fp32 ? std::nullopt : type;
}

std::string letters(Layout a, Layout b) { return {letter_of(a), letter_of(b)}; }

}  // namespace sluice::cli
