# brrr_flags: how we compile our own code. Every target of ours links it; users of brrr never see it.
add_library(brrr_flags INTERFACE)

# Fields left out of a designated initializer have their defaults: that is what OpDef and options
# are for. And g++'s plain -Wshadow reports scoped enumerators (DType::f16 beside the type f16),
# which shadow nothing, so there only local variables hiding local variables are reported.
set(brrr_warnings -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND brrr_warnings -Wshadow=local)
else()
  list(APPEND brrr_warnings -Wshadow)
endif()

# Bits must not depend on where the optimiser happens to see a*b+c, so fma appears only where it is
# written. errno and traps are used nowhere, and giving them up lets loops with sqrt or selects
# vectorise; neither of the two changes a result (unlike -ffast-math).
set(brrr_numerics -ffp-contract=off -fno-math-errno -fno-trapping-math)

target_compile_options(brrr_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${brrr_warnings};${brrr_numerics}>")

if(BRRR_WERROR)
  # These four come from flow analysis after inlining, where g++ 12 raises false alarms inside the
  # standard library, more of them under sanitizers. They are shown, and do not stop the build.
  set(brrr_werror -Werror -Wno-error=maybe-uninitialized -Wno-error=array-bounds
                  -Wno-error=stringop-overflow -Wno-error=restrict)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(brrr_werror -Werror)
  endif()
  target_compile_options(brrr_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${brrr_werror}>")
endif()

if(BRRR_SANITIZE)
  if(NOT BRRR_SANITIZE MATCHES "^(address|undefined|address,undefined|thread)$")
    message(FATAL_ERROR "BRRR_SANITIZE is '${BRRR_SANITIZE}'; "
                        "use 'address,undefined' or 'thread' (they cannot be combined)")
  endif()
  # No recovery: a report must fail its test, not scroll past.
  set(brrr_sanitizer_flags -fsanitize=${BRRR_SANITIZE} -fno-sanitize-recover=all
                           -fno-omit-frame-pointer)
  # The address sanitizer sees what these three look for; they cost a tenth of the build.
  if(BRRR_SANITIZE MATCHES "undefined")
    list(APPEND brrr_sanitizer_flags -fno-sanitize=null,vptr,object-size)
  endif()
  target_compile_options(brrr_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:${brrr_sanitizer_flags}>")
  target_link_options(brrr_flags INTERFACE ${brrr_sanitizer_flags})
  target_compile_definitions(brrr_flags INTERFACE _GLIBCXX_ASSERTIONS)  # v[i] checked as well
endif()

# brrr_glue_flags: for tests, the program and examples, linked after brrr_flags. They are glue around
# the library (matchers, options, JSON) and most of what there is to compile: at -O3 a command takes 13 s,
# at -O1 9 s, instrumented 30 s. So they are optimised little, under sanitizers not at all, and the
# undefined sanitizer looks at the library alone.
add_library(brrr_glue_flags INTERFACE)
if(BRRR_SANITIZE)
  set(brrr_glue -O0)
  if(BRRR_SANITIZE MATCHES "undefined")
    list(APPEND brrr_glue -fno-sanitize=undefined)
  endif()
else()
  set(brrr_glue "$<$<CONFIG:Release>:-O1>")
endif()
target_compile_options(brrr_glue_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${brrr_glue}>")
