// The link guard: makes the linker refuse a program in which some object uses Asio without the
// tracking that others have. The file's name is the message, since linkers print the name of the
// object.
//
// With dial9::asio_tracking, Asio's thread_info_base bears another name (a definition on the
// command line). So only an object built without it defines the symbols below, as every object does
// that includes Asio; here they are thread-local, and no linker merges a thread-local definition
// with another. The other way round, tracked objects refer to the last symbol, which only this
// library has. Spec: docs/guide/asio.md, "Mixing".
// SPDX-License-Identifier: Apache-2.0
extern "C" {

__thread char dial9_guard_boost __asm__(
    "_ZN5boost4asio6detail10call_stackINS1_14thread_contextENS1_16thread_info_baseEE4top_E");
__thread char dial9_guard_standalone __asm__(
    "_ZN4asio6detail10call_stackINS0_14thread_contextENS0_16thread_info_baseEE4top_E");

extern const char dial9_error_asio_was_tracked_but__link_dial9_asio_tracking__is_missing;
const char dial9_error_asio_was_tracked_but__link_dial9_asio_tracking__is_missing = 1;
}
