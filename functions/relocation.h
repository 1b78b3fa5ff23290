// Moves addresses of a recorded program to where its memory lies now.
//
// Memory moves by blocks: an address inside a recorded block keeps its distance from the block's
// begin. A number that points into no block is no address of the function's. In memory and in
// parameters of kernels, a word of 8 bytes at a multiple of 8 is an address when it points into a
// block; that a number only looks so is possible, which is why a recording is run and compared
// before it is kept.
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace functions {

class Relocation {
 public:
  // REQUIRES: [base, base + bytes) overlaps no block that was added before, and wraps nowhere.
  void Add(uint64_t base, uint64_t bytes, uint64_t now);

  // Whether [address, address + bytes) lies in one block. REQUIRES: bytes >= 1.
  bool Holds(uint64_t address, uint64_t bytes) const;
  // Where the address is now; itself, where it lies in no block.
  uint64_t Moved(uint64_t address) const;
  // Every word of 8 bytes that is an address.
  void Move(std::span<std::byte> words) const;

 private:
  struct Block {
    uint64_t bytes = 0;
    uint64_t now = 0;
  };
  std::map<uint64_t, Block> blocks_;  // by their recorded begin
};

}  // namespace functions
