# Choices made only when brrr is the top project; an enclosing project makes its own.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # clang-tidy and editors read build/compile_commands.json

# The same file is compiled again for each sanitizer and after each branch switch.
find_program(BRRR_CCACHE ccache DOC "Compiler cache, used when present")
if(BRRR_CCACHE)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${BRRR_CCACHE}")
    endif()
  endforeach()
endif()
