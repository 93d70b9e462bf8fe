# OpenSSL::Crypto, static, of a series with long-term support: what fetch.sh has put into
# .libcrypto, or the system's own.
set(DKE_LIBCRYPTO_SERIES 3.5)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  set(fetched ${CMAKE_CURRENT_SOURCE_DIR}/.libcrypto/arm64)
else()
  set(fetched ${CMAKE_CURRENT_SOURCE_DIR}/.libcrypto/amd64)
endif()
set(triplet ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
# Looked for at every build, so that what is fetched later is noticed.
file(GLOB complete CONFIGURE_DEPENDS ${fetched}/complete)
if(complete AND NOT DEFINED ENV{OPENSSL_ROOT_DIR})
  set(libraries ${fetched}/usr/lib/${triplet})
  add_library(OpenSSL::Crypto STATIC IMPORTED)
  set_target_properties(OpenSSL::Crypto PROPERTIES
    IMPORTED_LOCATION ${libraries}/libcrypto.a
    INTERFACE_INCLUDE_DIRECTORIES "${fetched}/usr/include;${fetched}/usr/include/${triplet}")
else()
  set(OPENSSL_USE_STATIC_LIBS TRUE)
  find_package(OpenSSL ${DKE_LIBCRYPTO_SERIES} COMPONENTS Crypto)
  if(NOT OpenSSL_FOUND)
    message(FATAL_ERROR "OpenSSL ${DKE_LIBCRYPTO_SERIES} or newer was not found: npm run build fetches it, or set OPENSSL_ROOT_DIR")
  endif()
  get_filename_component(libraries ${OPENSSL_CRYPTO_LIBRARY} DIRECTORY)
endif()
# Some distributions build libcrypto with compression, which a static library does not bring along. Node exports functions
# of the same names: without our own, the addon would call those.
if(EXISTS ${libraries}/pkgconfig/libcrypto.pc)
  file(STRINGS ${libraries}/pkgconfig/libcrypto.pc needs REGEX "^Libs.private:")
  foreach(name z zstd)
    if(needs MATCHES " -l${name}( |$)")
      find_library(DKE_LIB_${name} lib${name}.a HINTS ${libraries} NO_CMAKE_FIND_ROOT_PATH REQUIRED)
      set_property(TARGET OpenSSL::Crypto APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${DKE_LIB_${name}})
    endif()
  endforeach()
endif()
# Compiled with a newer glibc than this system may have.
set_property(TARGET OpenSSL::Crypto APPEND PROPERTY INTERFACE_LINK_LIBRARIES dke_c23)
