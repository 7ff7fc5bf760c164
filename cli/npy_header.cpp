#include "npy_header.hpp"

#include <charconv>
#include <optional>
#include <set>

#include <fmt/core.h>

namespace sluice::cli {
namespace {

constexpr int kDeepestNesting = 16;

// Reads one token or value after another. A function that returns false or nullopt has found something else.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  bool take(char wanted) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  bool at_end() {
    skip_space();
    return position_ == text_.size();
  }

  std::optional<std::string> take_string() {
    skip_space();
    if (position_ >= text_.size() || (text_[position_] != '\'' && text_[position_] != '"')) return std::nullopt;
    const char quote = text_[position_];
    std::string content;
    for (std::size_t at = position_ + 1; at < text_.size(); ++at) {
      if (text_[at] == quote) {
        position_ = at + 1;
        return content;
      }
      if (text_[at] == '\\' && ++at == text_.size()) break;
      content += text_[at];
    }
    return std::nullopt;
  }

  std::optional<bool> take_bool() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    return std::nullopt;
  }

  // A Python 2 writer may have left an L behind the digits.
  std::optional<std::int64_t> take_integer() {
    skip_space();
    std::int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (problem != std::errc{}) return std::nullopt;
    position_ += static_cast<std::size_t>(end - begin);
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;
    return value;
  }

  std::optional<std::vector<std::int64_t>> take_tuple() {
    if (!take('(')) return std::nullopt;
    std::vector<std::int64_t> values;
    while (!take(')')) {
      const std::optional<std::int64_t> value = take_integer();
      if (!value) return std::nullopt;
      values.push_back(*value);
      if (take(',')) continue;
      // One number in parentheses without a comma is not a tuple.
      if (values.size() < 2 || !take(')')) return std::nullopt;
      break;
    }
    return values;
  }

  // Any nested list or tuple, as its text.
  std::optional<std::string> take_nested() {
    skip_space();
    const std::size_t begin = position_;
    if (!skip_value(0)) return std::nullopt;
    return std::string(text_.substr(begin, position_ - begin));
  }

  std::string_view rest() {
    skip_space();
    return text_.substr(position_, 20);
  }

 private:
  void skip_space() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n' || text_[position_] == '\t')) ++position_;
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }

  bool skip_value(int depth) {
    if (depth > kDeepestNesting) return false;
    for (const auto& [open, close] : {std::pair{'[', ']'}, {'(', ')'}}) {
      if (!take(open)) continue;
      while (!take(close)) {
        if (!skip_value(depth + 1)) return false;
        if (!take(',')) return take(close);
      }
      return true;
    }
    return take_string() || take_bool() || take_integer();
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

Error bad(std::string message) { return {ErrorCode::bad_format, std::move(message)}; }

Status read_value(LiteralReader& reader, const std::string& key, NpyHeader& header) {
  if (key == "descr") {
    if (const auto text = reader.take_string()) {
      header.descr = *text;
      return Nothing{};
    }
    header.descr_is_string = false;
    const auto nested = reader.take_nested();
    if (!nested) return bad(fmt::format("'descr' is not a type (at \"{}\")", reader.rest()));
    header.descr = *nested;
    return Nothing{};
  }
  if (key == "fortran_order") {
    const auto value = reader.take_bool();
    if (!value) return bad(fmt::format("'fortran_order' must be True or False (at \"{}\")", reader.rest()));
    header.fortran_order = *value;
    return Nothing{};
  }
  if (key == "shape") {
    auto value = reader.take_tuple();
    if (!value) return bad(fmt::format("'shape' must be a tuple of integers (at \"{}\")", reader.rest()));
    header.shape = std::move(*value);
    return Nothing{};
  }
  return bad(fmt::format("unknown key '{}'; the format has 'descr', 'fortran_order' and 'shape'", key));
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text) {
  LiteralReader reader(text);
  NpyHeader header;
  std::set<std::string> seen;
  if (!reader.take('{')) return bad(fmt::format("a dictionary must begin with '{{' (at \"{}\")", reader.rest()));
  while (!reader.take('}')) {
    const auto key = reader.take_string();
    if (!key) return bad(fmt::format("a quoted key is missing (at \"{}\")", reader.rest()));
    if (!seen.insert(*key).second) return bad(fmt::format("key '{}' is there twice", *key));
    if (!reader.take(':')) return bad(fmt::format("':' is missing behind key '{}'", *key));
    if (Status s = read_value(reader, *key, header); !s) return s.error();
    if (reader.take(',')) continue;
    if (!reader.take('}')) return bad(fmt::format("',' or '}}' is missing (at \"{}\")", reader.rest()));
    break;
  }
  if (!reader.at_end()) return bad(fmt::format("something follows the dictionary (at \"{}\")", reader.rest()));
  for (const char* key : {"descr", "fortran_order", "shape"})
    if (!seen.contains(key)) return bad(fmt::format("key '{}' is missing", key));
  for (const std::int64_t extent : header.shape)
    if (extent < 0) return bad(fmt::format("'shape' holds the negative extent {}", extent));
  return header;
}

}  // namespace sluice::cli
