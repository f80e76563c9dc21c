# How the binary that is shipped is built: hardened, optimised across files, and the same bytes from the same sources
# (no build path, no time; SOURCE_DATE_EPOCH is honoured by the compiler and by cpack).
include(CheckIPOSupported)
include(CheckCCompilerFlag)

add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -ftrivial-auto-var-init=zero)
foreach(flag -fstack-clash-protection -fcf-protection=full)
  string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
  check_c_compiler_flag(${flag} ${have}) # not on every CPU
  if(${have})
    add_compile_options(${flag})
  endif()
endforeach()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT APPLE)
  add_link_options(-pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,--as-needed,--build-id=sha1)
endif()

check_ipo_supported(RESULT lto_works OUTPUT why_not LANGUAGES C)
if(lto_works)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
else()
  message(STATUS "no link-time optimisation: ${why_not}")
endif()

# gcc draws a random number for each object with link-time optimisation; the object's own name does as well.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  string(REPLACE "<FLAGS>" "<FLAGS> -frandom-seed=<OBJECT>" CMAKE_C_COMPILE_OBJECT "${CMAKE_C_COMPILE_OBJECT}")
  string(REPLACE "<FLAGS>" "<FLAGS> -frandom-seed=<OBJECT>" CMAKE_CXX_COMPILE_OBJECT "${CMAKE_CXX_COMPILE_OBJECT}")
  add_link_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.") # code is generated once more while linking
endif()
