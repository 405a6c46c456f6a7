// Reading, writing and syncing, of files and of sockets that block.
// SPDX-License-Identifier: Apache-2.0
#undef _FILE_OFFSET_BITS
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "interpose/wait.h"

DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, read, (int fd, void* bytes, size_t count),
                (fd, bytes, count))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, pread, (int fd, void* bytes, size_t count, off_t at),
                (fd, bytes, count, at))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, pread64,
                (int fd, void* bytes, size_t count, off64_t at), (fd, bytes, count, at))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, readv, (int fd, const iovec* parts, int count),
                (fd, parts, count))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, write, (int fd, const void* bytes, size_t count),
                (fd, bytes, count))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, pwrite,
                (int fd, const void* bytes, size_t count, off_t at), (fd, bytes, count, at))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, pwrite64,
                (int fd, const void* bytes, size_t count, off64_t at), (fd, bytes, count, at))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, writev, (int fd, const iovec* parts, int count),
                (fd, parts, count))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, fsync, (int fd), (fd))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, fdatasync, (int fd), (fd))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, flock, (int fd, int operation) noexcept, (fd, operation))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, recv, (int fd, void* bytes, size_t count, int flags),
                (fd, bytes, count, flags))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, recvmsg, (int fd, msghdr* message, int flags),
                (fd, message, flags))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, send,
                (int fd, const void* bytes, size_t count, int flags), (fd, bytes, count, flags))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, sendmsg, (int fd, const msghdr* message, int flags),
                (fd, message, flags))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, connect, (int fd, const sockaddr* to, socklen_t size),
                (fd, to, size))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, int, accept, (int fd, sockaddr* from, socklen_t* size),
                (fd, from, size))

// What a program built with _FORTIFY_SOURCE calls in their place.
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, __read_chk,
                (int fd, void* bytes, size_t count, size_t room), (fd, bytes, count, room))
DIAL9_INTERPOSE(kBlocks, -1, nullptr, ssize_t, __pread_chk,
                (int fd, void* bytes, size_t count, off_t at, size_t room),
                (fd, bytes, count, at, room))

namespace dial9::interpose {
extern const char files_anchor;
const char files_anchor = 1;
}  // namespace dial9::interpose
