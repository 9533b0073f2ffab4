# The files of a folder compiled as one: headers and templates are worked through once for a folder instead of once for
# a file, which makes a build from nothing four times as quick. Only ULFM_TOGETHER turns this on, which the release preset
# does. Every other build compiles each file by itself, and so shows whether it includes what it uses. Names in anonymous
# namespaces have to differ within a folder.

option(ULFM_TOGETHER "Compile the files of a folder as one (faster builds)" OFF)

# ulfm_together(TARGET SOURCE...): files that have a group or compile options of their own are left as they are.
function(ulfm_together target)
  if(NOT ULFM_TOGETHER)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    get_source_file_property(group ${source} UNITY_GROUP)
    if(NOT group)
      get_filename_component(folder ${source} ABSOLUTE)
      get_filename_component(folder ${folder} DIRECTORY)
      file(RELATIVE_PATH folder ${CMAKE_CURRENT_SOURCE_DIR} ${folder})
      string(REPLACE "/" "_" group "${folder}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${group}")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC 12 sees through more calls then, and takes what an error leaves unset for used.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
endfunction()
