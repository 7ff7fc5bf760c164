// Who touched which 16 bytes of memory last, to tell a race from an order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "arch/emulated/clock.hpp"

namespace sluice::arch::emulated {

class ShadowMemory {
 public:
  static constexpr int kCellBytes = 16;

  void reset(std::size_t bytes) {
    cells_.clear();
    cells_.resize((bytes + kCellBytes - 1) / kCellBytes);
  }
  bool empty() const { return cells_.empty(); }

  // What is wrong with an access, or null; `other` is then the site of the access that it collides with, 0 if there is none.
  struct Verdict {
    const char* wrong = nullptr;
    std::uint32_t other = 0;
  };

  // An access to bytes [offset, offset + bytes) by somebody who knows `actor`, checked against those before. `must_be_written`: reading
  // what nobody has written is wrong, too.
  Verdict check_read(const Clock& actor, bool generic, std::size_t offset, std::size_t bytes, bool must_be_written) const;
  Verdict check_write(const Clock& actor, bool generic, std::size_t offset, std::size_t bytes, bool adds = false) const;
  // And remembered for those after.
  void note_read(const Clock& actor, const Epoch& who, std::size_t offset, std::size_t bytes);
  void note_write(const Epoch& who, std::size_t offset, std::size_t bytes);

  // Belongs to a barrier from now on.
  void reserve(std::size_t offset, std::size_t bytes);

 private:
  static std::uint16_t mask(std::size_t cell, std::size_t offset, std::size_t bytes);

  struct Reader {
    Epoch who;
    std::uint16_t bytes = 0;
  };
  struct Cell {
    Epoch write;
    std::uint16_t bytes_written = 0;  // since others wrote
    bool reserved = false;
    std::uint8_t readers = 0;
    std::array<Reader, 4> reader;
  };
  std::vector<Cell> cells_;
};

}  // namespace sluice::arch::emulated
