#include "arch/emulated/shadow.hpp"

#include <algorithm>

namespace sluice::arch::emulated {

// The bytes of a cell that an access covers.
std::uint16_t ShadowMemory::mask(std::size_t cell, std::size_t offset, std::size_t bytes) {
  const std::size_t start = cell * kCellBytes;
  const std::size_t first = std::max(offset, start) - start, last = std::min(offset + bytes, start + kCellBytes) - start;
  return static_cast<std::uint16_t>(((1u << (last - first)) - 1) << first);
}

ShadowMemory::Verdict ShadowMemory::check_read(const Clock& actor, bool generic, std::size_t offset, std::size_t bytes,
                                               bool must_be_written) const {
  const Epoch* known = nullptr;  // neighbours mostly have the same writer
  for (std::size_t i = offset / kCellBytes; i * kCellBytes < offset + bytes; ++i) {
    const Cell& cell = cells_[i];
    if (known != nullptr && cell.write.agent == known->agent && cell.write.time == known->time && !cell.reserved) continue;
    if (cell.reserved) return {"touches a barrier as if it were data", cell.write.site};
    if (cell.write.time == 0) {
      if (must_be_written) return {"reads shared memory that nobody has written", 0};
      continue;
    }
    if ((generic ? actor.sees(cell.write) : actor.proxy_sees(cell.write))) {
      known = &cell.write;
      continue;
    }
    if (!generic && cell.write.generic && actor.sees(cell.write) && (cell.bytes_written & mask(i, offset, bytes)) != 0)
      return {"reads through the asynchronous proxy what ordinary stores have written, without a proxy fence by the writer after them",
              cell.write.site};
    if ((cell.bytes_written & mask(i, offset, bytes)) == 0) continue;  // neighbours in a cell
    if (actor.ordered(cell.write))
      return {"reads what it knows to be written but has not acquired: the barrier or flag between was relaxed", cell.write.site};
    return {cell.write.generic ? "reads what another thread is writing: no synchronisation lies between"
                               : "reads what a copy is still filling: no wait for its full barrier lies between",
            cell.write.site};
  }
  return {};
}

ShadowMemory::Verdict ShadowMemory::check_write(const Clock& actor, bool generic, std::size_t offset, std::size_t bytes, bool adds) const {
  for (std::size_t i = offset / kCellBytes; i * kCellBytes < offset + bytes; ++i) {
    const Cell& cell = cells_[i];
    if (cell.reserved) return {"touches a barrier as if it were data", cell.write.site};
    for (int r = 0; r < cell.readers; ++r) {
      const Reader& reader = cell.reader[static_cast<std::size_t>(r)];
      if ((reader.bytes & mask(i, offset, bytes)) == 0) continue;
      if (!actor.ordered(reader.who))
        return {"overwrites what another is still reading: nobody has said that the reading is over", reader.who.site};
      if (!generic && !actor.ended_for_proxy(reader.who))
        return {"overwrites what its own warp is still reading: no fence and no barrier lies between", reader.who.site};
    }
    if (cell.write.time == 0 || (adds && cell.write.adds)) continue;
    const bool known = generic || !cell.write.generic ? actor.ordered(cell.write) : actor.proxy_sees(cell.write);
    if (known) continue;
    if (generic == cell.write.generic && (cell.bytes_written & mask(i, offset, bytes)) == 0) continue;  // neighbours in a cell
    if (actor.ordered(cell.write))
      return {"overwrites through the asynchronous proxy what ordinary stores have written, without a proxy fence between",
              cell.write.site};
    return {"overwrites what another is still writing: no synchronisation lies between", cell.write.site};
  }
  return {};
}

void ShadowMemory::note_read(const Clock& actor, const Epoch& who, std::size_t offset, std::size_t bytes) {
  for (std::size_t i = offset / kCellBytes; i * kCellBytes < offset + bytes; ++i) {
    Cell& cell = cells_[i];
    Reader added{who, mask(i, offset, bytes)};
    int kept = 0;  // those that this one does not stand for
    for (int r = 0; r < cell.readers; ++r) {
      const Reader& reader = cell.reader[static_cast<std::size_t>(r)];
      if (reader.who.agent == who.agent && reader.who.time == who.time)
        added.bytes |= reader.bytes;
      else if ((reader.who.agent != who.agent || (reader.bytes & ~added.bytes) != 0) && !actor.ordered(reader.who))
        cell.reader[static_cast<std::size_t>(kept++)] = reader;
    }
    if (kept == static_cast<int>(cell.reader.size())) kept = 0;  // too many to remember: forget the oldest
    cell.reader[static_cast<std::size_t>(kept++)] = added;
    cell.readers = static_cast<std::uint8_t>(kept);
  }
}

void ShadowMemory::note_write(const Epoch& who, std::size_t offset, std::size_t bytes) {
  for (std::size_t i = offset / kCellBytes; i * kCellBytes < offset + bytes; ++i) {
    Cell& cell = cells_[i];
    const std::uint16_t written = mask(i, offset, bytes);
    const bool adds = who.generic == cell.write.generic && cell.write.time != 0 && (cell.bytes_written & written) == 0;
    cell.bytes_written = adds ? static_cast<std::uint16_t>(cell.bytes_written | written) : written;
    cell.write = who;
    int kept = 0;
    for (int r = 0; r < cell.readers; ++r)
      if (const Reader& reader = cell.reader[static_cast<std::size_t>(r)]; (reader.bytes & written) == 0)
        cell.reader[static_cast<std::size_t>(kept++)] = reader;
    cell.readers = static_cast<std::uint8_t>(kept);
  }
}

void ShadowMemory::reserve(std::size_t offset, std::size_t bytes) {
  for (std::size_t i = offset / kCellBytes; i * kCellBytes < offset + bytes; ++i) cells_[i].reserved = true;
}

}  // namespace sluice::arch::emulated
