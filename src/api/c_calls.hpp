// What every function of the C interface does: no exception gets past it, and a failure leaves its message with the thread.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "sluice/sluice.h"

#include "sluice/error.hpp"

#include "api/c_structs.hpp"

namespace sluice {

const char* last_error() noexcept;  // of this thread
sluice_status fail(ErrorCode code, const char* message) noexcept;
Error null_pointer(const char* what);
Status check_threads(int32_t threads);  // 0 takes all cores

// Runs one call of the C++ API. No exception gets past here.
template <class F>
sluice_status guarded(F&& call) noexcept {
  try {
    const Status status = call();
    return status ? SLUICE_OK : fail(status.error().code, status.error().message.c_str());
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "host memory ran out");
  } catch (const std::exception& e) {
    return fail(ErrorCode::internal, e.what());
  } catch (...) {
    return fail(ErrorCode::internal, "an unknown exception");
  }
}

template <class C>
sluice_status init(C* structure, std::size_t struct_size) noexcept {
  return guarded([&]() -> Status {
    if (structure == nullptr) return null_pointer(kStructName<C>);
    return fill_in_defaults(*structure, struct_size);
  });
}

}  // namespace sluice
