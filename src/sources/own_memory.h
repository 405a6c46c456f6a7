// Copies this process's memory whoever may unmap it meanwhile: always by the kernel, which answers
// an error instead of a signal. (The unwinder's own copies have another way out where that is
// denied, which is right for the calling thread's memory only.)
// Spec: docs/spec/off_cpu_samples.md, "A look".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dial9::internal {

class OwnMemory {
 public:
  // Copies up to `size` bytes at `address` to `to`; returns how many came before the first
  // unreadable page. By process_vm_readv; where that is denied, by /proc/self/mem.
  std::size_t copy(std::uint64_t address, void* to, std::size_t size);
  // Several places in one call: each of `remote` to `local`, `bytes` together. False: not all of
  // them; copy() tells which.
  bool copy_all(std::span<const iovec> local, std::span<const iovec> remote, std::size_t bytes);
  // errno of the last copy that failed whole.
  int error() const { return error_; }
  // Tests only: as if process_vm_readv were denied.
  void deny_direct() { is_direct_denied_ = true; }

 private:
  std::size_t copy_directly(std::uint64_t address, void* to, std::size_t size);
  std::size_t copy_by_file(std::uint64_t address, void* to, std::size_t size);

  bool is_direct_denied_ = false;
  int error_ = 0;
};

}  // namespace dial9::internal
