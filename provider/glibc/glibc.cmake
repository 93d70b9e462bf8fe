# Links what is shipped against glibc 2.28, whatever the glibc of the machine that builds it: RHEL 8, Debian 10 and all that is newer can load it.
#
# dke_link_with_old_glibc(<target>) makes the linker find stubs of the C library, made from the list of its machine, instead of the machine's own:
# no code, only the names of 2.28 with their versions, in the libraries that they were in then. What the compiler and newer headers ask for
# beyond that is in shims.c and c23.c. The C++ library and the compiler's own are linked in. test/house/shipped-binaries.test.ts checks the result.
#
# For a machine without a list, and with sanitizers, which bring names of their own, it changes nothing.

# For static libraries of newer systems, also in programs that are not shipped.
add_library(dke_c23 STATIC ${CMAKE_CURRENT_LIST_DIR}/c23.c)
target_compile_options(dke_c23 PRIVATE ${DKE_UNPLACED})

set(DKE_GLIBC_SYMBOLS ${CMAKE_CURRENT_LIST_DIR}/${CMAKE_SYSTEM_PROCESSOR}.txt)
if(DKE_SANITIZE OR NOT EXISTS ${DKE_GLIBC_SYMBOLS})
  function(dke_link_with_old_glibc target)
  endfunction()
  return()
endif()

set(DKE_GLIBC_DIR ${CMAKE_CURRENT_BINARY_DIR}/glibc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${DKE_GLIBC_SYMBOLS})
enable_language(ASM)

# Of each library: what defines its names, and a version script with one node for each version.
file(STRINGS ${DKE_GLIBC_SYMBOLS} lines REGEX "^[^#]")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([^ ]+) ([^ ]+) (.*)$" _ "${line}")
  set(library ${CMAKE_MATCH_1})
  set(version ${CMAKE_MATCH_2})
  set(names "${CMAKE_MATCH_3}")
  list(APPEND libraries ${library})
  list(APPEND versions_${library} ${version})
  string(REGEX REPLACE "=[0-9]+" "" functions "${names}")
  string(REPLACE " " "; " functions "${functions}")
  string(APPEND node_${library}_${version} "  ${functions};\n")
  string(REGEX REPLACE "([^ =]+)=([0-9]+)" ".globl \\1\n.type \\1, %object\n.size \\1, \\2\n\\1: .zero \\2\n" code "${names}")
  string(REGEX REPLACE "(^|[ \n])([a-zA-Z0-9_]+)( |$)" "\\1.globl \\2\n.type \\2, %function\n\\2:\n" code "${code}")
  string(APPEND code_${library} "${code}\n")
endforeach()
list(REMOVE_DUPLICATES libraries)
set(DKE_GLIBC_LIBRARIES ${libraries})

foreach(library IN LISTS libraries)
  list(REMOVE_DUPLICATES versions_${library})
  set(script "")
  foreach(version IN LISTS versions_${library})
    string(APPEND script "${version} {\n${node_${library}_${version}}};\n")
  endforeach()
  file(CONFIGURE OUTPUT ${DKE_GLIBC_DIR}/${library}.map CONTENT "${script}" @ONLY)
  file(CONFIGURE OUTPUT ${DKE_GLIBC_DIR}/${library}.s CONTENT "${code_${library}}.section .note.GNU-stack,\"\",%progbits\n" @ONLY)
  add_library(${library} SHARED ${DKE_GLIBC_DIR}/${library}.s)
  set_target_properties(${library} PROPERTIES PREFIX "" SUFFIX "" NO_SONAME ON LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${DKE_GLIBC_DIR} LINK_DEPENDS ${DKE_GLIBC_DIR}/${library}.map)
  target_link_options(${library} PRIVATE -nostdlib -Wl,-soname=${library} -Wl,--version-script=${DKE_GLIBC_DIR}/${library}.map)
  list(APPEND stubs ${DKE_GLIBC_DIR}/${library})
endforeach()

add_library(dke_glibc_shims STATIC ${CMAKE_CURRENT_LIST_DIR}/shims.c ${CMAKE_CURRENT_LIST_DIR}/c23.c)
set_target_properties(dke_glibc_shims PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${DKE_GLIBC_DIR})
target_compile_definitions(dke_glibc_shims PRIVATE _GNU_SOURCE)
target_compile_options(dke_glibc_shims PRIVATE ${DKE_UNPLACED})

# What -lc and the others find: everything at once, of which only what is used is needed. First libc_nonshared.a, which has what glibc links into
# each program: functions that must know which one calls, such as pthread_atfork. libpthread has one of that name that does not.
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libc_nonshared.a OUTPUT_VARIABLE nonshared OUTPUT_STRIP_TRAILING_WHITESPACE)
list(JOIN stubs " " stubs)
foreach(name c pthread dl rt m)
  file(CONFIGURE OUTPUT ${DKE_GLIBC_DIR}/lib/lib${name}.so @ONLY
    CONTENT "GROUP ( ${nonshared} ${DKE_GLIBC_DIR}/libdke_glibc_shims.a AS_NEEDED ( ${stubs} ) )\n")
endforeach()

function(dke_link_with_old_glibc target)
  target_link_directories(${target} BEFORE PRIVATE ${DKE_GLIBC_DIR}/lib)
  target_link_options(${target} PRIVATE -static-libgcc $<$<LINK_LANGUAGE:CXX>:-static-libstdc++>)
  # CMake would have each program look for its libraries in the folder of the build, also where it is installed: any user of that system who
  # can create the folder could put a library of their own there.
  set_target_properties(${target} PROPERTIES SKIP_BUILD_RPATH ON)
  add_dependencies(${target} dke_glibc_shims ${DKE_GLIBC_LIBRARIES})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${DKE_GLIBC_DIR}/libdke_glibc_shims.a)
endfunction()
