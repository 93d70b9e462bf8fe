# CMake's toolchain for AArch64: Debian's cross compiler, with headers and static libraries of the system that DKE_SYSTEM names (cross.sh).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# The checks of the compiler are configured with this file again.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DKE_SYSTEM)
set(CMAKE_FIND_ROOT_PATH ${DKE_SYSTEM})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
# Headers that differ between machines: the compiler would look for them in its own system only.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-isystem ${DKE_SYSTEM}/usr/include/aarch64-linux-gnu")
endforeach()
