#include "api/c_calls.hpp"

#include <string>

namespace sluice {
namespace {

constexpr bool same(sluice_status status, ErrorCode code) { return static_cast<int>(status) == static_cast<int>(code); }
static_assert(same(SLUICE_INVALID_ARGUMENT, ErrorCode::invalid_argument) && same(SLUICE_MISALIGNED, ErrorCode::misaligned) &&
              same(SLUICE_UNSUPPORTED, ErrorCode::unsupported) && same(SLUICE_TOO_LARGE, ErrorCode::too_large) &&
              same(SLUICE_WORKSPACE_TOO_SMALL, ErrorCode::workspace_too_small) && same(SLUICE_WRONG_DEVICE, ErrorCode::wrong_device) &&
              same(SLUICE_NOT_FOUND, ErrorCode::not_found) && same(SLUICE_BAD_FORMAT, ErrorCode::bad_format) &&
              same(SLUICE_IO, ErrorCode::io) && same(SLUICE_CUDA, ErrorCode::cuda) &&
              same(SLUICE_OUT_OF_MEMORY, ErrorCode::out_of_memory) && same(SLUICE_INTERNAL, ErrorCode::internal) &&
              same(SLUICE_EMULATION, ErrorCode::emulation));

// The message of a thread. Keeping it may itself run out of memory, for which there is a message that needs none.
class LastError {
 public:
  const char* text() const noexcept { return shown_; }
  void set(const char* message) noexcept {
    try {
      kept_ = message;
      shown_ = kept_.c_str();
    } catch (const std::exception&) {
      shown_ = "host memory ran out";
    }
  }

 private:
  std::string kept_;
  const char* shown_ = "";
};
thread_local LastError kept;

}  // namespace

const char* last_error() noexcept { return kept.text(); }

sluice_status fail(ErrorCode code, const char* message) noexcept {
  kept.set(message);
  return static_cast<sluice_status>(code);
}

Status check_threads(int32_t threads) {
  if (threads >= 0) return Nothing{};
  return Error{ErrorCode::invalid_argument, "threads = " + std::to_string(threads) + " is negative; pass 0 for all cores"};
}

Error null_pointer(const char* what) { return {ErrorCode::invalid_argument, std::string(what) + " is a null pointer; pass a valid one"}; }

}  // namespace sluice
