// Files of tensors as Hugging Face keeps them: https://github.com/huggingface/safetensors#format. Eight bytes of little-endian length, a
// JSON object of so many bytes, and the data of all tensors behind one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sluice/error.hpp"

namespace sluice::cli {

struct SafeTensor {
  std::string name;
  std::string dtype;  // as the format writes it: "F16", "BF16", "I32", ...
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes of the data
};

struct SafetensorsFile {
  std::string path;
  std::uint64_t data_begin = 0;     // byte of the file
  std::vector<SafeTensor> tensors;  // as their data lie
  std::vector<std::pair<std::string, std::string>> metadata;

  const SafeTensor* find(const std::string& name) const;
};

// Reads the header and believes none of it: a tensor's bytes must lie in the file, be as many as its type and shape make, and overlap no
// other's; together they are all there is.
Result<SafetensorsFile> open_safetensors(const std::string& path);

Result<std::vector<std::byte>> read_tensor(const SafetensorsFile& file, const SafeTensor& tensor);

}  // namespace sluice::cli
