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

std::optional<TypePair> parse_type_pair(std::string_view text) {
  const std::size_t comma = text.find_first_of(",x");
  const std::optional<DataType> a = parse_data_type(text.substr(0, comma));
  const std::optional<DataType> b = comma == std::string_view::npos ? a : parse_data_type(text.substr(comma + 1));
  if (!a || !b || a == DataType::fp32 || b == DataType::fp32) return std::nullopt;
  return TypePair{*a, *b};
}

std::string words(DataType a, DataType b) {
  std::string text = to_string(a);
  if (a != b) text += std::string(",") + to_string(b);
  return text;
}

std::string letters(Layout a, Layout b) { return {letter_of(a), letter_of(b)}; }

}  // namespace sluice::cli
