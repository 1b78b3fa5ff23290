#include "ipc/module_hash.h"

#include <sodium.h>

namespace ipc {

ModuleHash HashOfModule(std::span<const std::byte> bytes) {
  static const int started = sodium_init();  // chooses what is fast on this processor
  (void)started;                             // without it, the hash is slower and the same
  ModuleHash hash;
  crypto_generichash(reinterpret_cast<unsigned char*>(hash.word), sizeof hash.word,
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return hash;
}

}  // namespace ipc
