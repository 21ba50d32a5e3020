# The test house.consumer: installs the build to a fresh prefix, then configures, builds and runs
# tests/consumer against it, as a stranger's project would. Run by ctest with `cmake -P`.
foreach(variable build_dir source_dir work_dir generator compiler config)
  if(NOT ${variable})
    message(FATAL_ERROR "run_consumer.cmake: -D${variable}=... is missing")
  endif()
endforeach()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${work_dir}")  # leftovers of an older install could hide a missing file
run(${CMAKE_COMMAND} --install "${build_dir}" --prefix "${work_dir}/prefix" --config "${config}")
run(${CMAKE_COMMAND} -S "${source_dir}" -B "${work_dir}/build" -G "${generator}"
    "-DCMAKE_PREFIX_PATH=${work_dir}/prefix" "-DCMAKE_CXX_COMPILER=${compiler}"
    "-DCMAKE_CXX_FLAGS=${flags}" "-DCMAKE_BUILD_TYPE=${config}")
run(${CMAKE_COMMAND} --build "${work_dir}/build" --config "${config}")
run(${CMAKE_CTEST_COMMAND} --test-dir "${work_dir}/build" -C "${config}" --output-on-failure
    --no-tests=error)
