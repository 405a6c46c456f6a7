# What `cmake --install` lays down: headers, libraries, the package file and pkg-config.
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

# dial9::recorder is one name for the static libraries that a service links.
add_library(dial9_recorder_all INTERFACE)
target_link_libraries(dial9_recorder_all INTERFACE dial9_session dial9_recorder)
set_target_properties(dial9_recorder_all PROPERTIES EXPORT_NAME recorder)
add_library(dial9::recorder ALIAS dial9_recorder_all)

# In link order: each before what it uses.
set(dial9_installed dial9_session dial9_sources dial9_recorder dial9_format dial9_unwind dial9_elf dial9_base)
set(dial9_pc_libs "")
foreach(library ${dial9_installed})
  if(TARGET ${library})
    list(APPEND dial9_present ${library})
    string(APPEND dial9_pc_libs " -l${library}")
  endif()
endforeach()

foreach(library dial9_asio dial9_asio_tracking dial9_heap dial9_heap_parts dial9_interpose)
  if(TARGET ${library})
    list(APPEND dial9_present ${library})
  endif()
endforeach()
install(TARGETS dial9_recorder_all ${dial9_present} EXPORT dial9Targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/dial9)
install(EXPORT dial9Targets NAMESPACE dial9:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dial9)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/dial9" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(library dial9_heap_preload dial9_interpose_preload)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
if(TARGET dial9_cli)
  install(TARGETS dial9_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/dial9Config.cmake.in "${PROJECT_BINARY_DIR}/dial9Config.cmake"
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dial9)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/dial9ConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH dial9_pc_up "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
configure_file(cmake/dial9.pc.in "${PROJECT_BINARY_DIR}/dial9.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/dial9Config.cmake" "${PROJECT_BINARY_DIR}/dial9ConfigVersion.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dial9)
install(FILES "${PROJECT_BINARY_DIR}/dial9.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
