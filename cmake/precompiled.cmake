# Headers of the standard library and of other projects, parsed once for each target instead of once for each file:
# parsing them was more than half of the time of a build. Only ULFM_PRECOMPILE turns this on, which the release preset
# does; every other build, clang-tidy's too, shows whether each file includes what it uses. No header of ours is among
# them: whoever changes one would compile everything again. Nor are CLI11 and nlohmann-json: GCC 12 works through all of
# their inline functions in every file that has them from a precompiled header, 4 s each.

option(ULFM_PRECOMPILE "Parse the headers of other projects once (faster builds)" OFF)

set(ulfm_precompiled_standard
    algorithm array atomic bit cerrno charconv chrono cstddef cstdint cstdio cstdlib cstring deque functional map memory
    mutex optional span string string_view thread utility vector)

# ulfm_precompile(TARGET [HEADER...]): the standard library's, and these.
function(ulfm_precompile target)
  if(NOT ULFM_PRECOMPILE)
    return()
  endif()
  set(headers "")
  foreach(header IN LISTS ulfm_precompiled_standard ARGN)
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${headers})
  # GCC 12 forgets that a precompiled header is the system's, and tells of impossible lengths in std::string (GCC bug
  # 105329). The other builds hear these warnings of our own code.
  foreach(warning stringop-overflow stringop-overread array-bounds)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-${warning}>)
  endforeach()
endfunction()
