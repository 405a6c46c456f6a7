# libdw of elfutils, which reads debug information: the target LibDW::LibDW, and LibDW_FOUND.
# -DCMAKE_DISABLE_FIND_PACKAGE_LibDW=ON builds as on a machine that lacks it.
# SPDX-License-Identifier: Apache-2.0
find_path(LibDW_INCLUDE_DIR elfutils/libdw.h)
find_library(LibDW_LIBRARY dw)
find_library(LibDW_ELF_LIBRARY elf)
mark_as_advanced(LibDW_INCLUDE_DIR LibDW_LIBRARY LibDW_ELF_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibDW REQUIRED_VARS LibDW_LIBRARY LibDW_ELF_LIBRARY LibDW_INCLUDE_DIR)
if(LibDW_FOUND AND NOT TARGET LibDW::LibDW)
  add_library(LibDW::LibDW INTERFACE IMPORTED)
  target_link_libraries(LibDW::LibDW INTERFACE "${LibDW_LIBRARY}" "${LibDW_ELF_LIBRARY}")
  target_include_directories(LibDW::LibDW SYSTEM INTERFACE "${LibDW_INCLUDE_DIR}")
endif()
