# A room is a folder of src/ with its own target. A target sees include/ and the rooms it names, and no other: each room's include
# folder holds a single link, rooms/NAME/NAME -> src/NAME, so that "core/problem.hpp" is found only by those who may know core.

find_package(Threads REQUIRED)

add_library(sluice_warnings INTERFACE)
target_compile_options(sluice_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wno-missing-field-initializers;-Wno-psabi>)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-omit-frame-pointer>)
  target_link_options(sluice_warnings INTERFACE -fsanitize=address,undefined)
endif()

# The public headers.
add_library(sluice_public INTERFACE)
target_include_directories(sluice_public INTERFACE ${PROJECT_SOURCE_DIR}/include)

# sluice_room(NAME KNOWS room... [FOLDERS folder...] [LINKS target...]): headers for those who may know the room, and, if src/NAME or one of
# its FOLDERS holds .cpp or .cu files, an object library sluice_room_NAME that becomes part of libsluice.
function(sluice_room name)
  cmake_parse_arguments(room "" "" "KNOWS;FOLDERS;LINKS" ${ARGN})
  set(patterns)
  foreach(folder . ${room_FOLDERS})
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/${name}/${folder}/*.cpp)
    if(SLUICE_CUDA)
      list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/${name}/${folder}/*.cu)
    endif()
  endforeach()
  file(GLOB room_sources CONFIGURE_DEPENDS ${patterns})
  set(visible ${PROJECT_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${visible})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${name} ${visible}/${name} SYMBOLIC)
  set(headers sluice_room_${name}_headers)
  add_library(${headers} INTERFACE)
  target_include_directories(${headers} INTERFACE ${visible})
  target_link_libraries(${headers} INTERFACE sluice_public)
  foreach(known IN LISTS room_KNOWS)
    target_link_libraries(${headers} INTERFACE sluice_room_${known}_headers)
  endforeach()
  if(room_sources)
    add_library(sluice_room_${name} OBJECT ${room_sources})
    target_link_libraries(sluice_room_${name} PRIVATE ${headers} sluice_warnings Threads::Threads ${room_LINKS})
    set_property(GLOBAL APPEND PROPERTY SLUICE_ROOM_OBJECTS $<TARGET_OBJECTS:sluice_room_${name}>)
  endif()
endfunction()
