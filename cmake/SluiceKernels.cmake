# The kernels, for each machine one instance file for each line of core/kernel_list.def and each type that quantize reads, one for
# the packing of weights of 4 bits, and the launch room.

set(list_file ${PROJECT_SOURCE_DIR}/src/core/kernel_list.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list_file})
file(STRINGS ${list_file} kernel_lines REGEX "^SLUICE_KERNEL\\(")

# sluice_instances(FOLDER EXTENSION OUT): the names of the generated files.
function(sluice_instances folder extension out)
  set(files)
  foreach(line IN LISTS kernel_lines)
    string(REGEX REPLACE "^SLUICE_KERNEL\\((.*)\\).*$" "\\1" name "${line}")
    string(REGEX REPLACE ", *" "_" name "${name}")
    set(file ${PROJECT_BINARY_DIR}/${folder}/gemm_${name}.${extension})
    file(CONFIGURE OUTPUT ${file} CONTENT "#include \"kernel/kernel_instance.cuh\"\n\n${line}\n" @ONLY)
    list(APPEND files ${file})
  endforeach()
  foreach(type bf16 fp16 fp32)
    set(file ${PROJECT_BINARY_DIR}/${folder}/quantize_${type}.${extension})
    file(CONFIGURE OUTPUT ${file} CONTENT "#include \"kernel/quantize/quantize_instance.cuh\"\n\nSLUICE_QUANTIZE_KERNELS(${type})\n" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set(file ${PROJECT_BINARY_DIR}/${folder}/w4_packing.${extension})
  file(CONFIGURE OUTPUT ${file} CONTENT "#include \"kernel/w4/w4_instance.cuh\"\n\nSLUICE_W4_KERNELS\n" @ONLY)
  list(APPEND files ${file})
  set(${out} ${files} PARENT_SCOPE)
endfunction()

set(launch_folders)
set(launch_links)
if(SLUICE_CUDA)
  # code=sm_90a alone: wgmma and setmaxnreg exist nowhere else, and nothing is compiled when a program starts.
  set(sluice_nvcc_flags --expt-relaxed-constexpr -gencode=arch=compute_90a,code=sm_90a)
  sluice_instances(instances cu instances)
  # ptxas says what each kernel costs, in ptxas/NAME.log; tests/compile_report reads it.
  add_library(sluice_kernels OBJECT ${instances})
  target_link_libraries(sluice_kernels PRIVATE sluice_room_kernel_headers)
  target_compile_options(sluice_kernels PRIVATE ${sluice_nvcc_flags} -Xptxas=-v)
  set_target_properties(sluice_kernels PROPERTIES CUDA_COMPILER_LAUNCHER "bash;${PROJECT_SOURCE_DIR}/cmake/keep_report.sh;${PROJECT_BINARY_DIR}/ptxas")
  set_property(GLOBAL APPEND PROPERTY SLUICE_ROOM_OBJECTS $<TARGET_OBJECTS:sluice_kernels>)
  list(APPEND launch_folders cuda)
  list(APPEND launch_links CUDA::cudart_static)
else()
  list(APPEND launch_folders without_cuda)
endif()

if(SLUICE_EMULATOR)
  sluice_instances(emulated_instances cpp instances)
  add_library(sluice_emulated_kernels OBJECT ${instances})
  target_link_libraries(sluice_emulated_kernels PRIVATE sluice_room_kernel_headers sluice_warnings)
  target_compile_options(sluice_emulated_kernels PRIVATE $<$<NOT:$<CONFIG:Debug>>:-g1>)  # lines for a debugger, in any build
  set_property(GLOBAL APPEND PROPERTY SLUICE_ROOM_OBJECTS $<TARGET_OBJECTS:sluice_emulated_kernels>)
  list(APPEND launch_folders emulator)
else()
  list(APPEND launch_folders without_emulator)
endif()

sluice_room(launch KNOWS kernel arch scheduler core FOLDERS ${launch_folders} LINKS ${launch_links})
target_compile_options(sluice_room_launch PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${sluice_nvcc_flags}>)
