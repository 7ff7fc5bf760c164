// Errors as values. No function of Sluice throws; none crosses the C ABI with an exception.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace sluice {

enum class ErrorCode {
  invalid_argument = 1,  // a value that can never be right: negative size, short leading dimension, null pointer
  misaligned,            // a pointer or stride aligned worse than the plan was made for
  unsupported,           // legal, but no kernel of this library does it
  too_large,             // a size beyond what the kernels index
  workspace_too_small,
  wrong_device,  // the current GPU is not Hopper, or not the one the plan was made for
  not_found,     // unknown device name, missing file
  bad_format,    // a file (.npy, JSON) that does not hold what it should
  io,
  cuda,           // an error reported by the CUDA runtime or driver
  out_of_memory,  // host memory ran out (C ABI)
  internal,       // a defect of the library (C ABI)
  emulation,      // the emulator saw a kernel break a rule: a defect of the kernel
};

const char* to_string(ErrorCode code);

// The message names the value, the limit and the way out.
struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;
};

// A value or an Error. `value()` and `error()` may be called only on the side that is there.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(content_); }
  const T& value() const& { return std::get<0>(content_); }
  T&& value() && { return std::get<0>(std::move(content_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(content_); }

 private:
  std::variant<T, Error> content_;
};

struct Nothing {};
using Status = Result<Nothing>;

}  // namespace sluice
