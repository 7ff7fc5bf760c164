# Installing: headers of include/sluice, libsluice shared and static, the command line tool, a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

option(SLUICE_INSTALL "Make install targets" ${PROJECT_IS_TOP_LEVEL})
if(NOT SLUICE_INSTALL)
  return()
endif()

# Before 1.0 a minor version may change the ABI, so it is part of the soname.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(sluice_abi_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(sluice_compatibility SameMinorVersion)
else()
  set(sluice_abi_version ${PROJECT_VERSION_MAJOR})
  set(sluice_compatibility SameMajorVersion)
endif()

# Only sluice:: and sluice_* leave the shared library: the CUDA runtime inside it must not meet the application's own.
set(sluice_exports ${CMAKE_CURRENT_LIST_DIR}/sluice-exports.map)
set_target_properties(sluice_shared PROPERTIES SOVERSION ${sluice_abi_version} LINK_DEPENDS ${sluice_exports})
target_link_options(sluice_shared PRIVATE LINKER:--version-script=${sluice_exports})

install(TARGETS sluice_shared sluice_static EXPORT sluice-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(sluice_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${sluice_cmake_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/package/sluice-config.cmake
                              INSTALL_DESTINATION ${sluice_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/sluice-config-version.cmake COMPATIBILITY ${sluice_compatibility})
install(FILES ${PROJECT_BINARY_DIR}/package/sluice-config.cmake ${PROJECT_BINARY_DIR}/package/sluice-config-version.cmake
        DESTINATION ${sluice_cmake_dir})

# The .pc file finds the prefix from where it lies, so that `cmake --install --prefix` and a moved tree both work.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE sluice_pc_up)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE sluice_pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE sluice_pc_includedir)
set(sluice_pc_private "-lstdc++ -lm -pthread")
if(SLUICE_CUDA)
  string(APPEND sluice_pc_private " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
if(SLUICE_EMULATOR)
  string(APPEND sluice_pc_private " -lboost_context")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/sluice.pc.in ${PROJECT_BINARY_DIR}/package/sluice.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/sluice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
